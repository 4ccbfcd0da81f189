"""Results of the chat operations."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux._native import core
from polymux._util.html_repr import HtmlReprMixin, code, markdown
from polymux.client.responses._base import Response, Result, member, part, parts

if TYPE_CHECKING:
    from collections.abc import Iterator

_ORDINARY_ENDS = (None, "stop", "tool_calls", "function_call")


class Usage(HtmlReprMixin, Result):
    """Token counts and times of an answer. Values that the server did not send are None.

    Attributes:
        prompt_tokens: Number of tokens in the conversation.
        completion_tokens: Number of tokens in the answer.
        total_tokens: Sum of both.
        prompt_time: Time to process the conversation, in seconds (Groq).
        completion_time: Time to generate the answer, in seconds (Groq).
        total_time: Sum of both, in seconds (Groq).
        queue_time: Time in the queue before processing started, in seconds (Groq).
        prompt_tokens_details: Details, such as ``{"cached_tokens": 5}``.
        completion_tokens_details: Details, such as ``{"reasoning_tokens": 5}``.
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
    """The function of a tool call.

    Attributes:
        name: The function's name; empty if missing.
        arguments: Arguments as JSON text from the model, which may be invalid JSON.
    """

    __slots__ = ()
    _shown = ("name", "arguments")

    name: str = member("a string", absent="")
    # Some servers send an object.
    arguments: str = member(
        "a string", absent="", converted=(dict, lambda value: core.write_json(value).decode())
    )


class ToolCall(HtmlReprMixin, Result):
    """A tool call that the model makes.

    Attributes:
        id: ID to repeat in the message with the tool's result; None if missing.
        type: Type of the tool; ``"function"`` if missing.
        function: The function to call.
    """

    __slots__ = ()
    _shown = ("id", "function")

    id: str | None = member("a string")
    type: str = member("a string", absent="function")
    function: ToolFunction = part(ToolFunction, made_of_nothing=True)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @property
    def arguments(self) -> str:
        """The function's arguments as JSON text."""
        return self.function.arguments


def _texts(parts: list[Any], name: str) -> Iterator[str]:
    """Yield the texts in the member `name` of content parts; it may have parts, too."""
    for one in parts:
        text = one.get(name) if isinstance(one, dict) else None
        if isinstance(text, str):
            yield text
        elif isinstance(text, list):
            yield from _texts(text, "text")


class AnswerMessage(Result):
    """A message that a model generated.

    Attributes:
        role: ``"assistant"``.
        content: The text; None if there are only tool calls.
        reasoning: The reasoning that led to the answer, if the server returns it.
        tool_calls: Tool calls that the model makes; may be empty.
    """

    __slots__ = ()
    _shown = ("content", "tool_calls", "role")
    _also_known = frozenset({"reasoning", "reasoning_content"})

    role: str = member("a string", absent="assistant")
    # Mistral's reasoning models send a list of parts.
    content: str | None = member(
        "a string", converted=(list, lambda parts: "".join(_texts(parts, "text")))
    )
    tool_calls: tuple[ToolCall, ...] = parts(ToolCall)

    @property
    def reasoning(self) -> str | None:
        """The reasoning that led to the answer, if the server returns it."""
        for name in ("reasoning_content", "reasoning"):
            if isinstance(self._value.get(name), str):
                return str(self._value[name])
        content = self._value.get("content")
        thoughts = "".join(_texts(content, "thinking")) if isinstance(content, list) else ""
        return thoughts or None

    def _repr_markdown_(self) -> str:
        """Return the message as Markdown for notebooks, with HTML and links escaped."""
        parts = [markdown(self.content)] if self.content else []
        for call in self.tool_calls:
            parts.append(markdown(f"Calls {call.name}:"))
            parts.append(code(call.arguments, "json"))
        return "\n\n".join(parts)


class Choice(Result):
    """One answer of a completion.

    Attributes:
        index: Index of the answer, from 0.
        message: The generated message.
        finish_reason: ``"stop"``, ``"length"``, ``"tool_calls"``, ``"function_call"``,
            ``"content_filter"`` or None.
        logprobs: Log probabilities of the answer's tokens; None if not requested.
    """

    __slots__ = ()
    _shown = ("message", "finish_reason", "index")

    index: int = member("an integer", absent=0)
    finish_reason: str | None = member("a string")
    logprobs: dict[str, Any] | None = member("an object")
    message: AnswerMessage = part(AnswerMessage, required=True)

    def _repr_markdown_(self) -> str:
        """Return the answer as Markdown for notebooks, with HTML and links escaped."""
        parts = [self.message._repr_markdown_()]
        if self.finish_reason not in _ORDINARY_ENDS:
            parts.append(f"*Finish reason: {markdown(self.finish_reason or '')}*")
        return "\n\n".join(part for part in parts if part)


class ChatCompletion(Response):
    """A complete answer of a chat model, in the format of OpenAI's and Groq's chat completions.

    Attributes:
        id: ID of the completion.
        object: ``"chat.completion"``.
        created: Time of creation, in seconds since 1970.
        model: Model that generated the answer.
        engine_model: Name of the server's installed model that did the work; None for upstreams,
            which name theirs in `model`.
        choices: The answers, at least one.
        usage: Token counts and times; None if the server does not send them.
        system_fingerprint: Fingerprint of the configuration that the model ran with.
        service_tier: Service tier that the provider used.
        x_groq: Additional IDs and counts from Groq.

    Example:
        >>> import polymux
        >>> body = b'{"choices": [{"message": {"role": "assistant", "content": "Hello!"}}]}'
        >>> polymux.ChatCompletion.decode(body).text
        'Hello!'
    """

    __slots__ = ()
    _shown = ("text", "finish_reason", "model", "id")

    id: str | None = member("a string")
    object: str | None = member("a string")
    created: int | None = member("an integer")
    model: str | None = member("a string")
    engine_model: str | None = member("a string")
    system_fingerprint: str | None = member("a string")
    service_tier: str | None = member("a string")
    x_groq: dict[str, Any] | None = member("an object")
    choices: tuple[Choice, ...] = parts(Choice, required=True)
    usage: Usage | None = part(Usage)

    @property
    def message(self) -> AnswerMessage:
        """The message of the first answer."""
        return self.choices[0].message

    @property
    def content(self) -> str | None:
        """The text of the first answer; None if there are only tool calls."""
        return self.message.content

    @property
    def text(self) -> str:
        """The text of the first answer; empty if there are only tool calls."""
        return self.message.content or ""

    @property
    def reasoning(self) -> str | None:
        """The reasoning that led to the first answer, if the server returns it."""
        return self.message.reasoning

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The tool calls of the first answer."""
        return self.message.tool_calls

    @property
    def finish_reason(self) -> str | None:
        """Why generation of the first answer stopped."""
        return self.choices[0].finish_reason

    def _repr_markdown_(self) -> str:
        """Return the answers as Markdown for notebooks, with HTML and links escaped."""
        return "\n\n---\n\n".join(one._repr_markdown_() for one in self.choices)
