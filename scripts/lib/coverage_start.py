"""Measures line coverage in every Python process of an environment; scripts/coverage installs it.

coverage.py's support for child processes does not reach the engine processes: they get a cleaned
environment, may not write files (Landlock), and end by SIGKILL. Therefore a .pth file starts the
measurement, each process opens its data file before Landlock applies, and a Python process that
sends SIGKILL to another one first lets the target write its data.

A record is one line of JSON: the executed lines of each file. This module is also a pytest plugin.
PYTEST_DONT_REWRITE: it is imported before pytest starts, so pytest cannot rewrite it.
"""

from __future__ import annotations

import atexit
import json
import os
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import coverage

_RECORD_AND_DIE = signal.SIGRTMAX - 1
_MAX_RECORDING_S = 2.0
_RECORD_INTERVAL_S = 60.0

_kill, _killpg, _exit, _raise = os.kill, os.killpg, os._exit, signal.raise_signal


class _Recorder:
    def __init__(self, folder: str, package: str) -> None:
        core = "sysmon" if sys.version_info >= (3, 12) else "ctrace"
        self._measured = coverage.Coverage(
            data_file=None, config_file=False, include=[f"{package}/*"], messages=False
        )
        self._measured.set_option("run:core", core)
        self._measured.set_option("run:disable_warnings", ["no-data-collected", "trace-changed"])
        path = Path(folder) / f"{os.getpid()}-{time.time_ns()}.jsonl"
        flags = os.O_CREAT | os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC
        self._file = os.open(path, flags, 0o600)
        self._is_recording = False
        self._measured.start()

    def record(self) -> None:
        if self._is_recording:  # A signal arrived during a recording.
            return
        self._is_recording = True
        try:
            data = self._measured.get_data()
            lines = {file: data.lines(file) for file in data.measured_files()}
            if lines:
                os.write(self._file, json.dumps(lines).encode() + b"\n")
        finally:
            self._is_recording = False


_recorder: _Recorder | None = None
_last_record_at = time.monotonic()


def start(folder: str, package: str) -> None:
    """Start measuring this process.

    Args:
        folder: The folder for the records.
        package: The folder whose files are measured.
    """
    global _recorder
    if _recorder is not None:  # In a virtual environment, Python reads .pth files twice.
        return
    _recorder = _Recorder(folder, package)
    atexit.register(_record)
    signal.signal(_RECORD_AND_DIE, _record_and_die)
    os._exit = _record_and_exit
    os.kill = _record_and_kill
    os.killpg = _record_and_killpg
    signal.raise_signal = _record_and_raise


def pytest_runtest_logfinish() -> None:
    """Save a pytest worker's data regularly, because the worker may crash."""
    global _last_record_at
    if time.monotonic() - _last_record_at > _RECORD_INTERVAL_S:
        _record()
        _last_record_at = time.monotonic()


def _record() -> None:
    if _recorder is not None:
        with suppress(Exception):
            _recorder.record()


def _record_and_exit(status: int) -> NoReturn:
    _record()
    _exit(status)


def _record_and_raise(number: int) -> None:
    """Write the record first: uvicorn ends by raising the signal that stopped it."""
    _record()
    _raise(number)


def _record_and_die(*_: object) -> None:
    _record()
    _kill(os.getpid(), signal.SIGKILL)


def _record_and_kill(pid: int, number: int) -> None:
    if number != signal.SIGKILL or not _has_recorded(pid):
        _kill(pid, number)


def _record_and_killpg(group: int, number: int) -> None:
    recorded = number == signal.SIGKILL and _has_recorded(group)
    try:
        _killpg(group, number)
    except ProcessLookupError:
        if not recorded:
            raise


def _has_recorded(pid: int) -> bool:
    """Let a measured process write its record and exit; return whether it did."""
    if pid == os.getpid() or not _is_measured(pid):
        return False
    _kill(pid, _RECORD_AND_DIE)
    until = time.monotonic() + _MAX_RECORDING_S
    while _is_alive(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.002)
    return True


def _is_measured(pid: int) -> bool:
    with suppress(OSError, ValueError):
        for line in Path(f"/proc/{pid}/status").read_text("ascii").splitlines():
            if line.startswith("SigCgt:"):
                return bool(int(line.split()[1], 16) >> (_RECORD_AND_DIE - 1) & 1)
    return False


def _is_alive(pid: int) -> bool:
    with suppress(OSError, IndexError):
        # The state follows the program's name, which is in parentheses.
        after_name = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2]
        return after_name.split()[0] not in (b"Z", b"X")
    return False
