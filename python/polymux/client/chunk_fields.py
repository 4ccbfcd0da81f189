"""Members of a chat chunk that are parsed from its JSON on first use.

The native module calls these functions with the chunk's JSON as received.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from typing import Any

#: Members of the API. They are None if a server omits them.
_DECLARED = frozenset(
    {
        "annotations", "audio", "code", "content", "created", "delta", "executed_tools",
        "finish_reason", "function", "function_call", "id", "index", "logprobs", "message", "model",
        "name", "object", "reasoning", "reasoning_content", "refusal", "role", "service_tier",
        "system_fingerprint", "tool_calls", "type", "usage", "x_groq",
    }
)  # fmt: skip


class Fields(Mapping[str, Any]):
    """A JSON object whose members are also attributes.

    Nested objects are `Fields`, lists are tuples. Missing members of the API are None. Other
    missing names raise `AttributeError`.

    Example:
        >>> counts = Fields({"total_tokens": 7})
        >>> counts.total_tokens, counts["total_tokens"], counts
        (7, 7, Fields({'total_tokens': 7}))
    """

    __slots__ = ("_members",)
    _members: Mapping[str, Any]

    def __init__(self, members: Mapping[str, Any]) -> None:
        object.__setattr__(self, "_members", members)

    def __getattr__(self, name: str) -> Any:
        members = object.__getattribute__(self, "_members")
        if name in members:
            return view(members[name])
        if name in _DECLARED:
            return None
        raise AttributeError(f"unknown member {name!r} (known: {', '.join(members) or 'none'})")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: received data is read-only")

    def __getitem__(self, name: str) -> Any:
        return view(self._members[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._members)

    def __len__(self) -> int:
        return len(self._members)

    def __repr__(self) -> str:
        return f"Fields({self._members!r})"

    def __reduce__(self) -> tuple[type[Fields], tuple[dict[str, Any]]]:
        return Fields, (dict(self._members),)


def view(value: Any) -> Any:
    """Convert a JSON value: objects to `Fields`, lists to tuples."""
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list):
        return tuple(map(view, value))
    return value


def document(raw: bytes) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(raw)
    return parsed


def id(raw: bytes) -> Any:  # noqa: A001 - the member's name
    return document(raw).get("id")


def model(raw: bytes) -> Any:
    return document(raw).get("model")


def engine_model(raw: bytes) -> Any:
    return document(raw).get("engine_model")


def created(raw: bytes) -> Any:
    """Unix time in seconds."""
    found = document(raw).get("created")
    return whole(found) if isinstance(found, float) else found


def whole(number: float) -> int | None:
    """Convert a number that some servers send with a fraction."""
    return int(number) if math.isfinite(number) else None


def choices(raw: bytes) -> tuple[Any, ...]:
    found = document(raw).get("choices")
    return view(found) if isinstance(found, list) else ()


def _first_choice(raw: bytes) -> Mapping[str, Any]:
    """Return the choice with the lowest index, like the core."""
    found = [one for one in choices(raw) if isinstance(one, Fields)]
    return min(found, key=_index, default={})


def _index(choice: Mapping[str, Any]) -> int:
    index = choice.get("index")
    return index if isinstance(index, int) else 0


def tool_calls(raw: bytes) -> tuple[Any, ...]:
    """Return the partial tool calls of the first choice."""
    choice = _first_choice(raw)
    delta = choice.get("delta") or choice.get("message")
    return (delta.get("tool_calls") or ()) if isinstance(delta, Fields) else ()


def logprobs(raw: bytes) -> Any:
    return _first_choice(raw).get("logprobs")


def usage(raw: bytes) -> Any:
    """Return the token counts. Groq sends them in `x_groq`, and Moonshot in a choice."""
    members = document(raw)
    for holder in (members, members.get("x_groq"), *(members.get("choices") or ())):
        if isinstance(holder, dict) and isinstance(holder.get("usage"), dict):
            return view(holder["usage"])
    return None
