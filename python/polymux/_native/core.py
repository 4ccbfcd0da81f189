"""The one place that loads the native core module; import `core` from here, inside a function."""

from polymux._util.text import printable, shortened
from polymux.errors import MissingDependencyError

try:
    import polymux._native._core as core
except ImportError as error:
    reason = shortened(printable(str(error)))
    remedy = (
        "use it from the main interpreter, or from a process of its own"
        if "interpreter" in reason
        else "it belongs to every installation, so reinstall polymux for this Python"
    )
    raise MissingDependencyError(
        f"the native core of polymux cannot be loaded ({reason}): {remedy}"
    ) from error

__all__ = ["core"]
