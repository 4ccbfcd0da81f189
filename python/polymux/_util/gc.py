"""Python's cyclic garbage collector in a process that serves."""

from __future__ import annotations

import gc

#: Requests leave few cycles behind: by the defaults (700, 10, 10) it would look at all that they
#: hold for every few of them, 15 % of a small request's time.
_THRESHOLDS = (10_000, 20, 50)


def freeze_gc() -> None:
    """Leaves out what is there now, which stays, and looks at the rest less often.

    For processes that belong to polymux, when they have loaded what they need.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
