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
