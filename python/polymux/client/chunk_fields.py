"""Members of a chat chunk that are read from its JSON when somebody asks for them.

The native module calls these functions with the chunk's JSON as it was received.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

#: Members that clients of this interface declare: None where a server leaves them out.
_DECLARED = frozenset(
    {
        "annotations", "audio", "code", "content", "created", "delta", "executed_tools",
        "finish_reason", "function", "function_call", "id", "index", "logprobs", "message", "model",
        "name", "object", "reasoning", "reasoning_content", "refusal", "role", "service_tier",
        "system_fingerprint", "tool_calls", "type", "usage", "x_groq",
    }
)  # fmt: skip


class Fields(Mapping[str, Any]):
    """A JSON object whose members are attributes, too.

    Objects inside are `Fields` again, lists are tuples. Members of the interface are None
    where they are missing; any other missing name is an `AttributeError`.

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
        raise AttributeError(f"there is no {name!r} here, only: {', '.join(members) or 'nothing'}")

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"cannot set {name!r}: what was received does not change")

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
    """A JSON value with attributes for members and tuples for lists."""
    if isinstance(value, dict):
        return Fields(value)
    if isinstance(value, list):
        return tuple(map(view, value))
    return value


def document(raw: bytes) -> dict[str, Any]:
    """The chunk as a dict."""
    parsed: dict[str, Any] = json.loads(raw)
    return parsed


def id(raw: bytes) -> Any:  # noqa: A001 - named as the member is
    """The answer's id."""
    return document(raw).get("id")


def model(raw: bytes) -> Any:
    """The model's name."""
    return document(raw).get("model")


def created(raw: bytes) -> Any:
    """Unix time in seconds."""
    return document(raw).get("created")


def choices(raw: bytes) -> tuple[Any, ...]:
    """All choices."""
    found = document(raw).get("choices")
    return view(found) if isinstance(found, list) else ()


def _first_choice(raw: bytes) -> Mapping[str, Any]:
    found = choices(raw)
    return found[0] if found and isinstance(found[0], Fields) else {}


def tool_calls(raw: bytes) -> tuple[Any, ...]:
    """Pieces of tool calls of the first choice."""
    choice = _first_choice(raw)
    delta = choice.get("delta") or choice.get("message")
    return (delta.get("tool_calls") or ()) if isinstance(delta, Fields) else ()


def logprobs(raw: bytes) -> Any:
    """Log probabilities of the first choice."""
    return _first_choice(raw).get("logprobs")


def usage(raw: bytes) -> Any:
    """Token counts; Groq sends them in a member of its own."""
    members = document(raw)
    groq = members.get("x_groq")
    return view(members.get("usage") or (groq.get("usage") if isinstance(groq, dict) else None))
