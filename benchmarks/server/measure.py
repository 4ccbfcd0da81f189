"""`measure WHAT SIDE NUMBER...`: one run of one server under one load; prints a line of JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.server import (
    deadlines,
    leaving,
    life,
    memory,
    models,
    overhead,
    refusals,
    uploads,
)

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURES: dict[str, Callable[..., dict[str, Any]]] = {
    "paced": overhead.paced,
    "closed": overhead.closed,
    "streams": overhead.streams,
    "large_bodies": refusals.large_bodies,
    "flood": refusals.flood,
    "queue_full": refusals.queue_full,
    "closing": deadlines.closing,
    "leaving": leaving.leaving,
    "leaving_engines": leaving.leaving_engines,
    "uploads": uploads.uploads,
    "mixed": memory.mixed,
    "start": life.start,
    "drain": life.drain,
    "chat": models.chat,
    "speech": models.speech,
}


def main() -> None:
    what, side, *numbers = sys.argv[1:]
    print(json.dumps(MEASURES[what](side, *map(int, numbers))))


if __name__ == "__main__":
    main()
