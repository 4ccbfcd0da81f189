"""Signals, interpreter exit and fork, each in a process of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
import time
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

PREAMBLE = """
import io, os, sys, threading, time, wave
import polymux
from polymux._native import _media

def wav(seconds):
    file = io.BytesIO()
    with wave.open(file, "wb") as writer:
        writer.setnchannels(1)
        writer.setsampwidth(2)
        writer.setframerate(44_100)
        writer.writeframes(os.urandom(88_200) * seconds)
    return file.getvalue()

def start(seconds, destination=None):
    return _media.start_conversion(
        ("bytes", wav(seconds), "noise"), destination, _media.ConvertOptions(), True, None)

class Blocked:
    def read(self, size):
        print("reading", flush=True)
        time.sleep(3600)

"""


def launch(body: str, folder: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-X", "dev", "-W", "error", "-c", PREAMBLE + textwrap.dedent(body)],
        cwd=folder,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def outcome(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    """Exit status, output and errors; a process that does not end fails the test."""
    try:
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    return process.returncode, output, errors


@pytest.mark.parametrize(
    "work",
    [
        'start(600, ("path", b"out.mp3")).wait(lambda p: print("running", flush=True))',
        '_media.probe(("file", io.FileIO(0, closefd=False), "stdin"), _media.Limits())',
        '_media.probe(("file", Blocked(), "blocked"), _media.Limits())',
    ],
    ids=["conversion", "pipe", "blocked reader"],
)
def test_interrupting_ends_the_wait_and_leaves_no_file(work: str, tmp_path: Path) -> None:
    process = launch(
        f"""
        print("running", flush=True)
        try:
            {work}
        except KeyboardInterrupt:
            print("interrupted", time.monotonic(), os.listdir(), flush=True)
        """,
        tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "running\n"
    if "Blocked" in work or "out.mp3" in work:
        process.stdout.readline()  # Now surely under way.
    else:
        time.sleep(0.2)
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    while not (line := process.stdout.readline()).startswith("interrupted"):
        assert line, process.stderr and process.stderr.read()
    _, moment, files = line.split(maxsplit=2)
    # 0.2 s is the promise; the rest is what a busy machine may add.
    assert float(moment) - asked < 1
    assert files.strip() == "[]"
    status, _, errors = outcome(process)
    assert (status, errors) == (0, "")


@pytest.mark.parametrize(
    "work",
    [
        "start(600).wait()",
        "start(600, ('path', b'out.mp3')).wait()",
        """_media.start_conversion(
            ("file", Blocked(), "blocked"), None, _media.ConvertOptions(), True, None).wait()""",
        'while True: _media.probe(("file", io.BytesIO(content), "x"), _media.Limits())',
        """while True: conversion = _media.start_conversion(
            ("file", io.BytesIO(content), "x"), ("file", io.BytesIO()),
            _media.ConvertOptions(), True, lambda: None)""",
    ],
    ids=["memory", "path", "blocked reader", "probes", "many"],
)
def test_the_interpreter_exits_while_a_daemon_thread_waits(work: str, tmp_path: Path) -> None:
    process = launch(
        f"""
        content = wav(1)
        def work():
            try:
                {work}
            except (polymux.OperationCancelledError, RuntimeError):
                pass  # Not printed: who catches nothing gets a traceback of either.
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.5)
        print("leaving", flush=True)
        """,
        tmp_path,
    )
    assert process.stdout is not None
    while process.stdout.readline() not in ("leaving\n", ""):
        pass
    began = time.monotonic()
    status, _, errors = outcome(process)
    assert (status, errors) == (0, "")
    assert time.monotonic() - began < 5
    assert list(tmp_path.iterdir()) == []


def test_work_is_refused_while_the_interpreter_exits(tmp_path: Path) -> None:
    # Exit handlers run last first, so one registered before the module's own runs after it.
    late = """
import atexit

def late():
    try:
        start(1)
    except RuntimeError as error:
        print(error, flush=True)

atexit.register(late)
"""
    process = subprocess.run(
        [sys.executable, "-c", late + PREAMBLE],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        timeout=30,
        check=False,
    )
    assert (process.returncode, process.stderr) == (0, "")
    assert process.stdout == "polymux cannot start work while the interpreter is exiting\n"


def test_a_forked_child_is_told_and_can_convert_itself(tmp_path: Path) -> None:
    process = launch(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # Of forking with threads, 3.12 on.
        conversion = start(600)
        def wait():
            try:
                conversion.wait()
            except polymux.OperationCancelledError:
                pass
        threading.Thread(target=wait, daemon=True).start()
        time.sleep(0.2)
        child = os.fork()
        if child == 0:
            for use in (conversion.wait, conversion.cancel, lambda: conversion.progress):
                try:
                    use()
                except ValueError as error:
                    print(error.code, flush=True)
            del conversion
            print(start(1).wait()["samples"], flush=True)
            sys.exit(7)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        """,
        tmp_path,
    )
    status, output, errors = outcome(process)
    assert (status, errors) == (0, "")
    assert output.split() == ["invalid_argument"] * 3 + ["44100", "7"]


def test_signal_handlers_run_while_waiting(tmp_path: Path) -> None:
    process = launch(
        """
        import signal
        seen = []
        signal.signal(signal.SIGUSR1, lambda *_: seen.append(time.monotonic()))
        conversion = start(600)
        def later():
            time.sleep(0.2)
            sent = time.monotonic()
            os.kill(os.getpid(), signal.SIGUSR1)
            time.sleep(1)
            print(len(seen), seen and seen[0] - sent < 0.9, flush=True)
            conversion.cancel()
        threading.Thread(target=later).start()
        try:
            conversion.wait()
        except Exception as error:
            print(type(error).__name__, flush=True)
        """,
        tmp_path,
    )
    status, output, errors = outcome(process)
    assert (status, errors) == (0, "")
    assert output.split() == ["1", "True", "OperationCancelledError"]


def test_waiting_for_a_pipe_keeps_no_worker_from_the_others(tmp_path: Path) -> None:
    process = launch(
        """
        pipe = ("file", io.FileIO(0, closefd=False), "stdin")
        silent = [
            _media.start_conversion(pipe, None, _media.ConvertOptions(), True, None)
            for _ in range(_media.available_cores())
        ]
        print(start(1).wait()["samples"], any(one.done for one in silent), flush=True)
        """,
        tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "44100 False\n"
    status, _, errors = outcome(process)
    assert (status, errors) == (0, "")
