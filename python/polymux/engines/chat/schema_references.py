"""Where references of JSON schemas lead: to what llama.cpp follows, and no further."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

#: No list that is read has more places.
_MAX_DIGITS = 6


def referred(root: Any, reference: str) -> Any:
    """What a reference leads to; None where it leads nowhere.

    The library takes names as they are written. With ``~1`` and ``~0`` in the place of ``/`` and
    ``~``, as RFC 6901 has it, it finds nothing, and refuses the schema.

    Args:
        root: The whole schema.
        reference: Such as ``#/$defs/node``.

    Example:
        >>> from polymux.engines.chat.schema_references import referred
        >>> referred({"x": [{"type": "null"}]}, "#/x/0")
        {'type': 'null'}
    """
    led = [root, *(found for _, _, found in _steps(root, reference))]
    return led[-1]


def odd_step(root: Any, reference: str) -> str | None:
    """The name by which a reference goes into a list, where that is no number.

    The library reads the beginning of one: ``0x`` is the first place to it.
    """
    steps = _steps(root, reference)
    into = (name for place, name, _ in steps if isinstance(place, list) and not _is_index(name))
    return next(into, None)


def _steps(root: Any, reference: str) -> Iterator[tuple[Any, str, Any]]:
    """Where each step begins, what it goes by, and where it leads."""
    place = root
    for name in reference.removeprefix("#").split("/")[1:]:
        found = None
        if isinstance(place, dict):
            found = place.get(name, place.get(name.replace("~1", "/").replace("~0", "~")))
        elif isinstance(place, list) and _is_index(name) and int(name) < len(place):
            found = place[int(name)]
        yield place, name, found
        place = found


def _is_index(name: str) -> bool:
    return name.isascii() and name.isdecimal() and len(name) <= _MAX_DIGITS
