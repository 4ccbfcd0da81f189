"""Plain values of a file of settings, as the fields that they are for have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

#: Times, rates and shares. Clocks and timers take no more than this, and nobody means less.
_MIN_NUMBER, _LARGEST_NUMBER = 1e-9, 1e10
#: Of 64 bits, as databases, files and the system have them.
_LARGEST_INTEGER = (1 << 63) - 1


def right_for(kind: str) -> str:
    """A type, in words."""
    if "bool" in kind:
        return "true or false"
    if "tuple[int" in kind:
        return "an array of whole numbers"
    if "tuple" in kind:
        return "an array of texts"
    if "Mapping" in kind:
        return "a table"
    if "float" in kind:
        return f"a number above 0, up to {_LARGEST_NUMBER:.0e}"
    if "int" in kind:
        return f"a whole number from 0 to {_LARGEST_INTEGER}"
    if "Path" in kind:
        return "the path of a file or folder"
    return "a text"


def converted(kind: str, value: object) -> tuple[bool, Any]:
    """Whether a value is of a field's type, and what is kept of it."""
    if "bool" in kind:
        return isinstance(value, bool), value
    if "tuple[int" in kind:
        numbers = isinstance(value, list) and all(type(one) is int for one in value)
        return numbers, tuple(value) if isinstance(value, list) else ()
    if "tuple" in kind:
        texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
        return texts, tuple(value) if isinstance(value, list) else ()
    if "Mapping" in kind:
        return isinstance(value, dict), value
    if "float" in kind:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return number and _MIN_NUMBER <= value <= _LARGEST_NUMBER, value  # type: ignore[operator]
    if "int" in kind:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and 0 <= value <= _LARGEST_INTEGER, value  # type: ignore[operator]
    if "Path" in kind:
        return _path(value)
    return isinstance(value, str), value


def _path(value: object) -> tuple[bool, Path | None]:
    if not isinstance(value, str) or "\0" in value:
        return False, None
    try:
        return True, Path(value).expanduser()
    except RuntimeError:  # There is nobody whose home folder is meant.
        return False, None
