"""Chat operations, asynchronous. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import AsyncCaller, overload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from polymux.client.options import Timeout
    from polymux.client.chat_stream import AsyncChatStream
    from polymux.client.methods.types import ChatMessage, ChatReasoningEffort, Function, FunctionName, NamedToolChoice, ResponseFormat, StreamOptions, TextMessage, Tool
    from polymux.client.responses import AnswerMessage, ChatCompletion, TextResponse


class AsyncChatOperations(AsyncCaller):
    """Chat operations, asynchronous."""

    @overload
    async def chat(
        self,
        messages: str | Sequence[AnswerMessage | ChatMessage | Mapping[str, Any]],
        *,
        model: str | None = None,
        stream: Literal[False] = False,
        temperature: float | None = None,
        top_p: float | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        n: int | None = None,
        response_format: ResponseFormat | Mapping[str, Any] | None = None,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        disable_tool_validation: bool | None = None,
        reasoning_effort: ChatReasoningEffort | None = None,
        reasoning_format: Literal["hidden", "raw", "parsed"] | None = None,
        include_reasoning: bool | None = None,
        service_tier: Literal["auto", "on_demand", "flex", "performance"] | None = None,
        stream_options: StreamOptions | Mapping[str, Any] | None = None,
        user: str | None = None,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        logit_bias: Mapping[str, Any] | None = None,
        functions: Sequence[Function | Mapping[str, Any]] | None = None,
        function_call: Literal["none", "auto"] | FunctionName | Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        citation_options: Literal["enabled", "disabled"] | None = None,
        search_settings: Mapping[str, Any] | None = None,
        compound_custom: Mapping[str, Any] | None = None,
        include_domains: Sequence[str] | None = None,
        exclude_domains: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        store: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> ChatCompletion: ...

    @overload
    async def chat(
        self,
        messages: str | Sequence[AnswerMessage | ChatMessage | Mapping[str, Any]],
        *,
        model: str | None = None,
        stream: Literal[True],
        temperature: float | None = None,
        top_p: float | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        n: int | None = None,
        response_format: ResponseFormat | Mapping[str, Any] | None = None,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        disable_tool_validation: bool | None = None,
        reasoning_effort: ChatReasoningEffort | None = None,
        reasoning_format: Literal["hidden", "raw", "parsed"] | None = None,
        include_reasoning: bool | None = None,
        service_tier: Literal["auto", "on_demand", "flex", "performance"] | None = None,
        stream_options: StreamOptions | Mapping[str, Any] | None = None,
        user: str | None = None,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        logit_bias: Mapping[str, Any] | None = None,
        functions: Sequence[Function | Mapping[str, Any]] | None = None,
        function_call: Literal["none", "auto"] | FunctionName | Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        citation_options: Literal["enabled", "disabled"] | None = None,
        search_settings: Mapping[str, Any] | None = None,
        compound_custom: Mapping[str, Any] | None = None,
        include_domains: Sequence[str] | None = None,
        exclude_domains: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        store: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> AsyncChatStream: ...

    async def chat(
        self,
        messages: str | Sequence[AnswerMessage | ChatMessage | Mapping[str, Any]],
        *,
        model: str | None = None,
        stream: bool = False,
        temperature: float | None = None,
        top_p: float | None = None,
        max_completion_tokens: int | None = None,
        stop: str | Sequence[str] | None = None,
        seed: int | None = None,
        n: int | None = None,
        response_format: ResponseFormat | Mapping[str, Any] | None = None,
        tools: Sequence[Tool | Mapping[str, Any]] | None = None,
        tool_choice: Literal["none", "auto", "required"] | NamedToolChoice | Mapping[str, Any] | None = None,
        parallel_tool_calls: bool | None = None,
        disable_tool_validation: bool | None = None,
        reasoning_effort: ChatReasoningEffort | None = None,
        reasoning_format: Literal["hidden", "raw", "parsed"] | None = None,
        include_reasoning: bool | None = None,
        service_tier: Literal["auto", "on_demand", "flex", "performance"] | None = None,
        stream_options: StreamOptions | Mapping[str, Any] | None = None,
        user: str | None = None,
        frequency_penalty: float | None = None,
        presence_penalty: float | None = None,
        logprobs: bool | None = None,
        top_logprobs: int | None = None,
        logit_bias: Mapping[str, Any] | None = None,
        functions: Sequence[Function | Mapping[str, Any]] | None = None,
        function_call: Literal["none", "auto"] | FunctionName | Mapping[str, Any] | None = None,
        documents: Sequence[Mapping[str, Any]] | None = None,
        citation_options: Literal["enabled", "disabled"] | None = None,
        search_settings: Mapping[str, Any] | None = None,
        compound_custom: Mapping[str, Any] | None = None,
        include_domains: Sequence[str] | None = None,
        exclude_domains: Sequence[str] | None = None,
        metadata: Mapping[str, Any] | None = None,
        store: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> ChatCompletion | AsyncChatStream:
        """Answers a conversation with a chat model, whole or as a stream of pieces.

        See `Client.chat` for the arguments, the result and the errors.
        """
        answer: ChatCompletion | AsyncChatStream = await self._call(
            "chat",
            {
                "messages": messages,
                "model": model,
                "stream": stream or None,
                "temperature": temperature,
                "top_p": top_p,
                "max_completion_tokens": max_completion_tokens,
                "stop": stop,
                "seed": seed,
                "n": n,
                "response_format": response_format,
                "tools": tools,
                "tool_choice": tool_choice,
                "parallel_tool_calls": parallel_tool_calls,
                "disable_tool_validation": disable_tool_validation,
                "reasoning_effort": reasoning_effort,
                "reasoning_format": reasoning_format,
                "include_reasoning": include_reasoning,
                "service_tier": service_tier,
                "stream_options": stream_options,
                "user": user,
                "frequency_penalty": frequency_penalty,
                "presence_penalty": presence_penalty,
                "logprobs": logprobs,
                "top_logprobs": top_logprobs,
                "logit_bias": logit_bias,
                "functions": functions,
                "function_call": function_call,
                "documents": documents,
                "citation_options": citation_options,
                "search_settings": search_settings,
                "compound_custom": compound_custom,
                "include_domains": include_domains,
                "exclude_domains": exclude_domains,
                "metadata": metadata,
                "store": store,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
        )
        return answer

    @overload
    async def free_chat(
        self,
        messages: str | Sequence[AnswerMessage | TextMessage | Mapping[str, Any]],
        *,
        model: Literal["gpt-4o", "gpt-3.5-turbo", "gpt-4"] | None = None,
        stream: Literal[False] = False,
        answer_timeout_s: int | None = None,
        shuffle: bool | None = None,
        image_url: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> TextResponse: ...

    @overload
    async def free_chat(
        self,
        messages: str | Sequence[AnswerMessage | TextMessage | Mapping[str, Any]],
        *,
        model: Literal["gpt-4o", "gpt-3.5-turbo", "gpt-4"] | None = None,
        stream: Literal[True],
        answer_timeout_s: int | None = None,
        shuffle: bool | None = None,
        image_url: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> AsyncChatStream: ...

    async def free_chat(
        self,
        messages: str | Sequence[AnswerMessage | TextMessage | Mapping[str, Any]],
        *,
        model: Literal["gpt-4o", "gpt-3.5-turbo", "gpt-4"] | None = None,
        stream: bool = False,
        answer_timeout_s: int | None = None,
        shuffle: bool | None = None,
        image_url: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> TextResponse | AsyncChatStream:
        """Answers a conversation with the first of several chat models that can, and returns plain text.

        See `Client.free_chat` for the arguments, the result and the errors.
        """
        answer: TextResponse | AsyncChatStream = await self._call(
            "free_chat",
            {
                "messages": messages,
                "model": model,
                "stream": stream or None,
                "timeout": answer_timeout_s,
                "shuffle": shuffle,
                "image_url": image_url,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
        )
        return answer
