"""Standard input as a source that Ctrl-C can interrupt."""

from __future__ import annotations

import os
import select
import stat
import sys
from typing import TYPE_CHECKING

from polymux.cli.signals import stopping

if TYPE_CHECKING:
    from polymux.inputs import ReadableFile

_LOOK_AROUND_S = 0.05


class _Pipe:
    """Reads what comes; a native thread that waits here notices that the process shall end."""

    name = "<stdin>"

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def read(self, size: int, /) -> bytes:
        """Returns up to `size` bytes, and empty bytes at the end."""
        while not select.select([self._descriptor], [], [], _LOOK_AROUND_S)[0]:
            if stopping():
                raise InterruptedError("the program was asked to end")
        return os.read(self._descriptor, size)


def standard_input() -> ReadableFile:
    """Standard input: seekable when it is a redirected file, else a pipe that can be left."""
    descriptor = sys.stdin.fileno()
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return sys.stdin.buffer
    return _Pipe(descriptor)
