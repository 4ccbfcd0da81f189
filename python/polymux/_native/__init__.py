"""The two extension modules, loaded on first use.

Only the modules of this package import them.
"""

from __future__ import annotations

from importlib import import_module

from polymux._util.imports import IMPORTING

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attribute_loader(
    module: str, names: dict[str, Any], failure: Callable[[ImportError], Exception]
) -> Callable[[str], object]:
    """Return a module's `__getattr__` (PEP 562) that reads from an extension module.

    Failed imports are not cached: after a repair, the next use succeeds.

    Args:
        module: Full name of the extension module.
        names: Globals of the calling module, which cache the values.
        failure: Creates the exception for a failed import.
    """

    def load(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            with IMPORTING:
                native = import_module(module)
        except ImportError as error:
            raise failure(error) from error
        value = names[name] = getattr(native, name)
        return value

    return load
