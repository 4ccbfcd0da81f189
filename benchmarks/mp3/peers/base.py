"""The interface of a converter, and the driver and timer for converters in Python."""

import json
import resource
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

Mode = Literal["cbr128", "v2"]
#: Converts a file; may return figures to report.
Convert = Callable[[str, str, Mode], dict[str, int] | None]


class NotOfferedError(Exception):
    """The package does not support the setting; the table shows the message."""


@dataclass(frozen=True)
class Peer:
    """One converter.

    Attributes:
        name: Name in the tables.
        settings: Settings that make it comparable, and remaining differences.
        program: Arguments for a conversion, with `{input}` and `{output}`; None for a Python
            package.
        packages: Required distributions, in order of installation.
        binary: Path of the program that a package contains, below the folder of packages. It
            replaces `{binary}` in the arguments.
        module: Adapter to run for a Python package.
        variables: Environment variables for the adapter.
        version_command: Prints the version of a program.
        frames_of: Peer whose MP3 frames this one should equal.
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
        """Return the command line of one conversion."""
        if self.program is None:
            return [python, "-m", self.module, mode, str(source), str(destination)]
        places = {"input": str(source), "output": str(destination), "binary": self.found(python)}
        return [argument.format(**places) for argument in self.program[mode]]

    def found(self, python: str) -> str:
        """Return the path of the bundled program in this Python's environment, or `binary`
        unchanged if it is missing."""
        folder = Path(python).parent.parent
        matches = sorted(folder.glob(f"lib/python*/site-packages/{self.binary}"))
        return str(matches[0]) if self.binary and matches else self.binary


def memory_bytes() -> dict[str, int]:
    """Return the resident memory of this process now and at its peak, by kind."""
    fields = {"VmHWM": "peak", "VmRSS": "now", "RssAnon": "anonymous", "RssFile": "file"}
    found = {}
    for line in Path("/proc/self/status").read_text().splitlines():
        key, _, value = line.partition(":")
        if key in fields:
            found[fields[key]] = int(value.split()[0]) * 1024
    return found


def cpu_s() -> float:
    """Return the CPU seconds of this process and the children it has waited for."""
    spent = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in spent)


def serve(load: Callable[[], Convert]) -> None:
    """Run an adapter: `MODE INPUT OUTPUT` on the command line, one line of JSON on standard output.

    Args:
        load: Imports the package and returns the conversion function. Its cost is reported
            separately, because a long-running program pays it once.
    """
    mode, source, destination = sys.argv[1:4]
    memory = {"start": memory_bytes()}
    began = time.perf_counter()
    convert = load()
    memory["loaded"] = memory_bytes()
    loaded, cpu_loaded_s = time.perf_counter(), cpu_s()
    try:
        extra_facts = convert(source, destination, mode)  # type: ignore[arg-type]
    except NotOfferedError as error:
        sys.exit(str(error))
    memory["done"] = memory_bytes()
    facts = {
        "loading_s": loaded - began,
        "wall_s": time.perf_counter() - loaded,
        "cpu_s": cpu_s() - cpu_loaded_s,
        "memory": memory,
        **(extra_facts or {}),
    }
    print(json.dumps(facts))
