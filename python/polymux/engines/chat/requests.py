"""Requests of chats, made fit for a model: what it cannot do is told, or refused, before it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

#: Seen by nobody, it parts the letters that would be a token together.
_PARTING = "\u200b"


def check_tools(values: Mapping[str, Any], log: Callable[[str], None], *, known: bool) -> None:
    """Looks whether tools will be seen by the model.

    Args:
        log: Takes what is left out; it comes with the answer.
        known: Whether the model's template has a place for them.

    Raises:
        BadRequestError: A call is required that the model cannot make.
    """
    tools, choice = values.get("tools"), values.get("tool_choice")
    required = choice == "required" or isinstance(choice, dict)
    if required and not tools:
        raise bad_request("tool_choice requires a call, and there are no tools", "tool_choice")
    if known:
        return
    if tools and required:
        raise bad_request(
            "this model calls no tools, as the template of its chats has no place for them: choose "
            "one that does, or ask without tool_choice",
            "tool_choice",
        )
    if tools and choice != "none":
        log("tools: this model's template has no place for them, so it is not told of any")
    if any(one.get("tool_calls") for one in values.get("messages") or () if isinstance(one, dict)):
        log("messages: this model's template has no place for tool_calls: it is not told of them")


def plain_texts(
    messages: Sequence[Any], control: re.Pattern[str] | None, log: Callable[[str], None]
) -> list[Any]:
    """The messages with nothing in their texts that ends a message for the model.

    A model's control tokens are told from text by how they are spelled alone: who writes one would
    end a message in the middle and begin another, as whoever he likes.

    Args:
        control: What the tokens of the model look like, as `control_pattern` makes it.
        log: Takes what was changed; it comes with the answer.
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
        log(f"messages: {', '.join(found)[:200]} is a control token of this model, read as text")
    return read


def control_pattern(tokens: Sequence[str]) -> re.Pattern[str] | None:
    """What finds a model's control tokens in texts; None for a model without any."""
    long = sorted((one for one in tokens if len(one) > 1), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, long))) if long else None


def with_picture(messages: Sequence[Any], picture: Mapping[str, Any]) -> list[Any] | None:
    """The messages with a picture in the last of the user's; None where the user says nothing."""
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
    """The messages with other parts in the place of their pictures, in order."""

    def part_of(part: Any) -> Any:
        return replaced(part) if isinstance(part, dict) and "image_url" in part else part

    return [
        {**one, "content": [part_of(part) for part in one["content"]]}
        if isinstance(one, dict) and isinstance(one.get("content"), list)
        else one
        for one in messages
    ]


def named_tool(values: Mapping[str, Any]) -> list[Any]:
    """The one tool that `tool_choice` names: the library takes no names.

    Raises:
        BadRequestError: There is no such tool.
    """
    wanted = (values["tool_choice"].get("function") or {}).get("name")
    tools = values.get("tools") or []
    found = [one for one in tools if (one.get("function") or {}).get("name") == wanted]
    if not found:
        raise bad_request("tool_choice names a function that none of the tools has", "tool_choice")
    return found


def stops(wanted: Any, log: Callable[[str], None]) -> list[str]:
    """Texts that end an answer; an empty one would end it before it begins."""
    given = [wanted] if isinstance(wanted, str) else list(wanted or ())
    if "" in given:
        log("stop: the empty text ends nothing and is left out")
    return [one for one in given if one]
