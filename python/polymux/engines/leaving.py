"""The processes of engines that there are: whoever removes their files ends them before."""

from __future__ import annotations

import asyncio
import os
import time
from contextlib import suppress
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from polymux.engines.process.process import EngineProcess

_LONGEST_S = 2.0
_PAUSE_S = 0.005

_RUNNING: WeakKeyDictionary[EngineProcess, asyncio.AbstractEventLoop] = WeakKeyDictionary()
# A forked process has none of them; they are its parent's.
os.register_at_fork(after_in_child=_RUNNING.clear)


def note(process: EngineProcess) -> None:
    """Keeps in mind a process that was started, and the event loop that it belongs to."""
    _RUNNING[process] = asyncio.get_running_loop()


def end_all() -> None:
    """Ends all that may be at work when this program ends; no event loop takes part.

    Those of a closed loop have no work, and the system ends them with this process: asyncio would
    complain of each that ends before.
    """
    found = [one for one, loop in list(_RUNNING.items()) if not loop.is_closed()]
    running = [(one, one.pid) for one in found if _is_there(one.pid)]
    for process, _ in running:
        process.discard()
    until = time.monotonic() + _LONGEST_S
    for _, number in running:
        while _is_there(number) and time.monotonic() < until:
            time.sleep(_PAUSE_S)


def _is_there(number: int | None) -> bool:
    """Whether a child of that number runs. Its status is left to whoever waits for it."""
    if number is None:
        return False
    with suppress(ChildProcessError):
        found = os.waitid(os.P_PID, number, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        return found is None
    return False
