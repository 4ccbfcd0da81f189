"""Log messages of polymux, through `logging`.

To keep imports fast, this module does not import `logging`. It logs only if the program has
imported `logging` or ``POLYMUX_LOG`` is set.
"""

from __future__ import annotations

import os
import sys

from polymux._util.imports import IMPORTING

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from typing import Any

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def log(level: str, message: str, *arguments: object) -> None:
    """Log to the logger ``polymux``. Arguments must not contain keys, bodies or header fields."""
    if _logger is None and not _find_logger():
        return
    number = _LEVELS[level]
    if _logger.isEnabledFor(number):
        _logger.log(number, message, *arguments)


_logger: Any = None
#: Value of ``POLYMUX_LOG``, read on first use; None before.
_wanted: str | None = None
#: The handler, set with `setdefault`: if threads race, one handler wins, and a logger adds it only
#: once.
_made: dict[str, Any] = {}


def _find_logger() -> bool:
    """Set up the logger if needed, with output to stderr if ``POLYMUX_LOG`` names a level."""
    global _logger, _wanted
    wanted = _wanted
    if wanted is None:
        wanted = _wanted = os.environ.get("POLYMUX_LOG", "").lower()
    if "logging" not in sys.modules and not wanted:
        return False
    with IMPORTING:
        import logging

    logger = logging.getLogger("polymux")
    if wanted in _LEVELS:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.setLevel(_LEVELS[wanted])
        logger.addHandler(_made.setdefault("handler", handler))
    else:
        logger.addHandler(logging.NullHandler())
    _logger = logger
    return True
