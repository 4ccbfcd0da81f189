"""The real programs that tests compare with, and one way to run them."""

from __future__ import annotations

import functools
import os
import shutil
import subprocess
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

#: Program to Debian package. A missing program fails the tests; it never skips them.
PACKAGES = {
    "espeak-ng": "espeak-ng",
    "ffmpeg": "ffmpeg",
    "ffprobe": "ffmpeg",
    "gcc": "gcc",
    "lame": "lame",
    "mpg123": "mpg123",
    "nghttpx": "nghttp2-proxy",
    "nginx": "nginx-light",
    "sox": "sox",
    "strace": "strace",
    "systemd-analyze": "systemd",
    "unshare": "util-linux",
}


class ProgramError(Exception):
    """A program is missing or failed; the message has the command and its last lines."""


@functools.cache
def find(program: str) -> str:
    path = shutil.which(program)
    if path is None:
        package = PACKAGES.get(program, program)
        raise ProgramError(f"{program} is not installed: sudo apt-get install {package}")
    return path


def environment() -> dict[str, str]:
    """The environment for other programs.

    It omits preloaded sanitizers, with which other programs hang or become slow.
    """
    return {name: value for name, value in os.environ.items() if name != "LD_PRELOAD"}


def run(
    program: str, *arguments: str | Path, stdin: bytes | None = None, timeout_s: float = 120
) -> subprocess.CompletedProcess[bytes]:
    """Run `program` and return its output."""
    command = [find(program), *map(str, arguments)]
    try:
        done = subprocess.run(
            command,
            capture_output=True,
            timeout=timeout_s,
            input=stdin or b"",
            check=False,
            env=environment(),
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(f"{' '.join(command)} took over {timeout_s} s") from None
    if done.returncode != 0:
        text = done.stderr.decode("utf-8", "replace")[-2000:]
        raise ProgramError(f"{' '.join(command)} ended with {done.returncode}:\n{text}")
    return done


def ffmpeg(*arguments: str | Path, timeout_s: float = 120) -> subprocess.CompletedProcess[bytes]:
    """Run the ffmpeg program quietly; errors are those of `run`."""
    return run("ffmpeg", "-nostdin", "-hide_banner", "-loglevel", "error", "-y", *arguments,
               timeout_s=timeout_s)  # fmt: skip


@functools.cache
def ffmpeg_version() -> str:
    """First line of `ffmpeg -version`; part of every cache key."""
    return run("ffmpeg", "-version").stdout.decode().splitlines()[0]
