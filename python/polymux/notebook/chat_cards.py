"""What answers of chats look like in a notebook: Markdown that is harmless."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.notebook.markup import code, markdown

if TYPE_CHECKING:
    from polymux.responses import ChatCompletion, Choice

__all__ = ["chat_completion"]

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
    return "\n\n---\n\n".join(_choice(choice) for choice in answer.choices)


def _choice(choice: Choice) -> str:
    parts = [markdown(choice.message.content)] if choice.message.content else []
    for call in choice.message.tool_calls:
        parts.append(markdown(f"Calls {call.name}:"))
        parts.append(code(call.arguments, "json"))
    if choice.finish_reason not in _ORDINARY_ENDS:
        parts.append(f"*Ended by: {markdown(choice.finish_reason or '')}*")
    return "\n\n".join(parts)
