"""What polymux tells of its work: through `logging`, where the program uses that.

Nothing is loaded for it: where nobody has imported `logging` and ``POLYMUX_LOG`` is not set, there
is nobody to tell.
"""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def log(level: str, message: str, *arguments: object) -> None:
    """Tells the logger ``polymux``. Arguments never hold a key, a body or a header field."""
    if _logger is None and not _find_logger():
        return
    number = _LEVELS[level]
    if _logger.isEnabledFor(number):
        _logger.log(number, message, *arguments)


_logger: Any = None
#: Of ``POLYMUX_LOG``, read by the first line; None before.
_wanted: str | None = None
#: The handler, filled by `setdefault`: of threads that come at once one's counts, and a logger
#: takes it once.
_made: dict[str, Any] = {}


def _find_logger() -> bool:
    """Once there is somebody to tell: standard error where ``POLYMUX_LOG`` names a level, too."""
    global _logger, _wanted
    wanted = _wanted
    if wanted is None:
        wanted = _wanted = os.environ.get("POLYMUX_LOG", "").lower()
    if "logging" not in sys.modules and not wanted:
        return False
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
