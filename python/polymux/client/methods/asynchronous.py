"""All operations as coroutine methods. Made by scripts/generate from contract/; do not edit."""

from __future__ import annotations

from polymux.client.methods._caller import AsyncCaller, overload

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any, Literal

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.client.chat_stream import AsyncChatStream
    from polymux.media.media_file import MediaFile
    from polymux.client.methods.types import ChatMessage, ChatReasoningEffort, ConvertToMp3SampleRate, Function, FunctionName, GenerateImageAScheduler, GenerateImageBScheduler, GenerateImageCScheduler, GenerateMusicSeedImageId, NamedToolChoice, ResponseFormat, StreamOptions, TextMessage, Tool, UpscaleImageAScheduler
    from polymux.client.responses import AnswerMessage, ChatCompletion, OcrText, Prediction, Song, SongList, TextResponse


class AsyncOperations(AsyncCaller):
    """All operations as coroutine methods."""

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
        """Generate the next message of a conversation, as one response or as a stream of chunks.

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
        """Generate the next message of a conversation as plain text, with the first available of several chat models.

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

    async def search_music(
        self,
        song: str,
        *,
        limit: int | None = None,
        proxy: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> SongList:
        """Search for songs by title or artist.

        See `Client.search_music` for the arguments, the result and the errors.
        """
        answer: SongList = await self._call(
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
    async def generate_image(
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
    async def generate_image(
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
    async def generate_image(
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
    async def generate_image(
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

    async def generate_image(
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

        See `Client.generate_image` for the arguments, the result and the errors.
        """
        answer: Prediction = await self._call(
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
    async def upscale_image(
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
    async def upscale_image(
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
    async def upscale_image(
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

    async def upscale_image(
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

        See `Client.upscale_image` for the arguments, the result and the errors.
        """
        answer: Prediction = await self._call(
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

    async def transcribe(
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

        See `Client.transcribe` for the arguments, the result and the errors.
        """
        answer: Prediction = await self._call(
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

    async def generate_video(
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

        See `Client.generate_video` for the arguments, the result and the errors.
        """
        answer: Prediction = await self._call(
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

    async def generate_music(
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

        See `Client.generate_music` for the arguments, the result and the errors.
        """
        answer: Prediction = await self._call(
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

    async def identify_song(
        self,
        source: Upload,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> Song:
        """Identify the song in an audio or video file.

        See `Client.identify_song` for the arguments, the result and the errors.
        """
        answer: Song = await self._call(
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

    async def download_video(
        self,
        url: str,
        *,
        resolution: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Download an online video.

        See `Client.download_video` for the arguments, the result and the errors.
        """
        answer: MediaFile = await self._call(
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

    async def summarize_video(
        self,
        url: str,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> TextResponse:
        """Summarize the content of an online video.

        See `Client.summarize_video` for the arguments, the result and the errors.
        """
        answer: TextResponse = await self._call(
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

    async def download_music(
        self,
        query: str,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Download the best match for a song title or artist as MP3.

        See `Client.download_music` for the arguments, the result and the errors.
        """
        answer: MediaFile = await self._call(
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

    async def convert_to_mp3(
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

        See `Client.convert_to_mp3` for the arguments, the result and the errors.
        """
        answer: MediaFile = await self._call(
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

    async def read_text(
        self,
        image: Upload,
        *,
        lang: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
    ) -> OcrText:
        """Extract the text in an image (OCR).

        See `Client.read_text` for the arguments, the result and the errors.
        """
        answer: OcrText = await self._call(
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
