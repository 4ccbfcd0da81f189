"""`measure CALL URL COUNT`: how long Ctrl-C takes to end a waiting call, in COUNT processes."""

import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time

from benchmarks.interrupts.waiting import NAME_SERVER, NAMES

#: Time between the message of the process and the actual wait.
UNTIL_IT_WAITS_S = 0.3


#: A network whose only name server accepts queries and never answers.
_SILENT_NAMES = """
set -e
ip link set lo up
printf 'nameserver ADDRESS\\noptions timeout:30 attempts:1\\n' > "$1"
mount --bind "$1" "$(readlink -f /etc/resolv.conf)"
shift
exec "$@"
""".replace("ADDRESS", NAME_SERVER[0])


def in_a_silent_network(command: list[str], path: str) -> list[str]:
    """Return a command that runs `command` in a network whose name server never answers.

    Args:
        command: The command to run.
        path: File that replaces `resolv.conf` in that network.
    """
    rights = () if os.getuid() == 0 else ("--user", "--map-root-user")
    inside = ("unshare", *rights, "--net", "--mount", "sh", "-c", _SILENT_NAMES, "sh", path)
    return [*inside, *command]


def delay_s(name: str, url: str) -> float:
    """Return the seconds from the signal to the end of the call, in one process."""
    command = [sys.executable, "-m", "benchmarks.interrupts.waiting", name, url]
    with tempfile.NamedTemporaryFile(prefix="polymux-bench-") as names:
        return delay_of_s(
            name, in_a_silent_network(command, names.name) if name in NAMES else command
        )


def delay_of_s(name: str, command: list[str]) -> float:
    """Return the same for a command."""
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        if child.stdout.readline() != "waits\n":
            raise SystemExit(f"{name}: the call does not wait")
        time.sleep(UNTIL_IT_WAITS_S)
        sent_ns = time.monotonic_ns()
        child.send_signal(signal.SIGINT)
        line = child.stdout.readline()
    if not line:
        raise SystemExit(f"{name}: the call ended before the signal")
    ended_ns: int = json.loads(line)["ended_ns"]
    return (ended_ns - sent_ns) / 1e9


def main() -> None:
    """Print the median and the maximum."""
    name, url, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
    delays_s = [delay_s(name, url) for _ in range(count)]
    worst_s, median_s = max(delays_s), statistics.median(delays_s)
    print(json.dumps({"count": count, "median_s": median_s, "worst_s": worst_s}))


if __name__ == "__main__":
    main()
