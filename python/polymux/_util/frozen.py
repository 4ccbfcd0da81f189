"""Immutable values of a few attributes."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Any, Self


class Frozen:
    """An immutable value with the attributes in its class's ``__slots__``.

    Values are equal if their class and attributes are equal. They can be hashed, copied and
    pickled. `_hidden` names attributes whose values `repr` hides.
    """

    __slots__ = ()
    _hidden: tuple[str, ...] = ()

    def _set(self, **values: object) -> None:
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def _values(self) -> dict[str, Any]:
        names: tuple[str, ...] = type(self).__slots__
        return {name: getattr(self, name) for name in names}

    def _replace(self, **changes: object) -> Self:
        """Return a copy with changed values, without validation."""
        made = object.__new__(type(self))
        made._set(**(self._values() | changes))
        return made

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{type(self).__name__}: cannot be changed")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__}: cannot be changed")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self._values() == other._values()

    def __hash__(self) -> int:
        return hash((type(self), *self._values().values()))

    def __repr__(self) -> str:
        shown = (
            f"{name}={'***' if name in self._hidden and value is not None else repr(value)}"
            for name, value in self._values().items()
        )
        return f"{type(self).__name__}({', '.join(shown)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self._values())


def _restored(kind: type[Frozen], values: dict[str, Any]) -> Frozen:
    made = object.__new__(kind)
    made._set(**values)
    return made
