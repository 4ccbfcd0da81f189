"""Video operations, asynchronous. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import AsyncCaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.media.media_file import MediaFile
    from polymux.client.responses import Prediction, TextResponse


class AsyncVideoOperations(AsyncCaller):
    """Video operations, asynchronous."""

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
        """Makes a short video from a description.

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

    async def download_video(
        self,
        url: str,
        *,
        resolution: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Fetches an online video.

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
        """Says in short what an online video is about.

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
