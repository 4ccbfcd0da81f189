"""Plain values of a file of settings, as the fields that they are for have them."""

from __future__ import annotations

from pathlib import Path
from typing import Any


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
        return "a number above 0"
    if "int" in kind:
        return "a whole number, 0 or above"
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
        return number and value > 0, value  # type: ignore[operator]
    if "int" in kind:
        whole = isinstance(value, int) and not isinstance(value, bool)
        return whole and value >= 0, value  # type: ignore[operator]
    if "Path" in kind:
        return isinstance(value, str), Path(value).expanduser() if isinstance(value, str) else None
    return isinstance(value, str), value
