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
