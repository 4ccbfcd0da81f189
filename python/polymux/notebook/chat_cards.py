"""What answers of chats look like in a notebook: Markdown that is harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.notebook.markup import code, markdown

if TYPE_CHECKING:
    from polymux.client.responses import AnswerMessage, ChatCompletion, Choice

__all__ = ["chat_completion", "choice", "message"]

_ORDINARY_ENDS = (None, "stop", "tool_calls", "function_call")


def chat_completion(answer: ChatCompletion) -> str:
    """The answers, one below the other, with the calls they ask for and how they ended.

    Example:
        >>> import polymux
        >>> from polymux.notebook.chat_cards import chat_completion
        >>> body = b'{"choices": [{"message": {"content": "# Hello"}, "finish_reason": "length"}]}'
        >>> print(chat_completion(polymux.ChatCompletion.decode(body)))
        # Hello
        <BLANKLINE>
        *Ended by: length*
    """
    return "\n\n---\n\n".join(choice(one) for one in answer.choices)


def choice(one: Choice) -> str:
    """One answer: what was written, the calls it asks for, and how it ended."""
    parts = [message(one.message)]
    if one.finish_reason not in _ORDINARY_ENDS:
        parts.append(f"*Ended by: {markdown(one.finish_reason or '')}*")
    return "\n\n".join(part for part in parts if part)


def message(one: AnswerMessage) -> str:
    """What was written, and the calls it asks for."""
    parts = [markdown(one.content)] if one.content else []
    for call in one.tool_calls:
        parts.append(markdown(f"Calls {call.name}:"))
        parts.append(code(call.arguments, "json"))
    return "\n\n".join(parts)
