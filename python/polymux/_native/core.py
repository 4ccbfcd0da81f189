"""The native core module, loaded when something of it is first used."""

from typing import TYPE_CHECKING

from polymux._util.text import printable, shortened
from polymux.errors import MissingDependencyError

if TYPE_CHECKING:
    from polymux._native._core import *  # noqa: F403 - the names of the stub
else:

    def __getattr__(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            from polymux._native import _core
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
        value = globals()[name] = getattr(_core, name)
        return value
