"""Ctrl-C and SIGTERM as exceptions in the main thread, and as a flag for the other threads."""

from __future__ import annotations

import signal
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from collections.abc import Iterator

_stopping = threading.Event()


class Terminated(BaseException):
    """The process was asked to end by SIGTERM."""


def stopping() -> bool:
    """Whether the process was asked to end; for threads that would otherwise wait for input."""
    return _stopping.is_set()


def _interrupt(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - as signal calls it
    _stopping.set()
    raise KeyboardInterrupt


def _terminate(number: int, frame: object) -> NoReturn:  # noqa: ARG001 - as signal calls it
    _stopping.set()
    raise Terminated


@contextmanager
def stop_signals_as_exceptions() -> Iterator[None]:
    """While inside, SIGINT raises `KeyboardInterrupt` and SIGTERM raises `Terminated`.

    A SIGINT that is ignored, as in background jobs of scripts, stays ignored.
    """
    if threading.current_thread() is not threading.main_thread():
        yield  # Signals are the main thread's; whoever runs us elsewhere has them.
        return
    _stopping.clear()
    handlers = {signal.SIGTERM: _terminate}
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        handlers[signal.SIGINT] = _interrupt
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
