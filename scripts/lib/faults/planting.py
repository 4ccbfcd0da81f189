"""Plants a fault in a file, and always restores the file."""

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
#: Python compares the times of source and bytecode in whole seconds.
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
        # Interruptions are blocked until the file is complete.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTIONS)
        try:
            new = self._file.with_name(self._file.name + ".new")
            new.write_bytes(content)
            shutil.copymode(self._file, new)
            # A newer time than before, or builds and bytecode would not be updated.
            modified_s = max(time.time(), self._file.stat().st_mtime + AGE_STEP_S)
            os.utime(new, (modified_s, modified_s))
            new.replace(self._file)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def planted(file: Path, text: str) -> Iterator[Planting]:
    """Plant the text in the file for the duration of the block."""
    planting = Planting(file, text)
    try:
        planting.plant()
        yield planting
    finally:
        planting.restore()
