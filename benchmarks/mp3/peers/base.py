"""What a converter is to the benchmark, and how one written in Python is driven and timed."""

import json
import resource
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

Mode = Literal["cbr128", "v2"]
Convert = Callable[[str, str, Mode], object]


class NotOfferedError(Exception):
    """The package has no way to do what was asked; the table shows the message."""


@dataclass(frozen=True)
class Peer:
    """One converter.

    Attributes:
        name: As the table shows it.
        settings: Which settings make it comparable, and what still differs.
        program: Arguments that convert, with `{input}` and `{output}`; empty for a Python package.
        packages: Distributions it needs, in the order they must be installed.
        module: The adapter that is run for a Python package.
        version_command: Prints the version of a program.
    """

    name: str
    settings: str
    program: dict[Mode, tuple[str, ...]] | None = None
    packages: tuple[str, ...] = ()
    module: str = ""
    version_command: tuple[str, ...] = ()

    def command(self, python: str, mode: Mode, source: Path, destination: Path) -> list[str]:
        """The command line of one conversion."""
        if self.program is not None:
            places = {"input": str(source), "output": str(destination)}
            return [argument.format(**places) for argument in self.program[mode]]
        return [python, "-m", self.module, mode, str(source), str(destination)]


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
        convert(source, destination, mode)  # type: ignore[arg-type]
    except NotOfferedError as error:
        sys.exit(str(error))
    memory["done"] = memory_bytes()
    facts = {
        "loading_s": loaded - began,
        "wall_s": time.perf_counter() - loaded,
        "cpu_s": cpu_s() - cpu_loaded_s,
        "memory": memory,
    }
    print(json.dumps(facts))
