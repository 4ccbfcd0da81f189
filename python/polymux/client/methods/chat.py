"""Chat operations. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import Caller, overload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any, Literal

    from polymux.client.options import Timeout
    from polymux.client.chat_stream import ChatStream
    from polymux.client.methods.types import ChatMessage, ChatReasoningEffort, Function, FunctionName, NamedToolChoice, ResponseFormat, StreamOptions, TextMessage, Tool
    from polymux.client.responses import AnswerMessage, ChatCompletion, TextResponse


class ChatOperations(Caller):
    """Chat operations."""

    @overload
    def chat(
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
    def chat(
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
    ) -> ChatStream: ...

    def chat(
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
    ) -> ChatCompletion | ChatStream:
        """Answers a conversation with a chat model, whole or as a stream of pieces.

        Args:
            messages: The conversation so far, oldest message first.
            model: Name of the chat model, as the server lists it.
            stream: Send the answer in pieces, as they are made. Default ``False``.
            temperature: Randomness of the sampling; 0 takes the likeliest token. 0 to 2; default
                ``1``.
            top_p: Share of probability that tokens are sampled from. 0 to 1; default ``1``.
            max_completion_tokens: Longest answer; the model's own limit when absent. At least 1
                tokens.
            stop: Texts that end the answer where they would appear, four at most. At most 4.
            seed: Makes sampling repeatable as far as the model can.
            n: How many answers to make, where the model can make several. 1 to 8; default ``1``.
            response_format: Form of the answer: free text, any JSON object, or JSON of a schema.
            tools: Functions that the model may ask to be called. At most 128.
            tool_choice: Whether a tool must, may or must not be called, or which one.
            parallel_tool_calls: Allow several tool calls in one answer. Default ``True``.
            disable_tool_validation: Accept tool calls that do not fit the tools' schemas. Default
                ``False``.
            reasoning_effort: How much a reasoning model thinks before it answers.
            reasoning_format: Where the thinking goes: left out, inside the text, or apart from it.
            include_reasoning: Whether the answer carries the thinking at all.
            service_tier: Class of service at providers that have several. Default ``'on_demand'``.
            stream_options: What a stream carries beside the text.
            user: Name of the end user, for the provider's own records.
            frequency_penalty: Positive values make repeated words less likely. -2 to 2; default
                ``0``.
            presence_penalty: Positive values make new subjects more likely. -2 to 2; default ``0``.
            logprobs: Return the log probabilities of the answer's tokens.
            top_logprobs: How many likeliest tokens to return at each place. 0 to 20.
            logit_bias: Token number to a value from -100 to 100 that makes it likelier.
            functions: Older form of `tools`. At most 128. Deprecated: use `tools`.
            function_call: Older form of `tool_choice`. Deprecated: use `tool_choice`.
            documents: Documents that the answer may draw on, where the model takes any.
            citation_options: Whether the answer cites the documents.
            search_settings: Settings of models that search the web themselves.
            compound_custom: Settings of models that are made of several models and tools.
            include_domains: Domains that such a search is kept to. Deprecated: use
                `search_settings`.
            exclude_domains: Domains that such a search leaves out. Deprecated: use
                `search_settings`.
            metadata: Names and values kept with the request, where the provider stores any.
            store: Ask the provider to keep the conversation.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.

        Returns:
            The whole answer; with `stream` an iterator over its chunks.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            StreamInterruptedError: A stream ended before the answer did.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
        """
        answer: ChatCompletion | ChatStream = self._call(
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
    def free_chat(
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
    def free_chat(
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
    ) -> ChatStream: ...

    def free_chat(
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
    ) -> TextResponse | ChatStream:
        """Answers a conversation with the first of several chat models that can, and returns plain text.

        Args:
            messages: The conversation so far, oldest message first.
            model: Which list of models to try. Default ``'gpt-4o'``.
            stream: Send the answer in pieces, as they are made. Default ``False``.
            answer_timeout_s: Time for the whole answer, all models together. 1 to 300 s.
            shuffle: Try the models in random order. Default ``False``.
            image_url: Picture that the question is about: an address, or a data URL of at most 20
                MiB.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.

        Returns:
            The text.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            StreamInterruptedError: A stream ended before the answer did.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
        """
        answer: TextResponse | ChatStream = self._call(
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
