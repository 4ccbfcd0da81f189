"""Runs builds and tests of a working tree, and names the tests that failed."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

FOLDER = "build/planted-faults"
#: pytest's exit statuses: all tests passed, or no test was selected.
PASSED = {0, 5}
#: pytest's exit status for a command line that names an unknown test.
UNKNOWN_TEST = 4
HANG_S = 300
CLEAN_UP_S = 10


class Attempt(NamedTuple):
    failed: list[str]
    timed_out: bool = False


class TestCommands:
    """The tests of one working tree."""

    __test__ = False

    def __init__(self, root: Path, jobs: int) -> None:
        self._root = root
        self._jobs = jobs
        self._folder = root / FOLDER
        self._folder.mkdir(parents=True, exist_ok=True)
        self._environment = os.environ | {"PATH": f"{root}/.venv/bin:{os.environ['PATH']}"}

    def build(self, *options: str) -> bool:
        return self._run(["scripts/build", *options], None)[0] == 0

    def pytest(
        self, names: list[str], unwanted: Iterable[str], limit_s: float, *, in_order: bool
    ) -> Attempt:
        """Run files until a test fails. With `in_order`, files run one after another."""
        cache = self._folder / "cache"
        shutil.rmtree(cache, ignore_errors=True)
        command = [".venv/bin/python", "-m", "pytest", "--maxfail=1", "--tb=short", "-v"]
        for option in (f"cache_dir={cache}", f"faulthandler_timeout={HANG_S}"):
            command += ["-o", option]
        command += ["-o", "faulthandler_exit_on_timeout=true"]
        command += [f"--deselect={name}" for name in unwanted]
        if not in_order and self._jobs > 1:
            command += ["-n", str(self._jobs)]
        status, output = self._run([*command, *names], limit_s)
        if status in PASSED:
            return Attempt([])
        if status is None:
            return Attempt([], timed_out=True)
        with suppress(FileNotFoundError):
            if failed := json.loads((cache / "v/cache/lastfailed").read_text()):
                return Attempt(sorted(failed))
        # pytest crashed: return the file that ran last, or the first file if none started.
        started = re.findall(r"^(tests/\S+?\.py)::", output, re.MULTILINE)
        return Attempt([started[-1] if started else names[0]])

    def pytest_passes(self, names: list[str]) -> bool:
        command = [".venv/bin/python", "-m", "pytest", "-q"]
        status = self._run([*command, *names], None)[0]
        if status == UNKNOWN_TEST:
            # The fault changed the test's parameters, and with them its name.
            status = self._run([*command, *{name.split("::")[0] for name in names}], None)[0]
        return status in PASSED

    def ctest(self, names: list[str], unwanted: Iterable[str], limit_s: float) -> Attempt:
        wanted = [name for name in names if name not in set(unwanted)]
        if not wanted:
            return Attempt([])
        chosen = f"^({'|'.join(map(re.escape, wanted))})$"
        command = ["ctest", "--preset", "dev", "--stop-on-failure", "-R", chosen]
        status, output = self._run(command, limit_s)
        if status is None:
            return Attempt([], timed_out=True)
        failed = re.findall(
            r"^\s*\d+ - (\S+) \(", output.rpartition("tests FAILED:")[2], re.MULTILINE
        )
        return Attempt(failed or wanted[:1] if status else [])

    def ctest_passes(self, names: list[str]) -> bool:
        return not self.ctest(names, [], float("inf")).failed

    def _run(self, command: list[str], limit_s: float | None) -> tuple[int | None, str]:
        """Return the exit status (None after the time limit) and the output."""
        log = self._folder / "output.log"
        with log.open("wb") as output:
            process = subprocess.Popen(
                command,
                cwd=self._root,
                env=self._environment,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
            status = None
            try:
                with suppress(subprocess.TimeoutExpired):
                    status = process.wait(None if limit_s == float("inf") else limit_s)
            finally:
                _end(process)
        return status, log.read_text(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and its children: first by a signal that allows clean-up, then by SIGKILL."""
    try:
        if process.poll() is None:
            process.send_signal(signal.SIGINT)
            with suppress(subprocess.TimeoutExpired):
                process.wait(CLEAN_UP_S)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
