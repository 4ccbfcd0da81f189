"""Normalize whole chat responses of OpenAI-compatible servers for polymux clients."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from polymux._native import core
from polymux._native.json_numbers import finite
from polymux.client.responses import ChatCompletion
from polymux.errors import DecodeError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    Kinds = Mapping[str, Callable[[Any], Any]]

#: Maximum absolute value of an integer converted from a float or text.
_LARGEST = 1 << 53


def mended(value: Any) -> dict[str, Any]:
    """Normalize a whole chat response; a valid one stays unchanged.

    Converts wrong types if possible: a float to an integer, text parts to one text, tool arguments
    to JSON text. Other invalid members become null, except the answer itself. Unknown members stay.

    Args:
        value: The parsed response. It is modified.

    Raises:
        DecodeError: It is not a chat completion: choices are missing, or a message, text or tool
            call is invalid.

    Example:
        >>> from polymux.upstreams.openai.completions import mended
        >>> mended({"created": 1.0, "choices": [{"message": {"content": "Hi"}, "logprobs": []}]})
        {'created': 1, 'choices': [{'message': {'content': 'Hi'}, 'logprobs': None}]}
    """
    if not isinstance(value, dict):
        ChatCompletion(value)  # Raises.
    whole: dict[str, Any] = value
    for choice in _objects(whole.get("choices"), "choices"):
        _mend(choice, _CHOICE)
        _mend_message(choice.get("message"))
    _mend(whole, _ANSWER)
    _mend(whole.get("usage") or {}, _USAGE)
    ChatCompletion(whole)
    return whole


def _mend_message(message: Any) -> None:
    if not isinstance(message, dict):
        raise DecodeError("message: must be an object")
    text, thinking = _spoken(message.get("content"))
    if isinstance(message.get("content"), list):
        if thinking and message.get("reasoning") is None:
            message["reasoning"] = thinking
        message["content"] = text
    _mend(message, _MESSAGE)
    for call in _objects(message.get("tool_calls") or [], "tool_calls"):
        _mend(call, _CALL)
        if isinstance(call.get("function"), dict):
            _mend(call["function"], _FUNCTION)


def _objects(values: Any, name: str) -> list[dict[str, Any]]:
    if isinstance(values, list) and all(isinstance(one, dict) for one in values):
        return values
    raise DecodeError(f"{name}: must be an array of objects")


def _mend(value: dict[str, Any], kinds: Kinds) -> None:
    for name, made in kinds.items():
        if value.get(name) is not None:
            value[name] = made(value[name])


def _spoken(content: Any) -> tuple[str, str]:
    """Return text and thinking of a content that is an array of parts."""
    text, thinking = [], []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict) and isinstance(part.get("text"), str):
            text.append(part["text"])
        elif isinstance(part, dict) and "thinking" in part:
            inner = part["thinking"]
            thinking.append(inner if isinstance(inner, str) else _spoken(inner)[0])
    return "".join(text), "".join(thinking)


def _text(value: Any) -> str | None:
    number = finite(value)
    return value if isinstance(value, str) else None if number is None else f"{value}"


def _integer(value: Any) -> int | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    if isinstance(value, str) and value.isascii() and value.isdigit():
        value = float(value)
    number = finite(value)
    return None if number is None or abs(number) > _LARGEST else int(number)


def _number(value: Any) -> Any:
    return None if finite(value) is None else value


def _object(value: Any) -> dict[str, Any] | None:
    return value if isinstance(value, dict) else None


def _arguments(value: Any) -> Any:
    """Convert to JSON text, the format of the polymux API."""
    if not isinstance(value, (dict, list)):
        return value

    return core.write_json(value).decode()


_ANSWER: Kinds = {
    "id": _text,
    "object": _text,
    "created": _integer,
    "model": _text,
    "system_fingerprint": _text,
    "service_tier": _text,
    "x_groq": _object,
    "usage": _object,
}
_CHOICE: Kinds = {"index": _integer, "finish_reason": _text, "logprobs": _object}
_MESSAGE: Kinds = {"role": _text, "reasoning": _text}
_CALL: Kinds = {"id": _text, "type": _text}
_FUNCTION: Kinds = {"name": _text, "arguments": _arguments}
_USAGE: Kinds = {
    "prompt_tokens": _integer,
    "completion_tokens": _integer,
    "total_tokens": _integer,
    "prompt_time": _number,
    "completion_time": _number,
    "total_time": _number,
    "queue_time": _number,
    "prompt_tokens_details": _object,
    "completion_tokens_details": _object,
}


#: Matches every escape in order, so an escaped backslash cannot start another; pairs match as one.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"
    rb"|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_REPLACEMENT = rb"\ufffd"


def replace_lone_surrogates(data: bytes) -> bytes:
    r"""Replace each lone surrogate escape in JSON by U+FFFD, as done for streams.

    Args:
        data: JSON; other bytes stay nearly unchanged.

    Example:
        >>> from polymux.upstreams.openai.completions import replace_lone_surrogates
        >>> replace_lone_surrogates(rb'["\ud83d", "\ud83d\ude00", "\\ud83d"]')
        b'["\\ufffd", "\\ud83d\\ude00", "\\\\ud83d"]'
    """
    return _ESCAPE.sub(lambda found: found[0] if found[1] is None else _REPLACEMENT, data)
