"""SIGHUP before a server can read its settings again: noted, where it would end the process."""

from __future__ import annotations

import signal
import threading

_came = False


def hold_reload() -> None:
    """Notes it from now on; only on the main thread, which alone may say what signals do."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, _heard)


def pending_reload() -> bool:
    """Whether it came since `hold_reload`; once."""
    global _came
    before, _came = _came, False
    return before


def _heard(*_: object) -> None:
    global _came
    _came = True
