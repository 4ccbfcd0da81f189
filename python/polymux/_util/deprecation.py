"""Deprecated names of arguments, attributes, settings, classes and modules, until 0.3."""

from __future__ import annotations

import functools
import warnings

TYPE_CHECKING = bool()  # see polymux/__init__.py
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from importlib.machinery import ModuleSpec
    from types import ModuleType
    from typing import Any, TypeVar

    _Target = TypeVar("_Target", bound=Callable[..., Any])


def notice(old: str, new: str) -> str:
    """Return the warning about a deprecated name."""
    return f"{old} is deprecated and will be removed in polymux 0.3. Use {new}"


def warn_of_old_name(module: str, old: str, new: str) -> None:
    """Warn at the place that reads a deprecated name from a module with `__getattr__`."""
    warnings.warn(notice(f"{module}.{old}", f"{module}.{new}"), DeprecationWarning, stacklevel=3)


class RenamedAttribute:
    """The deprecated name of an attribute of an immutable value."""

    def __init__(self, old: str, new: str) -> None:
        self._old = old
        self._new = new

    def __get__(self, owner: object, kind: type | None = None) -> Any:
        if owner is None:
            return self
        warnings.warn(notice(self._old, self._new), DeprecationWarning, stacklevel=2)
        return getattr(owner, self._new)


def renamed_arguments(**new_names: str) -> Callable[[_Target], _Target]:
    """Let a function accept deprecated names of keyword arguments: ``old="new"``.

    For a class, this applies to the constructor's arguments and the attributes. `new_names_of`
    returns the names for code that reads such a class from a file.
    """

    def decorate(target: _Target) -> _Target:
        if not isinstance(target, type):
            wrapped: Any = _accepting(target, new_names)
            return wrapped  # type: ignore[no-any-return]
        target.__init__ = _accepting(target.__init__, new_names)  # type: ignore[misc]
        for old, new in new_names.items():
            setattr(target, old, RenamedAttribute(old, new))
        target._new_names = new_names  # type: ignore[attr-defined]  # noqa: SLF001
        return target

    return decorate


def new_names_of(kind: type) -> Mapping[str, str]:
    """Return the mapping of old to new names of a class with `renamed_arguments`, else empty."""
    found: Mapping[str, str] = getattr(kind, "_new_names", {})
    return found


def _accepting(function: Callable[..., Any], new_names: Mapping[str, str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        for old, new in new_names.items():
            if old not in named:
                continue
            if new in named:
                raise TypeError(f"{old} and {new} are the same argument. Use only {new}")
            warnings.warn(notice(old, new), DeprecationWarning, stacklevel=2)
            named[new] = named.pop(old)
        return function(*arguments, **named)

    return call


def with_new_keys(
    found: Mapping[str, Any],
    new_names: Mapping[str, str],
    warn: Callable[[str], object],
    prefix: str = "",
) -> dict[str, Any]:
    """Return settings under their new names; `warn` gets a line for each old one, with `prefix`.

    If both names are used, the new one wins.
    """
    renamed = {}
    for old, new in new_names.items():
        if old in found:
            warn(notice(prefix + old, prefix + new))
            renamed[new] = found[old]
    return renamed | {name: value for name, value in found.items() if name not in new_names}


#: Documented import paths of 0.1.
_MODULES = {
    "polymux.fetching": "polymux.fetch",
    "polymux.request": "polymux.client.request",
    "polymux.upstreams.replicate_server": "polymux.upstreams.replicate.client",
    "polymux.upstreams.server": "polymux.upstreams.client",
}


def spec_of(name: str) -> ModuleSpec | None:
    """Return the spec of a renamed module by its old name; None for other names."""
    if name not in _MODULES:
        return None
    from importlib.machinery import ModuleSpec

    return ModuleSpec(name, _ModuleAlias())  # type: ignore[arg-type]


class _ModuleAlias:
    """Loads a module under its old name with the contents of the new one."""

    def create_module(self, spec: ModuleSpec) -> None:
        """Use importlib's default."""

    def exec_module(self, module: ModuleType) -> None:
        """Copy the names, and warn at the place of the import."""
        from importlib import import_module

        new = _MODULES[module.__name__]
        warnings.warn(notice(module.__name__, new), DeprecationWarning, stacklevel=2)
        found = vars(import_module(new))
        vars(module).update({name: one for name, one in found.items() if name[:2] != "__"})
