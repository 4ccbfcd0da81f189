"""All operations as methods. Made by scripts/generate from contract/; do not edit."""

from __future__ import annotations

from polymux.client.methods._caller import Caller, overload

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.client.chat_stream import ChatStream
    from polymux.media.media_file import MediaFile
    from polymux.client.methods.types import ChatMessage, ChatReasoningEffort, ConvertToMp3SampleRate, Function, FunctionName, GenerateImageAScheduler, GenerateImageBScheduler, GenerateImageCScheduler, GenerateMusicSeedImageId, NamedToolChoice, ResponseFormat, StreamOptions, TextMessage, Tool, UpscaleImageAScheduler
    from polymux.client.responses import AnswerMessage, ChatCompletion, OcrText, Prediction, Song, SongList, TextResponse


class Operations(Caller):
    """All operations as methods."""

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
        """Generate the next message of a conversation, as one response or as a stream of chunks.

        Args:
            messages: Messages of the conversation, oldest first.
            model: Name of a chat model that the server offers, such as `default`.
            stream: Stream the answer in chunks while it is generated. Default: ``False``.
            temperature: Sampling temperature. Higher values give more random answers; 0 always
                picks the most likely token. 0 to 2 (default: ``1``).
            top_p: Nucleus sampling: only the most likely tokens are considered, up to this total
                probability. 0 to 1 (default: ``1``).
            max_completion_tokens: Maximum number of tokens to generate. At least 1. Default: the
                model's limit.
            stop: Texts at which the answer ends. The answer does not contain them. At most 4 items.
            seed: Random seed. The same request with the same seed gives the same answer, if the
                model supports it.
            n: Number of answers to generate, if the model supports several. 1 to 8 (default:
                ``1``).
            response_format: Format of the answer: free text, any JSON object, or JSON that matches
                a schema.
            tools: Functions that the model may call. At most 128 items.
            tool_choice: Whether the model calls tools: `none` forbids it, `auto` lets the model
                decide, `required` forces a call. An object names the tool to call.
            parallel_tool_calls: Allow several tool calls in one answer. Default: ``True``.
            disable_tool_validation: Skip the validation of tool calls: accept arguments that do not
                match the tool's schema. Default: ``False``.
            reasoning_effort: How much a reasoning model reasons before it answers.
            reasoning_format: Placement of the reasoning: `hidden` omits it, `raw` puts it in the
                text, `parsed` puts it in a separate field.
            include_reasoning: Include the reasoning in the answer.
            service_tier: Service tier, for providers that offer several. Default: ``'on_demand'``.
            stream_options: Options for streamed answers.
            user: ID of the end user, for the provider's records.
            frequency_penalty: Penalty for each earlier occurrence of a token. Positive values
                reduce repetition. -2 to 2 (default: ``0``).
            presence_penalty: Penalty for tokens that have already occurred. Positive values
                encourage new topics. -2 to 2 (default: ``0``).
            logprobs: Return log probabilities of the answer's tokens.
            top_logprobs: Number of most likely tokens whose log probabilities are returned at each
                position; requires `logprobs`. 0 to 20.
            logit_bias: Map of token IDs to biases from -100 to 100, which are added to the logits
                of the tokens.
            functions: Functions that the model may call. At most 128 items. Deprecated: use
                `tools`.
            function_call: Whether the model calls a function: `none` forbids it, `auto` lets the
                model decide. An object names the function to call. Deprecated: use `tool_choice`.
            documents: Documents that the model may use for the answer, if it supports documents.
            citation_options: Enable or disable citations of `documents` in the answer.
            search_settings: Web search settings, for models with built-in search.
            compound_custom: Settings of compound models, which combine several models and tools.
            include_domains: Allowed domains: web search uses no others. Deprecated: use
                `search_settings`.
            exclude_domains: Excluded domains, which web search must not use. Deprecated: use
                `search_settings`.
            metadata: Key-value pairs that the provider stores with the request, if it supports
                this.
            store: Ask the provider of the model to store the conversation.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.

        Returns:
            The complete answer; with `stream`, an iterator over its chunks.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            StreamInterruptedError: The stream ended before the answer was complete.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
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
        """Generate the next message of a conversation as plain text, with the first available of several chat models.

        Args:
            messages: Messages of the conversation, oldest first.
            model: Name of the list of models that are tried one after another. Default:
                ``'gpt-4o'``.
            stream: Stream the answer in chunks while it is generated. Default: ``False``.
            answer_timeout_s: Time limit for the whole answer, including failed attempts with other
                models. 1 to 300 s.
            shuffle: Try the models in random order. Default: ``False``.
            image_url: URL of an image that the question is about, or a data URL with the image (at
                most 20 MiB).
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.

        Returns:
            The generated text.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            StreamInterruptedError: The stream ended before the answer was complete.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
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

    def search_music(
        self,
        song: str,
        *,
        limit: int | None = None,
        proxy: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> SongList:
        """Search for songs by title or artist.

        Args:
            song: Title, artist, or both.
            limit: Maximum number of songs to return. 1 to 50 (default: ``5``).
            proxy: URL of a proxy that the server uses for the search. It must be one of the
                `allowed_proxies` of the server.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.

        Returns:
            Matching songs, best match first.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: SongList = self._call(
            "search_music",
            {
                "song": song,
                "limit": limit,
                "proxy": proxy,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
        )
        return answer

    @overload
    def generate_image(
        self,
        prompt: str,
        *,
        model: Literal["bytedance/sdxl-lightning-4step"] | None = None,
        width: int | None = None,
        height: int | None = None,
        scheduler: GenerateImageAScheduler | None = None,
        num_outputs: int | None = None,
        guidance_scale: float | None = None,
        negative_prompt: str | None = None,
        num_inference_steps: int | None = None,
        seed: int | None = None,
        disable_safety_checker: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    @overload
    def generate_image(
        self,
        prompt: str,
        *,
        model: Literal["lorenzomarines/astra"] | None = None,
        width: int | None = None,
        height: int | None = None,
        num_outputs: int | None = None,
        negative_prompt: str | None = None,
        num_inference_steps: int | None = None,
        scheduler: GenerateImageBScheduler | None = None,
        guidance_scale: float | None = None,
        prompt_strength: float | None = None,
        lora_scale: float | None = None,
        apply_watermark: bool | None = None,
        image: Upload | None = None,
        mask: Upload | None = None,
        seed: int | None = None,
        refine: Literal["no_refiner", "expert_ensemble_refiner", "base_image_refiner"] | None = None,
        high_noise_frac: float | None = None,
        refine_steps: int | None = None,
        replicate_weights: str | None = None,
        disable_safety_checker: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    @overload
    def generate_image(
        self,
        prompt: str,
        *,
        model: Literal["playgroundai/playground-v2.5-1024px-aesthetic"],
        width: int | None = None,
        height: int | None = None,
        num_outputs: int | None = None,
        negative_prompt: str | None = None,
        num_inference_steps: int | None = None,
        scheduler: GenerateImageCScheduler | None = None,
        guidance_scale: float | None = None,
        prompt_strength: float | None = None,
        lora_scale: float | None = None,
        image: Upload | None = None,
        mask: Upload | None = None,
        apply_watermark: bool | None = None,
        seed: int | None = None,
        disable_safety_checker: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    @overload
    def generate_image(
        self,
        prompt: str,
        *,
        model: str,
        width: int | None = None,
        height: int | None = None,
        scheduler: GenerateImageAScheduler | GenerateImageBScheduler | GenerateImageCScheduler | None = None,
        num_outputs: int | None = None,
        guidance_scale: float | None = None,
        negative_prompt: str | None = None,
        num_inference_steps: int | None = None,
        seed: int | None = None,
        disable_safety_checker: bool | None = None,
        prompt_strength: float | None = None,
        lora_scale: float | None = None,
        apply_watermark: bool | None = None,
        image: Upload | None = None,
        mask: Upload | None = None,
        refine: Literal["no_refiner", "expert_ensemble_refiner", "base_image_refiner"] | None = None,
        high_noise_frac: float | None = None,
        refine_steps: int | None = None,
        replicate_weights: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    def generate_image(
        self,
        prompt: str,
        *,
        model: str | None = None,
        width: int | None = None,
        height: int | None = None,
        scheduler: GenerateImageAScheduler | GenerateImageBScheduler | GenerateImageCScheduler | None = None,
        num_outputs: int | None = None,
        guidance_scale: float | None = None,
        negative_prompt: str | None = None,
        num_inference_steps: int | None = None,
        seed: int | None = None,
        disable_safety_checker: bool | None = None,
        prompt_strength: float | None = None,
        lora_scale: float | None = None,
        apply_watermark: bool | None = None,
        image: Upload | None = None,
        mask: Upload | None = None,
        refine: Literal["no_refiner", "expert_ensemble_refiner", "base_image_refiner"] | None = None,
        high_noise_frac: float | None = None,
        refine_steps: int | None = None,
        replicate_weights: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Generate images from a text prompt, or from an image and a text prompt.

        Variant A, bytedance/sdxl-lightning-4step: SDXL-Lightning, distilled to four inference
            steps.
        Variant B, lorenzomarines/astra: SDXL with LoRA weights: text-to-image, image-to-image and
            inpainting.
        Variant C, playgroundai/playground-v2.5-1024px-aesthetic: Playground v2.5, tuned for
            aesthetic images of 1024 x 1024 pixels.

        Args:
            prompt: Description of the image.
            model: Model to use; it selects the variant. The name of an installed model is allowed.
                Default: variant B with `image` or `mask`, else variant A.
            width: Width of the image. Variant A: 256 to 1280 px, a multiple of 8 (default:
                ``1024``). The model works best at 1024 or 1280. Variants B and C: 256 to 2048 px, a
                multiple of 8 (default: ``1024``). Ignored for an input image without a mask: the
                output has the width of the input.
            height: Height of the image. Variant A: 256 to 1280 px, a multiple of 8 (default:
                ``1024``). The model works best at 1024 or 1280. Variants B and C: 256 to 2048 px, a
                multiple of 8 (default: ``1024``). Ignored for an input image without a mask: the
                output has the height of the input.
            scheduler: Sampling algorithm for the denoising steps. Variants A and B: default
                ``'K_EULER'``. Variant C: default ``'DPMSolver++'``. DPMSolver++ and DPM++2MKarras
                suit most images.
            num_outputs: Number of images to generate. Each image increments the seed. 1 to 4
                (default: ``1``).
            guidance_scale: Guidance scale: how closely to follow the prompt. Variant A: 0 to 50
                (default: ``0.0``). The model is trained for 0. Variant B: 1 to 50 (default:
                ``7.0``). Variant C: 0 to 20 (default: ``3.0``).
            negative_prompt: Description of content to avoid.
            num_inference_steps: Number of denoising steps. Variant A: 1 to 10 (default: ``4``). The
                model is trained for 4. Variant B: 1 to 500 (default: ``50``). Variant C: 1 to 100
                (default: ``25``).
            seed: Random seed. The same seed and inputs give the same image. Default: random.
            disable_safety_checker: Keep images that the safety checker would remove. Default:
                ``False``.
            prompt_strength: How strongly the prompt changes the input image; 1.0 replaces the image
                completely. Variants B and C only. 0 to 1 (default: ``0.8``).
            lora_scale: Strength of the LoRA weights. Variants B and C only. Variant B: 0 to 1
                (default: ``0.6``). Ignored if no LoRA weights are loaded. Variant C: 0 to 1
                (default: ``0.6``). Ignored, because the model does not load LoRA weights.
            apply_watermark: Add an invisible watermark that marks the image as AI-generated.
                Variants B and C only. Default: ``False``.
            image: Input image for image-to-image and inpainting. Variants B and C only.
            mask: Inpainting mask: white areas are repainted, black areas are kept. Variants B and C
                only.
            refine: Refiner model that improves the image. Variant B only. Default:
                ``'no_refiner'``.
            high_noise_frac: Fraction of the denoising steps after which `expert_ensemble_refiner`
                takes over. Variant B only. 0 to 1 (default: ``0.8``).
            refine_steps: Number of denoising steps of `base_image_refiner`. Variant B only. 1 to
                299.
            replicate_weights: URL of LoRA weights to load. Variant B only.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.
            wait: Wait for the end of the job. If False, return the running job, for which
                `client.predictions.wait` can wait later. Default: True.

        Returns:
            The finished job with its output.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            PredictionFailedError: The job failed, was canceled or timed out.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: Prediction = self._call(
            "generate_image",
            {
                "prompt": prompt,
                "width": width,
                "height": height,
                "scheduler": scheduler,
                "num_outputs": num_outputs,
                "guidance_scale": guidance_scale,
                "negative_prompt": negative_prompt,
                "num_inference_steps": num_inference_steps,
                "seed": seed,
                "disable_safety_checker": disable_safety_checker,
                "prompt_strength": prompt_strength,
                "lora_scale": lora_scale,
                "apply_watermark": apply_watermark,
                "image": image,
                "mask": mask,
                "refine": refine,
                "high_noise_frac": high_noise_frac,
                "refine_steps": refine_steps,
                "replicate_weights": replicate_weights,
            },
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
            wait=wait,
        )
        return answer

    @overload
    def upscale_image(
        self,
        image: Upload,
        *,
        model: Literal["philz1337x/clarity-upscaler"] | None = None,
        prompt: str | None = None,
        negative_prompt: str | None = None,
        scale_factor: float | None = None,
        dynamic: float | None = None,
        creativity: float | None = None,
        resemblance: float | None = None,
        tiling_width: int | None = None,
        tiling_height: int | None = None,
        sd_model: Literal["epicrealism_naturalSinRC1VAE.safetensors [84d76a0328]", "juggernaut_reborn.safetensors [338b85bc4f]", "flat2DAnimerge_v45Sharp.safetensors"] | None = None,
        scheduler: UpscaleImageAScheduler | None = None,
        num_inference_steps: int | None = None,
        downscaling: bool | None = None,
        downscaling_resolution: int | None = None,
        sharpen: float | None = None,
        output_format: Literal["webp", "jpg", "png"] | None = None,
        seed: int | None = None,
        multistep_factor: float | None = None,
        lora_links: str | None = None,
        custom_sd_model: str | None = None,
        mask: Upload | None = None,
        handfix: Literal["disabled", "hands_only", "image_and_hands"] | None = None,
        pattern: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    @overload
    def upscale_image(
        self,
        image: Upload,
        *,
        model: Literal["nightmareai/real-esrgan"] | None = None,
        scale: float | None = None,
        face_enhance: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    @overload
    def upscale_image(
        self,
        image: Upload,
        *,
        model: str,
        prompt: str | None = None,
        negative_prompt: str | None = None,
        scale_factor: float | None = None,
        dynamic: float | None = None,
        creativity: float | None = None,
        resemblance: float | None = None,
        tiling_width: int | None = None,
        tiling_height: int | None = None,
        sd_model: Literal["epicrealism_naturalSinRC1VAE.safetensors [84d76a0328]", "juggernaut_reborn.safetensors [338b85bc4f]", "flat2DAnimerge_v45Sharp.safetensors"] | None = None,
        scheduler: UpscaleImageAScheduler | None = None,
        num_inference_steps: int | None = None,
        downscaling: bool | None = None,
        downscaling_resolution: int | None = None,
        sharpen: float | None = None,
        output_format: Literal["webp", "jpg", "png"] | None = None,
        seed: int | None = None,
        multistep_factor: float | None = None,
        lora_links: str | None = None,
        custom_sd_model: str | None = None,
        mask: Upload | None = None,
        handfix: Literal["disabled", "hands_only", "image_and_hands"] | None = None,
        pattern: bool | None = None,
        scale: float | None = None,
        face_enhance: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction: ...

    def upscale_image(
        self,
        image: Upload,
        *,
        model: str | None = None,
        prompt: str | None = None,
        negative_prompt: str | None = None,
        scale_factor: float | None = None,
        dynamic: float | None = None,
        creativity: float | None = None,
        resemblance: float | None = None,
        tiling_width: int | None = None,
        tiling_height: int | None = None,
        sd_model: Literal["epicrealism_naturalSinRC1VAE.safetensors [84d76a0328]", "juggernaut_reborn.safetensors [338b85bc4f]", "flat2DAnimerge_v45Sharp.safetensors"] | None = None,
        scheduler: UpscaleImageAScheduler | None = None,
        num_inference_steps: int | None = None,
        downscaling: bool | None = None,
        downscaling_resolution: int | None = None,
        sharpen: float | None = None,
        output_format: Literal["webp", "jpg", "png"] | None = None,
        seed: int | None = None,
        multistep_factor: float | None = None,
        lora_links: str | None = None,
        custom_sd_model: str | None = None,
        mask: Upload | None = None,
        handfix: Literal["disabled", "hands_only", "image_and_hands"] | None = None,
        pattern: bool | None = None,
        scale: float | None = None,
        face_enhance: bool | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Increase the resolution of an image.

        Variant A, philz1337x/clarity-upscaler: Clarity upscaler: adds generated detail to the
            image.
        Variant B, nightmareai/real-esrgan: Real-ESRGAN: upscales without generating new detail.

        Args:
            image: Image to upscale.
            model: Model to use; it selects the variant. The name of an installed model is allowed.
                Default: variant B with `scale` or `face_enhance`, else variant A.
            prompt: Description of the detail to add. It may contain LoRA tags, such as
                `<lora:more_details:0.5>`. Variant A only. Default: ``'masterpiece, best quality,
                highres, <lora:more_details:0.5> <lora:SDXLrender_v2.0:1>'``.
            negative_prompt: Description of detail to avoid. Variant A only. Default: ``'(worst
                quality, low quality, normal quality:2) JuggernautNegative-neg'``.
            scale_factor: Factor by which width and height are multiplied. Variant A only. Above 0
                and at most 10 (default: ``2``).
            dynamic: HDR effect: strength of contrast and depth (the guidance scale of the model).
                Variant A only. 1 to 50 (default: ``6``).
            creativity: How much new detail to generate. Variant A only. 0 to 1 (default: ``0.35``).
            resemblance: How closely the output resembles the input image. Variant A only. 0 to 3
                (default: ``0.6``).
            tiling_width: Width of the tiles in which the image is processed. Smaller tiles give
                sharper images that differ more from the input. Variant A only. 16 to 256, a
                multiple of 16 (default: ``112``).
            tiling_height: Height of the tiles in which the image is processed. Variant A only. 16
                to 256, a multiple of 16 (default: ``144``).
            sd_model: Stable Diffusion model that generates the detail. Variant A only. Default:
                ``'juggernaut_reborn.safetensors [338b85bc4f]'``.
            scheduler: Sampling algorithm for the denoising steps. Variant A only. Default: ``'DPM++
                3M SDE Karras'``.
            num_inference_steps: Number of denoising steps. Variant A only. 1 to 100 (default:
                ``18``).
            downscaling: Shrink the image first. The model then generates more detail. Variant A
                only. Default: ``False``.
            downscaling_resolution: Length of the longer side after `downscaling`. Variant A only.
                64 to 4096 px (default: ``768``).
            sharpen: Strength of the final sharpening. Variant A only. 0 to 10 (default: ``0``).
            output_format: File format of the output. Variant A only. Default: ``'png'``.
            seed: Random seed. The same seed and inputs give the same image. Variant A only.
                Default: ``1337``.
            multistep_factor: Factor that multiplies `creativity` after each pass. A `scale_factor`
                above 2 needs several passes. Variant A only. 0 to 2 (default: ``0.8``).
            lora_links: URL of LoRA weights to load. Variant A only.
            custom_sd_model: URL of a custom Stable Diffusion model to use instead of `sd_model`.
                Variant A only.
            mask: Mask of the protected area: white areas stay unchanged. Variant A only.
            handfix: Hand repair: repair hands in the image. Variant A only. Default:
                ``'disabled'``.
            pattern: Make a seamless pattern: the opposite sides of the image fit together. Variant
                A only. Default: ``False``.
            scale: Factor by which width and height are multiplied. Variant B only. Above 0 and at
                most 10 (default: ``4``).
            face_enhance: Enhance faces with a separate model; requires an upstream that supports
                it. Variant B only. Default: ``False``.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.
            wait: Wait for the end of the job. If False, return the running job, for which
                `client.predictions.wait` can wait later. Default: True.

        Returns:
            The finished job with its output.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            PredictionFailedError: The job failed, was canceled or timed out.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: Prediction = self._call(
            "upscale_image",
            {
                "image": image,
                "prompt": prompt,
                "negative_prompt": negative_prompt,
                "scale_factor": scale_factor,
                "dynamic": dynamic,
                "creativity": creativity,
                "resemblance": resemblance,
                "tiling_width": tiling_width,
                "tiling_height": tiling_height,
                "sd_model": sd_model,
                "scheduler": scheduler,
                "num_inference_steps": num_inference_steps,
                "downscaling": downscaling,
                "downscaling_resolution": downscaling_resolution,
                "sharpen": sharpen,
                "output_format": output_format,
                "seed": seed,
                "multistep_factor": multistep_factor,
                "lora_links": lora_links,
                "custom_sd_model": custom_sd_model,
                "mask": mask,
                "handfix": handfix,
                "pattern": pattern,
                "scale": scale,
                "face_enhance": face_enhance,
            },
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
            wait=wait,
        )
        return answer

    def transcribe(
        self,
        source: Upload | None = None,
        *,
        model: str | None = None,
        url: str | None = None,
        task: Literal["transcribe", "translate"] | None = None,
        batch_size: int | None = None,
        timestamp: Literal["chunk", "word"] | None = None,
        language: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Transcribe speech, or translate it to English.

        Args:
            source: Recording to transcribe: any audio or video file.
            model: Model to use; the name of an installed model is allowed. Default:
                ``turian/insanely-fast-whisper-with-video``.
            url: URL of an audio or video file, or of an online video's page, instead of a file.
            task: Task: `transcribe` keeps the spoken language, `translate` translates to English.
                Default: ``'transcribe'``.
            batch_size: Number of segments that are processed in parallel. Smaller values need less
                memory. 1 to 256 (default: ``64``).
            timestamp: Unit of the timestamps: `chunk` for segments of speech, `word` for single
                words. Default: ``'chunk'``.
            language: Spoken language, as a code or English name that Whisper supports, such as `de`
                or `german`. Default: detected automatically.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.
            wait: Wait for the end of the job. If False, return the running job, for which
                `client.predictions.wait` can wait later. Default: True.

        Returns:
            The finished job with its output.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            PredictionFailedError: The job failed, was canceled or timed out.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: Prediction = self._call(
            "transcribe",
            {
                "audio": source,
                "url": url,
                "task": task,
                "batch_size": batch_size,
                "timestamp": timestamp,
                "language": language,
            },
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
            wait=wait,
        )
        return answer

    def generate_video(
        self,
        prompt: str,
        *,
        model: str | None = None,
        negative_prompt: str | None = None,
        init_weight: float | None = None,
        num_frames: int | None = None,
        num_inference_steps: int | None = None,
        width: int | None = None,
        height: int | None = None,
        guidance_scale: float | None = None,
        fps: int | None = None,
        video_model: Literal["xl", "576w", "potat1", "animov-512x"] | None = None,
        batch_size: int | None = None,
        remove_watermark: bool | None = None,
        init_video: Upload | None = None,
        seed: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Generate a short video from a text prompt.

        Args:
            prompt: Description of the video.
            model: Model to use; the name of an installed model is allowed. Default:
                ``anotherjesse/zeroscope-v2-xl``.
            negative_prompt: Description of content to avoid. Default: ``'blurred, noisy, washed
                out, distorted, broken'``.
            init_weight: How closely the output resembles the input video: 1 keeps the video
                unchanged, 0 ignores it. 0 to 1 (default: ``0.5``).
            num_frames: Number of frames in the video. 1 to 100 (default: ``24``).
            num_inference_steps: Number of denoising steps. 1 to 500 (default: ``50``).
            width: Width of the video. 256 to 2048 px, a multiple of 8 (default: ``1024``).
            height: Height of the video. 256 to 2048 px, a multiple of 8 (default: ``1024``).
            guidance_scale: Guidance scale: how closely to follow the prompt. 1 to 100 (default:
                ``17.5``).
            fps: Frame rate of the video. 1 to 60 frames/s (default: ``10``).
            video_model: Video model. `xl` and `potat1` were trained at 1024 x 576, `576w` at 576 x
                320; `animov-512x` generates anime. Default: ``'xl'``.
            batch_size: Number of videos to generate. 1 to 8 (default: ``1``).
            remove_watermark: Remove the watermark that the model learned from its training videos;
                requires an upstream that supports this. Default: ``False``.
            init_video: Input video to transform.
            seed: Random seed. The same seed and inputs give the same video. Default: random.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.
            wait: Wait for the end of the job. If False, return the running job, for which
                `client.predictions.wait` can wait later. Default: True.

        Returns:
            The finished job with its output.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            PredictionFailedError: The job failed, was canceled or timed out.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: Prediction = self._call(
            "generate_video",
            {
                "prompt": prompt,
                "negative_prompt": negative_prompt,
                "init_weight": init_weight,
                "num_frames": num_frames,
                "num_inferences_steps": num_inference_steps,
                "width": width,
                "height": height,
                "guidance_scale": guidance_scale,
                "fps": fps,
                "video_model": video_model,
                "batch_size": batch_size,
                "remove_watermark": remove_watermark,
                "init_video": init_video,
                "seed": seed,
            },
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
            wait=wait,
        )
        return answer

    def generate_music(
        self,
        prompt_a: str,
        *,
        model: str | None = None,
        denoising: float | None = None,
        prompt_b: str | None = None,
        alpha: float | None = None,
        num_inference_steps: int | None = None,
        seed_image_id: GenerateMusicSeedImageId | None = None,
        seed: int | None = None,
        duration_s: float | None = None,
        output_format: Literal["wav", "mp3", "flac"] | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Generate a few seconds of music from a prompt, or from a mix of two prompts.

        Args:
            prompt_a: Description of the music.
            model: Model to use; the name of an installed model is allowed. Default:
                ``riffusion/riffusion``.
            denoising: How strongly the seed spectrogram is changed; 0 keeps it unchanged. 0 to 1
                (default: ``0.75``).
            prompt_b: Second prompt, which is mixed with the first.
            alpha: Weight of the second prompt, `prompt_b`: 0 uses only `prompt_a`, 1 uses only
                `prompt_b`. 0 to 1 (default: ``0.5``).
            num_inference_steps: Number of denoising steps. 1 to 500 (default: ``50``).
            seed_image_id: Seed spectrogram, from which the generation starts. Default: ``'vibes'``.
            seed: Random seed. The same seed and inputs give the same music. Default: random.
            duration_s: Duration of the music. 5.12 to 60 s. Default: that of the seed spectrogram,
                usually 5.12 s.
            output_format: File format of the audio. Default: ``'wav'``.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.
            wait: Wait for the end of the job. If False, return the running job, for which
                `client.predictions.wait` can wait later. Default: True.

        Returns:
            The finished job with its output.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            PredictionFailedError: The job failed, was canceled or timed out.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: Prediction = self._call(
            "generate_music",
            {
                "prompt_a": prompt_a,
                "denoising": denoising,
                "prompt_b": prompt_b,
                "alpha": alpha,
                "num_inference_steps": num_inference_steps,
                "seed_image_id": seed_image_id,
                "seed": seed,
                "duration_s": duration_s,
                "output_format": output_format,
            },
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_progress=on_progress,
            wait=wait,
        )
        return answer

    def identify_song(
        self,
        source: Upload,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> Song:
        """Identify the song in an audio or video file.

        Args:
            source: Recording with a few seconds of the song: any audio or video file.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.

        Returns:
            The identified song.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            NoMatchError: No song matches the recording.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: Song = self._call(
            "identify_song",
            {
                "file": source,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
        )
        return answer

    def download_video(
        self,
        url: str,
        *,
        resolution: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Download an online video.

        Args:
            url: URL of the video's page, or of the video file.
            resolution: Maximum length of the shorter side in pixels, 144 to 4320, such as `720p` or
                `720`; `best` sets no maximum. If all available resolutions are larger, the smallest
                one is downloaded. Default: ``'best'``.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.

        Returns:
            The URL of the output file.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: MediaFile = self._call(
            "download_video",
            {
                "url": url,
                "resolution": resolution,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_progress=on_progress,
        )
        return answer

    def summarize_video(
        self,
        url: str,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> TextResponse:
        """Summarize the content of an online video.

        Args:
            url: URL of the video's page.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.

        Returns:
            The generated text.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: TextResponse = self._call(
            "summarize_video",
            {
                "url": url,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_progress=on_progress,
        )
        return answer

    def download_music(
        self,
        query: str,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Download the best match for a song title or artist as MP3.

        Args:
            query: Title, artist, or both.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.

        Returns:
            The URL of the output file.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: MediaFile = self._call(
            "download_music",
            {
                "query": query,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_progress=on_progress,
        )
        return answer

    def convert_to_mp3(
        self,
        source: Upload | None = None,
        *,
        url: str | None = None,
        bitrate: int | str | None = None,
        vbr_quality: float | None = None,
        sample_rate: ConvertToMp3SampleRate | None = None,
        channels: int | None = None,
        start: float | str | None = None,
        end: float | str | None = None,
        audio_stream: int | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Convert an audio or video file to MP3.

        Args:
            source: Audio or video file to convert.
            url: URL of an audio or video file, or of an online video's page, instead of a file.
            bitrate: Constant bitrate: a number such as 128000, or a string such as `128k`. 8000 to
                320000 bit/s.
            vbr_quality: Quality of a variable bitrate; 0 is the best. At least 0 and below 10.
                Default: 0 if no `bitrate` is set.
            sample_rate: Sample rate of the MP3 in Hz. Default: the supported rate nearest to the
                input's.
            channels: Number of channels: mono or stereo. 1 to 2. Default: mono for mono input, else
                stereo.
            start: Start time: seconds, or `[HH:]MM:SS[.mmm]`. At least 0 s. Default: the start of
                the input.
            end: End time: seconds, or `[HH:]MM:SS[.mmm]`. Above 0 s. Default: the end of the input.
            audio_stream: Index of the audio stream to convert, counted over all streams of the
                file. At least 0. Default: the best audio stream.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.
            on_progress: Called with the job after each change that the server reports. If it raises
                an exception, this method raises it, and the job continues.

        Returns:
            The URL of the output file.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: MediaFile = self._call(
            "convert_to_mp3",
            {
                "url": url,
                "file": source,
                "bitrate": bitrate,
                "vbr_quality": vbr_quality,
                "sample_rate": sample_rate,
                "channels": channels,
                "start": start,
                "end": end,
                "stream": audio_stream,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            on_progress=on_progress,
        )
        return answer

    def read_text(
        self,
        image: Upload,
        *,
        lang: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> OcrText:
        """Extract the text in an image (OCR).

        Args:
            image: Image with the text. A TIFF file may have several pages.
            lang: Languages of the text, such as `eng`, or `deu+fra` for several.
            extra_body: Additional fields, sent without validation. Default: none.
            timeout: Total timeout in seconds, or a `polymux.Timeout`. Default: the client's.
            on_upload: Called with the number of bytes sent and the body's length (None if unknown),
                at most every 50 ms and at the end. If it raises an exception, the request is
                aborted.

        Returns:
            The recognized text, with line breaks.

        Raises:
            InvalidRequestError: The request is invalid; `problems` lists all problems.
            APIStatusError: The server returned an error; the subclass depends on the status.
            TransportError: The connection failed or was lost.
            RequestTimeoutError: A timeout elapsed; `limit` names it.
        """
        answer: OcrText = self._call(
            "read_text",
            {
                "file": image,
                "lang": lang,
            },
            model=None,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
        )
        return answer

    ocr = read_text
    """Alias of `read_text`."""
