"""The native core module, loaded on first use."""

from typing import TYPE_CHECKING

from polymux._native import attribute_loader, errors, json_numbers  # noqa: F401 - the core calls them
from polymux._util.text import printable, shortened
from polymux.errors import MissingDependencyError


def _missing(error: ImportError) -> MissingDependencyError:
    reason = shortened(printable(str(error)))
    remedy = (
        "Use polymux in the main interpreter or in a separate process"
        if "interpreter" in reason
        else "Reinstall polymux for this Python version"
    )
    return MissingDependencyError(f"native core of polymux: cannot be loaded ({reason}). {remedy}")


if TYPE_CHECKING:
    from polymux._native._core import *  # noqa: F403 - the names of the stub
else:
    __getattr__ = attribute_loader("polymux._native._core", globals(), _missing)
