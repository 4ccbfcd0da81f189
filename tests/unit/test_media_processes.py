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

def convert(source, destination=None, done=None):
    return _media.start_conversion(source, destination, _media.ConvertOptions(), True, done)

def start(seconds, destination=None):
    return convert(("bytes", wav(seconds), "noise"), destination)

def probe(file):
    return _media.probe(("file", file, "x"), _media.Limits())

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


def outcome(process: subprocess.Popen[str]) -> list[str]:
    """The printed words. A process that fails, warns or does not end fails the test."""
    try:
        output, errors = process.communicate(timeout=30)
    finally:
        process.kill()
    assert (process.returncode, errors) == (0, "")
    return output.split()


@pytest.mark.parametrize(
    "work",
    [
        'start(600, ("path", b"out.mp3")).wait(lambda p: print("running", flush=True))',
        "probe(io.FileIO(0, closefd=False))",
        "probe(Blocked())",
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
    if "FileIO" in work:
        time.sleep(0.2)
    else:
        process.stdout.readline()  # The conversion has started.
    asked = time.monotonic()
    process.send_signal(signal.SIGINT)
    while not (line := process.stdout.readline()).startswith("interrupted"):
        assert line, process.stderr and process.stderr.read()
    _, moment, files = line.split(maxsplit=2)
    # The limit is 0.2 s; the rest is for a busy machine.
    assert float(moment) - asked < 1
    assert files.strip() == "[]"
    assert outcome(process) == []


@pytest.mark.parametrize(
    "work",
    [
        "start(600, ('path', b'out.mp3')).wait()",
        "convert(('file', Blocked(), 'blocked')).wait()",
        "while True: probe(io.BytesIO(content))",
        "while True: kept = convert(('file', io.BytesIO(content), 'x'), ('file', io.BytesIO()),"
        " lambda: None)",
    ],
    ids=["path", "blocked reader", "probes", "many"],
)
def test_the_interpreter_exits_while_a_daemon_thread_waits(work: str, tmp_path: Path) -> None:
    process = launch(
        f"""
        content = wav(1)
        def work():
            try:
                {work}
            except (polymux.OperationCancelledError, RuntimeError):
                pass  # Not printed: without a handler, either one causes a traceback.
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.2)
        print("leaving", flush=True)
        """,
        tmp_path,
    )
    assert process.stdout is not None
    while process.stdout.readline() not in ("leaving\n", ""):
        pass
    began = time.monotonic()
    outcome(process)
    assert time.monotonic() - began < 30
    assert list(tmp_path.iterdir()) == []


def test_a_forked_child_gets_an_error_and_can_convert(tmp_path: Path) -> None:
    process = launch(
        """
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads, 3.12+
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
    assert outcome(process) == ["invalid_argument"] * 3 + ["44100", "7"]


def test_waiting_for_a_pipe_keeps_no_worker_from_the_others(tmp_path: Path) -> None:
    process = launch(
        """
        pipe = ("file", io.FileIO(0, closefd=False), "stdin")
        silent = [convert(pipe) for _ in range(_media.available_cores())]
        print(start(1).wait()["samples"], any(one.done for one in silent), flush=True)
        """,
        tmp_path,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "44100 False\n"
    outcome(process)
