"""`measure WHAT SIDE NUMBER...`: one run of one server under one load; prints a line of JSON."""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

from benchmarks.gateway.overhead import paced
from benchmarks.gateway.streams import streams
from benchmarks.usage import raise_file_limit

if TYPE_CHECKING:
    from collections.abc import Callable

MEASURES: dict[str, Callable[..., dict[str, Any]]] = {"paced": paced, "streams": streams}


def main() -> None:
    raise_file_limit()  # The servers inherit the limit. A gateway needs two files per stream.
    what, side, *numbers = sys.argv[1:]
    print(json.dumps(MEASURES[what](side, *map(int, numbers))))


if __name__ == "__main__":
    main()
