"""The folders that go with a `Local`: who forgets to close it leaves none of them either."""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile

#: Of this process.
_MADE: set[str] = set()


def made() -> str:
    """A new one, which is removed when this program ends, if nobody has removed it before."""
    folder = tempfile.mkdtemp(prefix="polymux-local-")
    _MADE.add(folder)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        # Its workers end without what `atexit` knows.
        Finalize(None, _remove_all, exitpriority=0)
    return folder


def remove(folder: str) -> None:
    """Removes one with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _MADE.discard(folder)


@atexit.register
def _remove_all() -> None:
    """At the end of the program. What engines may still write is theirs until they have ended."""
    if not _MADE:
        return
    from polymux.engines.leaving import end_all

    end_all()
    for folder in list(_MADE):
        remove(folder)


# A forked process must leave its parent's alone.
os.register_at_fork(after_in_child=_MADE.clear)
