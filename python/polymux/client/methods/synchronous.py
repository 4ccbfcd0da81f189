"""All operations as methods. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import Caller, overload

TYPE_CHECKING = False
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

    def search_music(
        self,
        song: str,
        *,
        limit: int | None = None,
        proxy: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> SongList:
        """Finds songs by name.

        Args:
            song: What to look for: title, artist, or both.
            limit: How many songs at most. 1 to 50; default ``5``.
            proxy: Proxy that the server should go through, where it allows one.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.

        Returns:
            Songs that were found, best first.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Makes pictures from a description, or from a picture and a description.

        Variant A, bytedance/sdxl-lightning-4step: SDXL-Lightning, distilled to four steps.
        Variant B, lorenzomarines/astra: SDXL with LoRA weights: text to image, image to image,
            repainting.
        Variant C, playgroundai/playground-v2.5-1024px-aesthetic: Playground 2.5, made for pleasing
            pictures of 1024 pixels.

        Args:
            prompt: What the picture shows.
            model: Which variant. Default: with `image` or `mask` variant B, else variant A.
            width: Width of the picture; 1024 or 1280 suit the model. A: 256 to 1280 px; a multiple
                of 8; default ``1024``. B and C: 256 to 2048 px; a multiple of 8; default ``1024``.
            height: Height of the picture; 1024 or 1280 suit the model. A: 256 to 1280 px; a
                multiple of 8; default ``1024``. B and C: 256 to 2048 px; a multiple of 8; default
                ``1024``.
            scheduler: How the noise is taken away. A and B: default ``'K_EULER'``. C: default
                ``'DPMSolver++'``.
            num_outputs: How many pictures to make. 1 to 4; default ``1``.
            guidance_scale: How closely to follow the description; the model is made for 0. A: 0 to
                50; default ``0.0``. B: 1 to 50; default ``7.0``. C: 0 to 20; default ``3.0``.
            negative_prompt: What the picture must not show.
            num_inference_steps: Steps of denoising; the model is made for 4. A: 1 to 10; default
                ``4``. B: 1 to 500; default ``50``. C: 1 to 100; default ``25``.
            seed: Makes the picture repeatable; random when absent.
            disable_safety_checker: Keep pictures that the safety checker would drop. Default
                ``False``.
            prompt_strength: How much of `image` is given up for the description; 1.0 keeps nothing.
                Variant B and C only. 0 to 1; default ``0.8``.
            lora_scale: Weight of the LoRA; acts only where LoRA weights are loaded. Variant B and C
                only. 0 to 1; default ``0.6``.
            apply_watermark: Hide a mark in the picture that tells it was made by a machine. Variant
                B and C only. Default ``False``.
            image: Picture to start from. Variant B and C only.
            mask: Where to repaint: white is repainted, black is kept. Variant B and C only.
            refine: Which refiner goes over the picture. Variant B only. Default ``'no_refiner'``.
            high_noise_frac: Share of the steps before the ensemble's refiner takes over. Variant B
                only. 0 to 1; default ``0.8``.
            refine_steps: Steps of the base image refiner. Variant B only. 1 to 500.
            replicate_weights: Address of LoRA weights to load. Variant B only.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.
            wait: Wait for the end of the job; else it comes back as it is, and
                `client.predictions.wait` waits for it. Default True.

        Returns:
            The finished job with what came of it.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            PredictionFailedError: The model failed.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Enlarges a picture.

        Variant A, philz1337x/clarity-upscaler: Invents fitting detail while it enlarges.
        Variant B, nightmareai/real-esrgan: Real-ESRGAN: enlarges what is there.

        Args:
            image: Picture to enlarge.
            model: Which variant. Default: with `scale` or `face_enhance` variant B, else variant A.
            prompt: What the detail should be like; LoRA tags included. Variant A only. Default
                ``'masterpiece, best quality, highres, <lora:more_details:0.5>
                <lora:SDXLrender_v2.0:1>'``.
            negative_prompt: What the detail must not be like. Variant A only. Default ``'(worst
                quality, low quality, normal quality:2) JuggernautNegative-neg'``.
            scale_factor: How many times wider and higher. Variant A only. Above 0 to 10; default
                ``2``.
            dynamic: Contrast and depth (guidance scale). Variant A only. 1 to 50; default ``6``.
            creativity: How freely detail is invented. Variant A only. 0 to 1; default ``0.35``.
            resemblance: How closely the picture is kept to. Variant A only. 0 to 3; default
                ``0.6``.
            tiling_width: Width of a tile; small tiles are sharper and stray further. Variant A
                only. 16 to 256; a multiple of 16; default ``112``.
            tiling_height: Height of a tile. Variant A only. 16 to 256; a multiple of 16; default
                ``144``.
            sd_model: Stable Diffusion model that paints the detail. Variant A only. Default
                ``'juggernaut_reborn.safetensors [338b85bc4f]'``.
            scheduler: How the noise is taken away. Variant A only. Default ``'DPM++ 3M SDE
                Karras'``.
            num_inference_steps: Steps of denoising. Variant A only. 1 to 100; default ``18``.
            downscaling: Shrink the picture first, which leaves more to invent. Variant A only.
                Default ``False``.
            downscaling_resolution: Longest side after shrinking. Variant A only. 64 to 4096 px;
                default ``768``.
            sharpen: Sharpening at the end. Variant A only. 0 to 10; default ``0``.
            output_format: Format of the result. Variant A only. Default ``'png'``.
            seed: Makes the detail repeatable. Variant A only. Default ``1337``.
            multistep_factor: What `creativity` is multiplied by from pass to pass, above a factor
                of 2. Variant A only. 0 to 2; default ``0.8``.
            lora_links: Address of LoRA weights to load. Variant A only.
            custom_sd_model: Address of a Stable Diffusion model to use. Variant A only.
            mask: Area to keep as it is. Variant A only.
            handfix: Repair hands. Variant A only. Default ``'disabled'``.
            pattern: Make the edges fit each other, for patterns that repeat. Variant A only.
                Default ``False``.
            scale: How many times wider and higher. Variant B only. Above 0 to 10; default ``4``.
            face_enhance: Go over faces with a network of their own; needs an upstream that has one.
                Variant B only. Default ``False``.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.
            wait: Wait for the end of the job; else it comes back as it is, and
                `client.predictions.wait` waits for it. Default True.

        Returns:
            The finished job with what came of it.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            PredictionFailedError: The model failed.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Writes down what is said in a recording, or translates it into English.

        Args:
            source: Recording: any audio or video file.
            model: Which model works. Default: ``turian/insanely-fast-whisper-with-video``.
            url: Page of an online video to take the sound from, instead of `audio`.
            task: Write down, or translate into English. Default ``'transcribe'``.
            batch_size: Stretches worked on at once; fewer need less memory. 1 to 256; default
                ``64``.
            timestamp: Times of stretches of speech, or of each word. Default ``'chunk'``.
            language: Language spoken, as a Whisper code or name; found out when absent.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.
            wait: Wait for the end of the job; else it comes back as it is, and
                `client.predictions.wait` waits for it. Default True.

        Returns:
            The finished job with what came of it.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            PredictionFailedError: The model failed.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Makes a short video from a description.

        Args:
            prompt: What the video shows.
            model: Which model works. Default: ``anotherjesse/zeroscope-v2-xl``.
            negative_prompt: What it must not show. Default ``'blurred, noisy, washed out,
                distorted, broken'``.
            init_weight: How much of `init_video` is kept: 1 keeps all of it, 0 nothing. 0 to 1;
                default ``0.5``.
            num_frames: Length of the video. 1 to 100 frames; default ``24``.
            num_inference_steps: Steps of denoising. 1 to 500; default ``50``.
            width: Width of the video. 256 to 2048 px; a multiple of 8; default ``1024``.
            height: Height of the video; the models were trained on 576 beside a width of 1024. 256
                to 2048 px; a multiple of 8; default ``1024``.
            guidance_scale: How closely to follow the description. 1 to 100; default ``17.5``.
            fps: Frame rate. 1 to 60 frames/s; default ``10``.
            video_model: Which model paints. Default ``'xl'``.
            batch_size: How many videos to make. 1 to 8; default ``1``.
            remove_watermark: Paint over the mark that the training videos left; needs an upstream
                that can. Default ``False``.
            init_video: Video to start from.
            seed: Makes the video repeatable; random when absent.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.
            wait: Wait for the end of the job; else it comes back as it is, and
                `client.predictions.wait` waits for it. Default True.

        Returns:
            The finished job with what came of it.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            PredictionFailedError: The model failed.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Makes a few seconds of music from a description, or from the way between two.

        Args:
            prompt_a: What the music is like.
            model: Which model works. Default: ``riffusion/riffusion``.
            denoising: How much of the seed spectrogram is changed. 0 to 1; default ``0.75``.
            prompt_b: A second description to go towards; none when blank.
            alpha: How far towards `prompt_b`: 0 is all `prompt_a`, 1 all `prompt_b`. 0 to 1;
                default ``0.5``.
            num_inference_steps: Steps of diffusion. 1 to 500; default ``50``.
            seed_image_id: Spectrogram to start from. Default ``'vibes'``.
            seed: Makes the music repeatable; random when absent.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.
            wait: Wait for the end of the job; else it comes back as it is, and
                `client.predictions.wait` waits for it. Default True.

        Returns:
            The finished job with what came of it.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            PredictionFailedError: The model failed.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Names the song in a piece of sound.

        Args:
            source: A few seconds of the song: any audio or video file.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.

        Returns:
            The song.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            NoMatchError: No song was recognised.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Fetches an online video.

        Args:
            url: Page of the video, or the file itself.
            resolution: `720p`, `720` (144 to 4320: the smaller side), or `best`; the best at or
                below it is taken, else the smallest above. Default ``'best'``.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.

        Returns:
            Where the finished file lies.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Says in short what an online video is about.

        Args:
            url: Page of the video.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.

        Returns:
            The text.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Fetches the music that fits a query best, as MP3.

        Args:
            query: What to look for.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.

        Returns:
            Where the finished file lies.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Makes an MP3 of any audio or video file.

        Args:
            source: The media: any audio or video file.
            url: Address of a media file, instead of `file`.
            bitrate: Constant bitrate: 128000, or a text such as `128k`. 8000 to 320000 bit/s.
            vbr_quality: Variable bitrate from 0, the best; the default is 0 when there is no
                `bitrate`. 0 to below 10.
            sample_rate: Sample rate of the MP3; the one nearest to the input's when absent. In Hz.
            channels: Mono or stereo; as the input when absent, stereo when it has more. 1 to 2.
            start: Leave out what comes before: seconds, or `[HH:]MM:SS[.mmm]`. At least 0 s.
            end: Leave out what comes after, in the same forms. At least 0 s.
            audio_stream: Number of the stream to convert, among all streams; the best sound when
                absent. At least 0.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.
            on_progress: Called with the job whenever the server tells something new of it. What it
                raises is raised here; the job goes on.

        Returns:
            Where the finished file lies.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
        """Reads the text in a picture.

        Args:
            image: The picture; a TIFF may have several pages.
            lang: Languages of the text, joined by plus: `eng`, `deu+fra`.
            extra_body: Fields that the contract does not have, sent as they are. Default: none.
            timeout: Seconds that everything may take, or a `polymux.Timeout`. Default: the
                client's.
            on_upload: Called with the bytes of the body sent so far and its length, None when not
                known; at most every 50 ms, and at the end. What it raises ends the request.

        Returns:
            The text, line by line.

        Raises:
            InvalidRequestError: The request does not keep the contract; `problems` holds everything
                that is wrong with it.
            APIStatusError: The server refused or failed; its subclasses go by the status.
            TransportError: There is no connection, or it broke off.
            RequestTimeoutError: A deadline passed; `limit` says which.
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
