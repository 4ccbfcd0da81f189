"""SIGTERM as an exception, so that it cleans up like Ctrl-C does."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - as signal calls it
    raise Terminated


@contextmanager
def termination_as_exception() -> Iterator[None]:
    """While inside, SIGTERM raises `Terminated` in the main thread."""
    if threading.current_thread() is not threading.main_thread():
        yield  # Signals are the main thread's; whoever runs us elsewhere has them.
        return
    before = signal.signal(signal.SIGTERM, _terminate)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)
