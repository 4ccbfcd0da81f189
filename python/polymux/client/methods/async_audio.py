"""Audio operations, asynchronous. Made by scripts/generate from contract/; change it there."""

from __future__ import annotations

from polymux.client.methods._caller import AsyncCaller

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any, Literal

    from polymux.client.multipart import Upload
    from polymux.client.options import Timeout
    from polymux.media.media_file import MediaFile
    from polymux.client.methods.types import ConvertToMp3SampleRate, GenerateMusicSeedImageId
    from polymux.client.responses import Prediction, Song, SongList


class AsyncAudioOperations(AsyncCaller):
    """Audio operations, asynchronous."""

    async def search_music(
        self,
        song: str,
        *,
        limit: int | None = None,
        proxy: str | None = None,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
    ) -> SongList:
        """Finds songs by name.

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
        """Writes down what is said in a recording, or translates it into English.

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
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Prediction:
        """Makes a few seconds of music from a description, or from the way between two.

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
        """Names the song in a piece of sound.

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

    async def download_music(
        self,
        query: str,
        *,
        extra_body: Mapping[str, Any] | None = None,
        timeout: float | Timeout | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
    ) -> MediaFile:
        """Fetches the music that fits a query best, as MP3.

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
        """Makes an MP3 of any audio or video file.

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
