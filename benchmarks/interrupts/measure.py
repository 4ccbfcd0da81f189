"""measure CALL URL COUNT: how long Ctrl-C takes to end a call that waits, in so many processes."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.interrupts.waiting import NAME_SERVER, NAMES

#: From the moment that it says it waits, until it does.
UNTIL_IT_WAITS_S = 0.3


#: A network whose only name server takes questions and never answers.
_SILENT_NAMES = """
set -e
ip link set lo up
printf 'nameserver ADDRESS\\noptions timeout:30 attempts:1\\n' > "$1"
mount --bind "$1" "$(readlink -f /etc/resolv.conf)"
shift
exec "$@"
""".replace("ADDRESS", NAME_SERVER[0])


def in_a_silent_network(command: list[str], path: str) -> list[str]:
    """A command where names are asked for in vain.

    Args:
        command: As it is.
        path: Of a file, for what `resolv.conf` shall be there.
    """
    rights = () if os.getuid() == 0 else ("--user", "--map-root-user")
    inside = ("unshare", *rights, "--net", "--mount", "sh", "-c", _SILENT_NAMES, "sh", path)
    return [*inside, *command]


def delay_s(name: str, url: str) -> float:
    """From the signal to the end of the call, of one process."""
    command = [sys.executable, "-m", "benchmarks.interrupts.waiting", name, url]
    with tempfile.NamedTemporaryFile(prefix="polymux-bench-") as names:
        return delay_of_s(
            name, in_a_silent_network(command, names.name) if name in NAMES else command
        )


def delay_of_s(name: str, command: list[str]) -> float:
    """The same, of a command."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        if child.stdout.readline() != "waits\n":
            raise SystemExit(f"{name}: it does not wait")
        time.sleep(UNTIL_IT_WAITS_S)
        sent_ns = time.monotonic_ns()
        child.send_signal(signal.SIGINT)
        told = child.stdout.readline()
    if not told:
        raise SystemExit(f"{name}: it had ended before")
    ended_ns: int = json.loads(told)["ended_ns"]
    return (ended_ns - sent_ns) / 1e9


def main() -> None:
    """The median of all, and the worst."""
    name, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    delays_s = [delay_s(name, url) for _ in range(count)]
    worst_s, median_s = max(delays_s), statistics.median(delays_s)
    print(json.dumps({"count": count, "median_s": median_s, "worst_s": worst_s}))


if __name__ == "__main__":
    main()
