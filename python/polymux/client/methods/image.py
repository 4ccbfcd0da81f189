"""Image operations. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import Caller, overload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.client.methods.types import GenerateImageAScheduler, GenerateImageBScheduler, GenerateImageCScheduler, UpscaleImageAScheduler
    from polymux.client.responses import Prediction


class ImageOperations(Caller):
    """Image operations."""

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
