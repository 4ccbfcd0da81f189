"""What a converter is to the benchmark, and how one written in Python is driven and timed."""

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["cbr128", "v2"]
#: Converts; may answer with facts for the account.
Convert = Callable[[str, str, Mode], dict[str, int] | None]


class NotOfferedError(Exception):
    """The package has no way to do what was asked; the table shows the message."""


@dataclass(frozen=True)
class Peer:
    """One converter.

    Attributes:
        name: As the table shows it.
        settings: Which settings make it comparable, and what still differs.
        program: Arguments that convert, with `{input}` and `{output}`; none for a Python package.
        packages: Distributions it needs, in the order they must be installed.
        binary: Where a package keeps the program it carries, below the folder of packages; it
            takes the place of `{binary}` in the arguments.
        module: The adapter that is run for a Python package.
        variables: What the adapter finds in its environment.
        version_command: Prints the version of a program.
        frames_of: The peer whose MP3 frames this one should equal.
    """

    name: str
    settings: str
    program: dict[Mode, tuple[str, ...]] | None = None
    packages: tuple[str, ...] = ()
    binary: str = ""
    module: str = ""
    variables: Mapping[str, str] = field(default_factory=dict)
    version_command: tuple[str, ...] = ()
    frames_of: str = "ffmpeg"

    def command(self, python: str, mode: Mode, source: Path, destination: Path) -> list[str]:
        """The command line of one conversion."""
        if self.program is None:
            return [python, "-m", self.module, mode, str(source), str(destination)]
        places = {"input": str(source), "output": str(destination), "binary": self.found(python)}
        return [argument.format(**places) for argument in self.program[mode]]

    def found(self, python: str) -> str:
        """The carried program in the environment of this Python; as it stands where it is not."""
        folder = Path(python).parent.parent
        matches = sorted(folder.glob(f"lib/python*/site-packages/{self.binary}"))
        return str(matches[0]) if self.binary and matches else self.binary


def memory_bytes() -> dict[str, int]:
    """Resident memory of this process now and at its peak, by kind."""
    fields = {"VmHWM": "peak", "VmRSS": "now", "RssAnon": "anonymous", "RssFile": "file"}
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in fields:
            found[fields[key]] = int(value.split()[0]) * 1024
    return found


def cpu_s() -> float:
    """CPU seconds of this process and of the children it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def serve(load: Callable[[], Convert]) -> None:
    """Main of every adapter: `MODE INPUT OUTPUT` on the command line, one JSON line out.

    Args:
        load: Imports the package and returns the function that converts. Its cost is reported
            apart from the conversion's, because a long-lived program pays it once.
    """
    mode, source, destination = sys.argv[1:4]
    memory = {"start": memory_bytes()}
    began = time.perf_counter()
    convert = load()
    memory["loaded"] = memory_bytes()
    loaded, cpu_loaded_s = time.perf_counter(), cpu_s()
    try:
        told = convert(source, destination, mode)  # type: ignore[arg-type]
    except NotOfferedError as error:
        sys.exit(str(error))
    memory["done"] = memory_bytes()
    facts = {
        "loading_s": loaded - began,
        "wall_s": time.perf_counter() - loaded,
        "cpu_s": cpu_s() - cpu_loaded_s,
        "memory": memory,
        **(told or {}),
    }
    print(json.dumps(facts))
