"""A process that is interrupted, stopped or ended in the middle of a conversion."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import polymux
import pytest
from support.hostile_check import PATIENCE
from support.long_sound import write_long_wave

if TYPE_CHECKING:
    from pathlib import Path

#: Long enough that no machine converts it before a test has finished with it.
LONG_S = 4 * 3600
TRIES = 3


@pytest.fixture(scope="module")
def long_wave(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_long_wave(tmp_path_factory.mktemp("long") / "long.wav", LONG_S)


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """A Python process that runs `code` and says "started" when it converts."""
    command = [sys.executable, "-W", "error", "-c", code, *map(str, arguments)]
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == line, process.communicate()[1]


SAY_STARTED = """
import sys, polymux
def say(progress, said=[]):
    if not said:
        said.append(print("started", flush=True))
"""

INTERRUPTED = (
    SAY_STARTED
    + """
import json
try:
    polymux.convert_to_mp3(sys.argv[1], sys.argv[2], on_progress=say, **json.loads(sys.argv[3]))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""
)


@pytest.mark.parametrize(
    "options",
    ["{}", '{"threads": 1}', '{"bitrate": 128000}', '{"bitrate": 128000, "threads": 1}',
     '{"bitrate": 128000, "verify": "all"}'],
)  # fmt: skip
def test_control_c_ends_a_conversion_at_once(options: str, long_wave: Path, tmp_path: Path) -> None:
    """On one thread and on many, which all have to hear of it."""
    delays = []
    for number in range(TRIES):
        process = start(INTERRUPTED, long_wave, tmp_path / f"{number}.mp3", options)
        wait_for(process, "started")
        sent = time.monotonic()
        process.send_signal(signal.SIGINT)
        wait_for(process, "interrupted")
        delays.append(time.monotonic() - sent)
        assert process.wait(timeout=10) == 0
        process.communicate()
        assert list(tmp_path.iterdir()) == []
    # The best of three: another program may take the core from one of them.
    assert min(delays) <= 0.2 * PATIENCE, delays


WITHOUT_CALLBACK = """
import sys, threading, polymux
timer = threading.Timer(0.3, print, ["started"], {"flush": True})
timer.start()
try:
    polymux.convert_to_mp3(sys.argv[1], sys.argv[2])
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_control_c_without_a_callback(long_wave: Path, tmp_path: Path) -> None:
    process = start(WITHOUT_CALLBACK, long_wave, tmp_path / "out.mp3")
    wait_for(process, "started")
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    wait_for(process, "interrupted")
    assert time.monotonic() - sent <= 1.0 * PATIENCE
    assert process.wait(timeout=10) == 0
    process.communicate()
    assert list(tmp_path.iterdir()) == []


MANY = """
import sys, polymux
print("started", flush=True)
try:
    sources = [sys.argv[1]] * 4
    list(polymux.convert_many(sources, sys.argv[2], names=lambda source, index: f"{index}.mp3"))
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def test_control_c_ends_many_conversions(long_wave: Path, tmp_path: Path) -> None:
    process = start(MANY, long_wave, tmp_path)
    wait_for(process, "started")
    time.sleep(0.5)
    process.send_signal(signal.SIGINT)
    sent = time.monotonic()
    wait_for(process, "interrupted")
    assert time.monotonic() - sent <= 2.0 * PATIENCE
    errors = process.communicate(timeout=10)[1]
    assert process.returncode == 0, errors
    assert list(tmp_path.iterdir()) == []


EXITS = {
    "return": "",
    "exit": "sys.exit(0)",
    "hard-exit": "import os; os._exit(0)",
}

IN_A_DAEMON_THREAD = """
import sys, threading, polymux
started = threading.Event()
def convert():
    polymux.convert_to_mp3(sys.argv[1], sys.argv[2], on_progress=lambda progress: started.set())
threading.Thread(target=convert, daemon=True).start()
started.wait()
print("started", flush=True)
"""


@pytest.mark.parametrize("ending", EXITS)
def test_exit_with_a_conversion_in_a_daemon_thread(
    ending: str, long_wave: Path, tmp_path: Path
) -> None:
    destination = tmp_path / "out.mp3"
    process = start(IN_A_DAEMON_THREAD + EXITS[ending], long_wave, destination)
    wait_for(process, "started")
    begun = time.monotonic()
    errors = process.communicate(timeout=30)[1]
    assert time.monotonic() - begun <= 2.0 * PATIENCE
    assert process.returncode == 0, errors
    # The thread may be told why its conversion ended, and cut off while it says so.
    assert "Fatal" not in errors
    assert not destination.exists()
    assert ending == "hard-exit" or list(tmp_path.iterdir()) == []


UNFINISHED = """
import sys, polymux
outcomes = polymux.convert_many([sys.argv[1]] * 3)
native = iter(outcomes)
import threading
threading.Thread(target=next, args=(native,), daemon=True).start()
import time; time.sleep(0.5)
print("started", flush=True)
"""


def test_exit_with_many_conversions_under_way(long_wave: Path) -> None:
    process = start(UNFINISHED, long_wave)
    wait_for(process, "started")
    begun = time.monotonic()
    errors = process.communicate(timeout=30)[1]
    assert time.monotonic() - begun <= 2.0 * PATIENCE
    assert process.returncode == 0, errors


STOPPED = (
    SAY_STARTED
    + """
made = polymux.convert_to_mp3(sys.argv[1], sys.argv[2], bitrate="128k", on_progress=say)
print(made.report.elapsed_s, flush=True)
"""
)


def test_a_stopped_and_continued_process(tmp_path: Path) -> None:
    source = write_long_wave(tmp_path / "minute.wav", 60)
    expected = polymux.convert_to_mp3(source, bitrate="128k").read()
    destination = tmp_path / "out.mp3"
    process = start(STOPPED, source, destination)
    wait_for(process, "started")
    process.send_signal(signal.SIGSTOP)
    time.sleep(2.0)
    process.send_signal(signal.SIGCONT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert float(out) >= 1.9
    assert destination.read_bytes() == expected
