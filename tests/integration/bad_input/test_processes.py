"""Processes that are interrupted, stopped or killed during a conversion."""

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

TRIES = 3
#: Prints "started" at the first progress event of a conversion.
SAY_STARTED = """
import json, os, sys, threading, time, polymux
def say(progress, reported=[]):
    if not reported:
        reported.append(print("started", flush=True))
"""
INTERRUPTED = """
try:
    {}
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


def start(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Start a Python process that runs `code`, and wait until it prints "started"."""
    process = subprocess.Popen(
        [sys.executable, "-W", "error", "-c", SAY_STARTED + code, *map(str, arguments)],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    wait_for(process, "started")
    return process


def wait_for(process: subprocess.Popen[str], line: str) -> None:
    assert process.stdout is not None
    assert process.stdout.readline().strip() == line, process.communicate()[1]


def interrupted_after_s(process: subprocess.Popen[str]) -> float:
    """Seconds from Ctrl-C to the reaction. Checks that the process exits without leftover files."""
    sent = time.monotonic()
    process.send_signal(signal.SIGINT)
    wait_for(process, "interrupted")
    passed_s = time.monotonic() - sent
    errors = process.communicate(timeout=10)[1]
    assert process.returncode == 0, errors
    return passed_s


@pytest.mark.parametrize("options", ["{}", '{"bitrate": 128000, "threads": 1}'])
def test_control_c_ends_a_conversion_at_once(options: str, long_wave: Path, tmp_path: Path) -> None:
    convert = "polymux.convert_to_mp3(*sys.argv[1:3], on_progress=say, **json.loads(sys.argv[3]))"
    delays: list[float] = []
    # Uses the best of three tries, because another program may occupy the core.
    while len(delays) < TRIES and min(delays, default=1) > 0.2 * PATIENCE:
        process = start(INTERRUPTED.format(convert), long_wave, tmp_path / "out.mp3", options)
        delays.append(interrupted_after_s(process))
        assert list(tmp_path.iterdir()) == []
    assert min(delays) <= 0.2 * PATIENCE, delays


MANY = "list(polymux.convert_many([sys.argv[1]] * 4, sys.argv[2], names=lambda _, n: f'{n}.mp3'))"
UNDER_WAY = """
outcomes = iter(polymux.convert_many([sys.argv[1]] * 3))
threading.Thread(target=next, args=(outcomes,), daemon=True).start()
time.sleep(0.5)
print("started", flush=True)
"""


def test_control_c_and_the_exit_end_many_conversions(long_wave: Path, tmp_path: Path) -> None:
    timer = "threading.Timer(0.3, print, ['started'], {'flush': True}).start()"
    process = start(timer + INTERRUPTED.format(MANY), long_wave, tmp_path)
    assert interrupted_after_s(process) <= 20
    assert list(tmp_path.iterdir()) == []
    process = start(UNDER_WAY, long_wave)
    begun = time.monotonic()
    errors = process.communicate(timeout=30)[1]
    assert time.monotonic() - begun <= 20  # A whole conversion would take minutes.
    assert process.returncode == 0, errors


STOPPED = """
made = polymux.convert_to_mp3(sys.argv[1], sys.argv[2], bitrate="128k", on_progress=say)
print(made.report.elapsed_s, flush=True)
"""


def test_a_stopped_and_continued_process(tmp_path: Path) -> None:
    source = write_long_wave(tmp_path / "minute.wav", 60)
    expected = polymux.convert_to_mp3(source, bitrate="128k").read()
    destination = tmp_path / "out.mp3"
    process = start(STOPPED, source, destination)
    process.send_signal(signal.SIGSTOP)
    time.sleep(1.0)
    process.send_signal(signal.SIGCONT)
    out, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert float(out) >= 0.9
    assert destination.read_bytes() == expected
