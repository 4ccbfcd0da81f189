"""Chats as models that turn a prompt into text, as Replicate has them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.text import printable, shortened
from polymux.server.compat.replicate.errors import invalid_input
from polymux.server.compat.replicate.models import documents

if TYPE_CHECKING:
    from collections.abc import Mapping

_MAX_NAMED_FIELDS = 20
#: Fields of the operation that the input has by other names.
_SENT_AS = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
#: Inputs that the operations do not have.
_OWN = frozenset(("prompt", "system_prompt", "messages", "max_tokens", "stop_sequences"))


def chat_body(
    operation: str, given: Mapping[str, Any], model: str | None
) -> tuple[dict[str, Any], list[str]]:
    """An input in the operation's own words.

    Args:
        operation: One of `CHATS`.
        given: The input, without nulls.
        model: The chat model that the name of the model says; None where the input may say it.

    Returns:
        The operation's body, which the contract is still to check; and what was left out of it.

    Raises:
        UnprocessableEntityError: Neither prompt nor messages is given, or both are.

    Example:
        >>> body, warnings = chat_body("free_chat", {"prompt": "Hi", "top_k": 40}, None)
        >>> body
        {'stream': True, 'messages': [{'role': 'user', 'content': 'Hi'}]}
        >>> warnings
        ['top_k: is not known here and was left out']
    """
    body: dict[str, Any] = {"stream": True, "messages": _messages(given)}
    if operation == "chat":
        body |= {"model": model or given.get("model", "default")}
        # The count of its tokens comes with the last piece.
        body["stream_options"] = {"include_usage": True}
        if "max_tokens" in given:
            body["max_completion_tokens"] = given["max_tokens"]
        stops = _stops(given.get("stop_sequences", ""))
        if stops != []:  # An empty text is what many models have for none.
            body["stop"] = stops
    name = "chat" if model is not None else f"polymux/{operation.replace('_', '-')}"
    known = documents()[name]["components"]["schemas"]["Input"]["properties"].keys()
    body |= {name: given[name] for name in known if name in given and name not in _OWN}
    refused = set(contract.describe(operation)[0].get("refused_fields", ()))
    body |= {name: given[name] for name in refused & given.keys()}
    unknown = [one for one in given if one not in {*known, *refused}]
    names = [shortened(printable(one)) for one in unknown[:_MAX_NAMED_FIELDS]]
    return body, [f"{one}: is not known here and was left out" for one in names]


def in_words_of(given: Mapping[str, Any], text: str) -> str:
    """Rename the operation's fields in a message to the names of the request.

    Args:
        given: The input.
        text: A field's name, or a message in which names of fields stand.

    Example:
        >>> in_words_of({"max_tokens": 0}, "max_completion_tokens=0: must be from 1")
        'max_tokens=0: must be from 1'
    """
    for field, name in _SENT_AS.items():
        if name in given:
            text = re.sub(rf"\b{field}\b(?=[=:\[]|$)", name, text)
    return text


def _messages(given: Mapping[str, Any]) -> Any:
    messages = given.get("messages")
    if isinstance(messages, str):
        # Clients whose inputs are plain values alone send it so.
        try:
            messages = json.loads(messages)
        except (ValueError, RecursionError):
            raise invalid_input("messages: is no JSON", "messages") from None
    if (messages is None) == ("prompt" not in given):
        raise invalid_input("prompt: either prompt or messages is given", "prompt")
    if messages is not None:
        if "system_prompt" in given:
            raise invalid_input(
                "system_prompt: stands beside prompt; of messages it is the first", "system_prompt"
            )
        return messages
    for name in ("prompt", "system_prompt"):
        if not isinstance(given.get(name, ""), str):
            raise invalid_input(f"{name}: must be a text", name)
    said = [{"role": "user", "content": given["prompt"]}]
    if given.get("system_prompt"):
        said.insert(0, {"role": "system", "content": given["system_prompt"]})
    return said


def _stops(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    return [one for one in given.split(",") if one]
