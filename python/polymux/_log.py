"""What polymux tells of its work: through `logging`, where the program uses that.

Nothing is loaded for it: where nobody has imported `logging` and ``POLYMUX_LOG`` is not set, there
is nobody to tell.
"""

from __future__ import annotations

import os
import sys

_LEVELS = {"debug": 10, "info": 20, "warning": 30, "error": 40}


def log(level: str, message: str, *arguments: object) -> None:
    """Tells the logger ``polymux``. Arguments never hold a key, a body or a header field."""
    if "logging" not in sys.modules and not os.environ.get("POLYMUX_LOG"):
        return
    import logging

    logger = logging.getLogger("polymux")
    if not logger.handlers:
        _set_up(logger)
    logger.log(_LEVELS[level], message, *arguments)


def _set_up(logger: object) -> None:
    """Once: to standard error where ``POLYMUX_LOG`` names a level, else to the program's own."""
    import logging

    assert isinstance(logger, logging.Logger)  # noqa: S101 - for type checkers
    wanted = os.environ.get("POLYMUX_LOG", "").lower()
    if wanted in _LEVELS:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))
        logger.setLevel(_LEVELS[wanted])
        logger.addHandler(handler)
    else:
        logger.addHandler(logging.NullHandler())
