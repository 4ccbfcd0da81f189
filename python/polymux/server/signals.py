"""Handles SIGHUP before the server can reload its settings: it must not end the process."""

from __future__ import annotations

import signal
import threading

_came = False


def hold_reload() -> None:
    """Record SIGHUP from now on; only on the main thread, which alone may set signal handlers."""
    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGHUP, _heard)


def pending_reload() -> bool:
    """Return whether SIGHUP came since `hold_reload`, and reset it."""
    global _came
    before, _came = _came, False
    return before


def _heard(*_: object) -> None:
    global _came
    _came = True
