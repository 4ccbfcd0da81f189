"""Answers of the chat operations."""

from __future__ import annotations

from typing import Any

from polymux._util.html_repr import HtmlReprMixin, code, markdown
from polymux.client.responses._base import Response, Result, member, part, parts

_ORDINARY_ENDS = (None, "stop", "tool_calls", "function_call")


class Usage(HtmlReprMixin, Result):
    """What an answer took. What the server did not say is None.

    Attributes:
        prompt_tokens: Length of the conversation, in tokens.
        completion_tokens: Length of the answer, in tokens.
        total_tokens: Both together.
        prompt_time: Time to read the conversation, in seconds (Groq).
        completion_time: Time to write the answer, in seconds (Groq).
        total_time: Both together, in seconds (Groq).
        queue_time: Time waited before that, in seconds (Groq).
        prompt_tokens_details: Such as ``{"cached_tokens": 5}``.
        completion_tokens_details: Such as ``{"reasoning_tokens": 5}``.
    """

    __slots__ = ()
    _shown = ("prompt_tokens", "completion_tokens", "total_tokens")

    prompt_tokens: int | None = member("an integer")
    completion_tokens: int | None = member("an integer")
    total_tokens: int | None = member("an integer")
    prompt_time: float | None = member("a number")
    completion_time: float | None = member("a number")
    total_time: float | None = member("a number")
    queue_time: float | None = member("a number")
    prompt_tokens_details: dict[str, Any] | None = member("an object")
    completion_tokens_details: dict[str, Any] | None = member("an object")


class ToolFunction(HtmlReprMixin, Result):
    """The function that a tool call names.

    Attributes:
        name: Of the function; empty when not given.
        arguments: JSON text as the model wrote it, which need not be valid.
    """

    __slots__ = ()
    _shown = ("name", "arguments")

    name: str = member("a text", absent="")
    arguments: str = member("a text", absent="")


class ToolCall(HtmlReprMixin, Result):
    """A call that the model asks for.

    Attributes:
        id: To be named in the message with the tool's result; None when not given.
        type: ``"function"``, or what the server says.
        function: What to call.
    """

    __slots__ = ()
    _shown = ("id", "function")

    id: str | None = member("a text")
    type: str = member("a text", absent="function")
    function: ToolFunction = part(ToolFunction, made_of_nothing=True)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @property
    def arguments(self) -> str:
        """The function's arguments as JSON text."""
        return self.function.arguments


class AnswerMessage(Result):
    """A message that a model wrote.

    Attributes:
        role: ``"assistant"``.
        content: The text; None when there are only tool calls.
        reasoning: The thinking that led to it, where the server shows it.
        tool_calls: Calls that the model asks for; empty where there are none.
    """

    __slots__ = ()
    _shown = ("role", "content", "tool_calls")

    role: str = member("a text", absent="assistant")
    content: str | None = member("a text")
    reasoning: str | None = member("a text")
    tool_calls: tuple[ToolCall, ...] = parts(ToolCall)

    def _repr_markdown_(self) -> str:
        """The message as Markdown for notebooks; nothing in it is a tag or a link."""
        parts = [markdown(self.content)] if self.content else []
        for call in self.tool_calls:
            parts.append(markdown(f"Calls {call.name}:"))
            parts.append(code(call.arguments, "json"))
        return "\n\n".join(parts)


class Choice(Result):
    """One answer of a completion.

    Attributes:
        index: Number of the answer, from 0.
        message: The answer itself.
        finish_reason: ``"stop"``, ``"length"``, ``"tool_calls"``, ``"function_call"``,
            ``"content_filter"`` or None.
        logprobs: Log probabilities of its tokens; None when not asked for.
    """

    __slots__ = ()
    _shown = ("index", "finish_reason", "message")

    index: int = member("an integer", absent=0)
    finish_reason: str | None = member("a text")
    logprobs: dict[str, Any] | None = member("an object")
    message: AnswerMessage = part(AnswerMessage, required=True)

    def _repr_markdown_(self) -> str:
        """The answer as Markdown for notebooks; nothing in it is a tag or a link."""
        parts = [self.message._repr_markdown_()]
        if self.finish_reason not in _ORDINARY_ENDS:
            parts.append(f"*Ended by: {markdown(self.finish_reason or '')}*")
        return "\n\n".join(part for part in parts if part)


class ChatCompletion(Response):
    """A whole answer of a chat model: the shape of OpenAI's and Groq's chat completion.

    Attributes:
        id: Identifier of the completion.
        object: ``"chat.completion"``.
        created: When it was made, in seconds since 1970.
        model: The model that answered.
        choices: The answers, at least one.
        usage: What it took; None when the server does not say.
        system_fingerprint: Identifies the configuration that the model ran with.
        service_tier: Class of service that was used.
        x_groq: Groq's own identifiers and counts.

    Example:
        >>> import polymux
        >>> body = b'{"choices": [{"message": {"role": "assistant", "content": "Hello!"}}]}'
        >>> polymux.ChatCompletion.decode(body).text
        'Hello!'
    """

    __slots__ = ()
    _shown = ("id", "model", "finish_reason", "text")

    id: str | None = member("a text")
    object: str | None = member("a text")
    created: int | None = member("an integer")
    model: str | None = member("a text")
    system_fingerprint: str | None = member("a text")
    service_tier: str | None = member("a text")
    x_groq: dict[str, Any] | None = member("an object")
    choices: tuple[Choice, ...] = parts(Choice, required=True)
    usage: Usage | None = part(Usage)

    @property
    def message(self) -> AnswerMessage:
        """The message of the first answer."""
        return self.choices[0].message

    @property
    def content(self) -> str | None:
        """The text of the first answer; None when there are only tool calls."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text of the first answer; empty when there are only tool calls."""
        return self.message.content or ""

    @property
    def reasoning(self) -> str | None:
        """The thinking that led to the first answer, where the server shows it."""
        return self.message.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls that the first answer asks for."""
        return self.message.tool_calls

    @property
    def finish_reason(self) -> str | None:
        """Why the first answer ended."""
        return self.choices[0].finish_reason

    def _repr_markdown_(self) -> str:
        """The answers as Markdown for notebooks; nothing in them is a tag or a link."""
        return "\n\n---\n\n".join(one._repr_markdown_() for one in self.choices)
