"""The one place that loads the native core module; import `core` from here, inside a function."""

from polymux._text import printable, shortened
from polymux.errors import MissingDependencyError

try:
    import polymux._core as core
except ImportError as error:
    raise MissingDependencyError(
        f"the native core of polymux cannot be loaded ({shortened(printable(str(error)))}): it "
        "belongs to every installation, so reinstall polymux for this Python"
    ) from error

__all__ = ["core"]
