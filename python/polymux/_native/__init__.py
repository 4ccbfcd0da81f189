"""The two extension modules, loaded when something of them is first used.

The modules of this folder alone import them.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any


def attribute_loader(
    module: str, names: dict[str, Any], failure: Callable[[ImportError], Exception]
) -> Callable[[str], object]:
    """A module's `__getattr__` (PEP 562) that reads from an extension module.

    A failed import is not remembered: the next use after a repair finds the module.

    Args:
        module: The extension module's full name.
        names: The globals of the module that asks, which keep what was found.
        failure: Makes the error that is raised if the import fails.
    """

    def load(name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            native = import_module(module)
        except ImportError as error:
            raise failure(error) from error
        value = names[name] = getattr(native, name)
        return value

    return load
