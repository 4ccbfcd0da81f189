"""Image operations, asynchronous. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import AsyncCaller, overload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.client.methods.types import GenerateImageAScheduler, GenerateImageBScheduler, GenerateImageCScheduler, UpscaleImageAScheduler
    from polymux.client.responses import Prediction


class AsyncImageOperations(AsyncCaller):
    """Image operations, asynchronous."""

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
        """Makes pictures from a description, or from a picture and a description.

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
        """Enlarges a picture.

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
