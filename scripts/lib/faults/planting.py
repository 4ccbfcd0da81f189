"""Puts a fault into a file and takes it out again, whatever happens in between."""

from __future__ import annotations

import os
import shutil
import signal
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

INTERRUPTIONS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
#: Python compares a source's age with that of its bytecode in whole seconds.
AGE_STEP_S = 2


class Planting:
    def __init__(self, file: Path, planted: str) -> None:
        self._file = file
        self._planted = planted.encode()
        self._original = file.read_bytes()

    def plant(self) -> None:
        self._write(self._planted)

    def restore(self) -> None:
        if self._file.read_bytes() != self._original:
            self._write(self._original)

    def _write(self, content: bytes) -> None:
        # An interruption waits until the file is whole.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        try:
            new = self._file.with_name(self._file.name + ".new")
            new.write_bytes(content)
            shutil.copymode(self._file, new)
            # Newer than the last version, or builds and bytecode would keep that.
            modified_s = max(time.time(), self._file.stat().st_mtime + AGE_STEP_S)
            os.utime(new, (modified_s, modified_s))
            new.replace(self._file)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def planted(file: Path, text: str) -> Iterator[Planting]:
    """Plants the text in the file for as long as the block runs."""
    planting = Planting(file, text)
    try:
        planting.plant()
        yield planting
    finally:
        planting.restore()
