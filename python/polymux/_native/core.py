"""The native core module, loaded when something of it is first used."""

from typing import TYPE_CHECKING

from polymux._native import attribute_loader
from polymux._util.text import printable, shortened
from polymux.errors import MissingDependencyError


def _missing(error: ImportError) -> MissingDependencyError:
    reason = shortened(printable(str(error)))
    remedy = (
        "use it from the main interpreter, or from a process of its own"
        if "interpreter" in reason
        else "it belongs to every installation, so reinstall polymux for this Python"
    )
    return MissingDependencyError(
        f"the native core of polymux cannot be loaded ({reason}): {remedy}"
    )


if TYPE_CHECKING:
    from polymux._native._core import *  # noqa: F403 - the names of the stub
else:
    __getattr__ = attribute_loader("polymux._native._core", globals(), _missing)
