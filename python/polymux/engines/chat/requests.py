"""Preparation of chat requests: unsupported parts are reported or rejected."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import shown
from polymux.service.errors import bad_request, status_error

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: An invisible character. Inside a control token it turns the token into normal text.
_PARTING = "\u200b"


#: More than the average of any text. Only long runs of spaces have more.
_MAX_CHARACTERS_PER_TOKEN = 32
_MAX_LOGIT_BIASES = 10_000


def check_sizes(values: Mapping[str, Any], window_tokens: int | None) -> None:
    """Reject what the model cannot use, before the engine gets it.

    The engine would render and tokenize all of it first, which takes a minute for 30 MB.

    Args:
        values: Request fields.
        window_tokens: Context length of the model; None if unknown.

    Raises:
        BadRequestError: The messages are too long (code ``context_length_exceeded``), or
            `logit_bias` has too many entries.
    """
    biases = len(values.get("logit_bias") or ())
    if biases > _MAX_LOGIT_BIASES:
        raise bad_request(
            f"logit_bias: too many tokens (got {biases}, allowed {_MAX_LOGIT_BIASES})", "logit_bias"
        )
    if window_tokens is None:
        return
    # Each message and each part is at least one token.
    left = window_tokens * _MAX_CHARACTERS_PER_TOKEN
    waiting: list[Any] = [values.get("messages") or ()]
    while waiting and left >= 0:
        one = waiting.pop()
        if isinstance(one, str):
            left -= len(one)
        elif isinstance(one, dict):
            left -= _MAX_CHARACTERS_PER_TOKEN
            waiting += (value for name, value in one.items() if name != "image_url")
        elif isinstance(one, list | tuple):
            left -= len(one)
            waiting += one[: max(0, left)]
    if left < 0:
        raise status_error(
            errors.BadRequestError,
            f"messages: too long for this model (allowed {window_tokens} tokens). Send less text, "
            "or use a model with a larger context",
            code="context_length_exceeded",
            param="messages",
        )


def requires_call(values: Mapping[str, Any]) -> bool:
    """Whether `tool_choice` requires a call, of any tool or of a named one."""
    choice = values.get("tool_choice")
    return choice == "required" or isinstance(choice, dict)


def check_tools(values: Mapping[str, Any], log: Callable[[str], None], *, known: bool) -> None:
    """Check whether the model supports tools.

    Args:
        values: Request fields.
        log: Called with ignored parts; the messages are returned with the response.
        known: Whether the model's chat template supports tools.

    Raises:
        BadRequestError: A tool call is required, but the model does not support tools.
    """
    tools, choice = values.get("tools"), values.get("tool_choice")
    required, form = requires_call(values), values.get("response_format")
    if required and not tools:
        raise bad_request(
            "tool_choice: requires a tool call, but the field tools is missing or empty",
            "tool_choice",
        )
    if known:
        has_form = isinstance(form, dict) and form.get("type") != "text"
        if tools and has_form and not required and choice != "none":
            log(
                "tools: not called, because response_format defines the answer. Omit "
                "response_format, or require a call with tool_choice"
            )
        return
    if tools and required:
        raise bad_request(
            "tool_choice: the chat template of this model does not support tools. Use another "
            "model, or omit tool_choice",
            "tool_choice",
        )
    if tools and choice != "none":
        log("tools: not supported by this model's chat template, ignored")
    if any(one.get("tool_calls") for one in values.get("messages") or () if isinstance(one, dict)):
        log("messages: tool_calls are not supported by this model's chat template, ignored")


def plain_texts(
    messages: Sequence[Any], control: re.Pattern[str] | None, log: Callable[[str], None]
) -> list[Any]:
    """Neutralize control tokens in the texts of messages.

    A model distinguishes control tokens from text only by their spelling. A client that writes one
    could end a message and begin another one in any role.

    Args:
        messages: Messages of the request.
        control: Pattern of the model's control tokens from `control_pattern`.
        log: Called with the changes; the messages are returned with the response.
    """
    found: dict[str, None] = {}

    def parted(match: re.Match[str]) -> str:
        found.setdefault(match[0])
        return match[0][0] + _PARTING + match[0][1:]

    def plain(value: Any) -> Any:
        if control is None:
            return value
        if isinstance(value, str):
            return control.sub(parted, value)
        if isinstance(value, list):
            return [plain(one) for one in value]
        if isinstance(value, dict) and "image_url" not in value:
            return {name: plain(one) for name, one in value.items()}
        return value

    read = [
        {name: one if name == "role" else plain(one) for name, one in each.items()}
        if isinstance(each, dict)
        else each
        for each in messages
    ]
    if found:
        log(f"messages: control tokens of this model are treated as text: {', '.join(found)[:200]}")
    return read


def control_pattern(tokens: Sequence[str]) -> re.Pattern[str] | None:
    """Return a pattern that matches a model's control tokens; None without tokens."""
    long = sorted((one for one in tokens if len(one) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, long))) if long else None


def with_system(messages: Sequence[Any], prompt: str) -> list[Any]:
    """Add a system message, unless there is a system or developer message."""
    roles = {one.get("role") for one in messages if isinstance(one, dict)}
    first = [] if roles & {"system", "developer"} else [{"role": "system", "content": prompt}]
    return [*first, *messages]


def with_picture(messages: Sequence[Any], picture: Mapping[str, Any]) -> list[Any] | None:
    """Add an image to the last user message. None if there is no user message."""
    for number in range(len(messages) - 1, -1, -1):
        if messages[number].get("role") == "user":
            text = {"type": "text", "text": messages[number].get("content") or ""}
            content = [text, {"type": "image_url", "image_url": picture}]
            changed = {**messages[number], "content": content}
            return [*messages[:number], changed, *messages[number + 1 :]]
    return None


def with_parts(
    messages: Sequence[Any], replaced: Callable[[dict[str, Any]], dict[str, Any]]
) -> list[Any]:
    """Replace the images in messages, in order."""

    def part_of(part: Any) -> Any:
        return replaced(part) if isinstance(part, dict) and "image_url" in part else part

    return [
        {**one, "content": [part_of(part) for part in one["content"]]}
        if isinstance(one, dict) and isinstance(one.get("content"), list)
        else one
        for one in messages
    ]


def named_tool(values: Mapping[str, Any]) -> list[Any]:
    """Return the tool that `tool_choice` names, because the library does not support names.

    Raises:
        BadRequestError: The tool does not exist.
    """
    wanted = (values["tool_choice"].get("function") or {}).get("name")
    tools = values.get("tools") or []
    found = [one for one in tools if (one.get("function") or {}).get("name") == wanted]
    if not found:
        raise bad_request(
            f"tool_choice: unknown function {shown(wanted)}. Use the name of a function in tools",
            "tool_choice",
        )
    return found


def stops(wanted: Any, log: Callable[[str], None]) -> list[str]:
    """Return the stop texts. An empty one is removed, because it would match immediately."""
    given = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if "" in given:
        log("stop: an empty text is ignored")
    return [one for one in given if one]
