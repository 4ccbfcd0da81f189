"""Plants faults one by one and runs the tests, nearest first, until one detects the fault."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import PurePath
from typing import TYPE_CHECKING

from faults import nearby
from faults.planting import planted

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from faults.commands import Attempt, TestCommands
    from faults.fault import Fault
    from faults.planting import Planting

CAUGHT = "caught"
NOT_CAUGHT = "not caught"
TIMED_OUT = "timed out"
#: Outcomes that say nothing about the tests.
MISSING = "line missing"
NOT_BUILT = "not built"


@dataclass
class Result:
    number: int
    path: str
    line: int
    outcome: str
    #: The test that detected it, or how far the tests came.
    detail: str
    seconds: float


@dataclass
class _Stage:
    name: str
    attempt: Callable[[float], Attempt]
    passes: Callable[[list[str]], bool]
    #: Arguments of `scripts/build` before the tests, or None if no build is needed.
    build: list[str] | None


class Hunt:
    def __init__(self, root: Path, commands: TestCommands, limit_s: float) -> None:
        self._root = root
        self._commands = commands
        self._limit_s = limit_s
        #: Tests that also failed without a fault. They are excluded from then on.
        self.unreliable: set[str] = set()
        #: Whether builds may still contain a fault that was removed from its file.
        self.build_is_stale = False

    def run(self, number: int, fault: Fault) -> Result:
        started = time.monotonic()
        file = self._root / fault.path
        text = fault.planted(file.read_text()) if file.exists() else None
        if text is None:
            outcome, detail = MISSING, ""
        else:
            self.build_is_stale |= fault.is_cpp
            with planted(file, text) as planting:
                outcome, detail = self._hunt(fault, planting)
        seconds = round(time.monotonic() - started, 1)
        return Result(number, fault.path, fault.line, outcome, detail, seconds)

    def rebuild(self) -> bool:
        """Build without faults."""
        return self._commands.build("--preset", "dev") and self._commands.build()

    def _hunt(self, fault: Fault, planting: Planting) -> tuple[str, str]:
        left_s = self._limit_s
        built: list[str] | None = None
        for stage in self._stages(fault):
            while True:
                if stage.build is not None and stage.build != built:
                    if not self._commands.build(*stage.build):
                        return NOT_BUILT, ""
                    built = stage.build
                started = time.monotonic()
                attempt = stage.attempt(left_s)
                left_s -= time.monotonic() - started
                if attempt.timed_out or (attempt.failed and left_s <= 0):
                    return TIMED_OUT, f"in the tests {stage.name}"
                if not attempt.failed:
                    break
                planting.restore()
                if stage.build is not None and not self._commands.build(*stage.build):
                    return NOT_BUILT, "without the fault"
                if stage.passes(attempt.failed):
                    return CAUGHT, attempt.failed[0]
                self.unreliable.update(attempt.failed)
                planting.plant()
                built = None
        return NOT_CAUGHT, ""

    def _stages(self, fault: Fault) -> Iterator[_Stage]:
        places = ["near the file", "related to it", "of the rest"]
        if fault.is_cpp:
            for place, files in zip(places, nearby.cpp_stages(self._root, fault.path), strict=True):
                names = [f"cpp.{PurePath(file).stem}" for file in files]
                yield self._cpp_stage(place, names)
        for place, files in zip(places, nearby.python_stages(self._root, fault.path), strict=True):
            if files:
                yield self._python_stage(place, files, build=[] if fault.is_cpp else None)

    def _cpp_stage(self, place: str, names: list[str]) -> _Stage:
        return _Stage(
            f"in C++ {place}",
            lambda limit_s: self._commands.ctest(names, self.unreliable, limit_s),
            self._commands.ctest_passes,
            ["--preset", "dev"],
        )

    def _python_stage(self, place: str, files: list[str], build: list[str] | None) -> _Stage:
        in_order = place == "near the file"

        def attempt(limit_s: float) -> Attempt:
            return self._commands.pytest(files, sorted(self.unreliable), limit_s, in_order=in_order)

        return _Stage(f"in Python {place}", attempt, self._commands.pytest_passes, build)
