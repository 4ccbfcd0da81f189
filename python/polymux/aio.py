"""The top-level functions for asyncio, with the same names, arguments and results.

Conversions need no thread each: the native pool notifies the event loop when one ends. Canceling
the awaiting task aborts the conversion; the cancellation is raised after all its resources are
released. Several event loops can use the functions.

Example:
    >>> import asyncio
    >>> from polymux import aio
    >>> converted = asyncio.run(aio.convert_to_mp3("talk.mp4", "talk.mp3", bitrate="128k"))
    >>> converted.report.codec
    'aac'
"""

from __future__ import annotations

import asyncio
import inspect
from contextlib import suppress
from typing import TYPE_CHECKING

from polymux._util.deprecation import renamed_arguments
from polymux.media import conversion as media_conversion
from polymux.media import probe as media_probe
from polymux.media.conversion import (
    JobGroup,
    checked_concurrency,
    media_file,
    named_tasks,
    output_folder,
)
from polymux.media.options import EncodingOptions, flag, native_options
from polymux.media.results import Progress

if TYPE_CHECKING:
    import os
    from collections.abc import AsyncGenerator, AsyncIterable, Callable, Coroutine, Iterable
    from typing import Any, Unpack

    from _typeshed import ReadableBuffer

    from polymux._native import _media
    from polymux.client.chat_stream import AsyncChatStream
    from polymux.media.conversion import Names
    from polymux.media.inputs import Destination, Source
    from polymux.media.media_file import ConversionOutcome, MediaFile
    from polymux.media.options import Limits, Time
    from polymux.media.results import MediaInfo, PcmAudio

_PROGRESS_INTERVAL_S = 0.1


async def convert_to_mp3(
    source: Source,
    destination: Destination = None,
    *,
    overwrite: bool = True,
    on_progress: Callable[[Progress], object] | None = None,
    **options: Unpack[EncodingOptions],
) -> MediaFile:
    """Convert any audio or video file to MP3; see `polymux.convert_to_mp3` for the arguments.

    `on_progress` is a function or a coroutine function, called on the event loop. Canceling the
    task aborts the conversion within milliseconds and leaves no partial file. A native thread reads
    and writes file objects; if such a call blocks, the cancellation is delayed by that time.

    Example:
        >>> import asyncio
        >>> from polymux import aio
        >>> asyncio.run(aio.convert_to_mp3("song.flac")).content_type
        'audio/mpeg'
    """
    native = native_options(options)
    ended = asyncio.Event()
    conversion = media_conversion.start_conversion(
        source,
        destination,
        native,
        overwrite=flag("overwrite", overwrite),
        on_done=_on_this_loop(ended.set),
    )
    try:
        await _watch(conversion, ended, on_progress)
    except BaseException:
        conversion.cancel()
        await _uninterrupted(ended.wait)
        with suppress(Exception):
            conversion.wait()
        raise
    file = media_file(conversion.wait(), destination)
    if on_progress is not None:
        report = file.report
        await _report(
            on_progress,
            Progress(report.duration_s, report.duration_s, report.bytes, report.elapsed_s),
        )
    return file


async def _watch(
    conversion: _media.Conversion,
    ended: asyncio.Event,
    on_progress: Callable[[Progress], object] | None,
) -> None:
    """Wait for the end, and report the progress if there is a callback."""
    while on_progress is not None and not ended.is_set():
        with suppress(TimeoutError):
            await asyncio.wait_for(ended.wait(), _PROGRESS_INTERVAL_S)
            return
        await _report(on_progress, Progress(**conversion.progress))
    await ended.wait()


async def _report(on_progress: Callable[[Progress], object], progress: Progress) -> None:
    answer = on_progress(progress)
    if inspect.isawaitable(answer):
        await answer


def _on_this_loop(function: Callable[..., object]) -> Callable[..., None]:
    """Return a function that any thread may call to run `function` on the current loop."""
    loop = asyncio.get_running_loop()

    def call(*arguments: object) -> None:
        # If the loop is closed, nothing waits for the call.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(function, *arguments)

    return call


async def _uninterrupted(step: Callable[[], Coroutine[Any, Any, object]]) -> None:
    """Await a step to its end despite cancellations, then raise the last cancellation."""
    cancelled: asyncio.CancelledError | None = None
    while True:
        try:
            await step()
            break
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


def convert_many(
    sources: Iterable[Source],
    destination_folder: str | bytes | os.PathLike[str] | os.PathLike[bytes] | None = None,
    *,
    names: Names | None = None,
    concurrency: int | None = None,
    overwrite: bool = True,
    **options: Unpack[EncodingOptions],
) -> AsyncGenerator[ConversionOutcome, None]:
    """Convert many files concurrently; see `polymux.convert_many` for the arguments.

    Invalid arguments raise at once, not at the first iteration. If you leave the loop early, wrap
    the generator in ``async with contextlib.aclosing(...)``, which waits until all conversions have
    ended and no partial files remain. Otherwise the event loop closes the generator later.

    Example:
        >>> import asyncio
        >>> from polymux import aio
        >>> async def convert_all():
        ...     return [outcome.ok async for outcome in aio.convert_many(["song.flac"], "out")]
        >>> asyncio.run(convert_all())
        [True]
    """
    native = native_options(options)
    places = checked_concurrency(concurrency)
    overwriting = flag("overwrite", overwrite)
    tasks = named_tasks(sources, output_folder(destination_folder), names)

    async def outcomes() -> AsyncGenerator[ConversionOutcome, None]:
        ended: asyncio.Queue[int] = asyncio.Queue()
        group = JobGroup(
            tasks,
            native,
            overwrite=overwriting,
            concurrency=places,
            notify=_on_this_loop(ended.put_nowait),
        )

        async def rest() -> None:
            while group.running:
                group.collect(await ended.get())

        try:
            while True:
                for outcome in group.fill():
                    yield outcome
                if not group.running:
                    return
                yield group.collect(await ended.get())
        finally:
            group.cancel()
            await _uninterrupted(rest)

    return outcomes()


async def probe(source: Source, *, limits: Limits | None = None) -> MediaInfo:
    """Read the properties of a media file; see `polymux.probe` for arguments and result.

    Example:
        >>> import asyncio
        >>> from polymux import aio
        >>> asyncio.run(aio.probe("talk.mp4")).best_audio_stream
        1
    """
    return await asyncio.to_thread(media_probe.probe, source, limits=limits)


async def decode_audio(
    source: Source,
    *,
    sample_rate: int = 16_000,
    channels: int = 1,
    audio_stream: int | None = None,
    start: Time | None = None,
    end: Time | None = None,
    strict: bool = False,
    limits: Limits | None = None,
) -> PcmAudio:
    """Decode the audio of any media file; see `polymux.decode_audio` for arguments and result.

    Decoding uses a thread of the event loop's executor. If the task is canceled, the thread
    continues to the end and its samples are discarded.

    Example:
        >>> import asyncio
        >>> from polymux import aio
        >>> asyncio.run(aio.decode_audio("song.flac", channels=2)).channels
        2
    """
    return await asyncio.to_thread(
        media_probe.decode_audio,
        source,
        sample_rate=sample_rate,
        channels=channels,
        audio_stream=audio_stream,
        start=start,
        end=end,
        strict=strict,
        limits=limits,
    )


@renamed_arguments(longest_event_bytes="max_event_bytes")
def decode_chat_stream(
    chunks: AsyncIterable[ReadableBuffer], *, max_event_bytes: int = 16 << 20
) -> AsyncChatStream:
    r"""Decode a streamed chat answer from an asynchronous source of bytes.

    See `polymux.decode_chat_stream` for the arguments, the result and the errors. Chunks that are
    already decoded are returned without a switch to the event loop.

    Example:
        >>> import asyncio
        >>> from polymux import aio
        >>> async def body():
        ...     yield b'data: {"choices":[{"delta":{"content":"Hello"}}]}\n\ndata: [DONE]\n\n'
        >>> async def read():
        ...     return [chunk.content async for chunk in aio.decode_chat_stream(body())]
        >>> asyncio.run(read())
        ['Hello']
    """
    from polymux.client.chat_stream import AsyncChatStream, make_stream

    return make_stream(AsyncChatStream, chunks, max_event_bytes)
