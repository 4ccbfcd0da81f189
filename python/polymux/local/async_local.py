"""Run operations locally with asyncio: one coroutine for each operation."""

from __future__ import annotations

import asyncio
import math
import os
from contextlib import suppress
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

from polymux._native import core
from polymux._util.deprecation import renamed_arguments
from polymux.client.methods.asynchronous import AsyncOperations
from polymux.client.options import MAX_GENERATION_S, as_timeout
from polymux.errors import RequestTimeoutError

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from typing import Self, Unpack

    from polymux._native._core import ChatChunk
    from polymux.client.methods._caller import CallArguments
    from polymux.downloads.settings import DownloadSettings
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.local.home import LocalHome
    from polymux.local.inputs import Intake
    from polymux.runtime.settings import EngineSettings
    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest
    from polymux.songs.song_index import SongIndex
    from polymux.summaries.settings import SummaryOptions
    from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
    from polymux.upstreams.song_search.settings import SongSearchSettings

__all__ = ["AsyncLocal"]

#: Seconds that running work gets to stop before its processes are killed.
MAX_STOP_S = 5.0


class LocalBase:
    """Arguments of `Local` and `AsyncLocal`."""

    @renamed_arguments(catalogue="song_index", longest_generation_s="max_generation_s")
    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        engines: Mapping[str, EngineSettings] | None = None,
        backends: Sequence[Backend] | None = None,
        song_search: SongSearchSettings | None = None,
        fetch: FetchPolicy | None = None,
        song_index: SongIndex | str | os.PathLike[str] | None = None,
        song_recognition: SongRecognitionSettings | None = None,
        max_generation_s: float | None = MAX_GENERATION_S,
        download: DownloadSettings | None = None,
        summaries: SummaryOptions | None = None,
    ) -> None:
        self._given: dict[str, Any] = {
            "folder": folder,
            "engines": engines,
            "backends": backends,
            "song_search": song_search,
            "fetch": fetch,
            "song_index": song_index,
            "song_recognition": song_recognition,
            "max_generation_s": max_generation_s,
            "download": download,
            "summaries": summaries,
        }
        self._begin()

    def _begin(self) -> None:
        """Reset to the closed state, also after a fork: threads and engines stay in the parent."""
        raise NotImplementedError


class AsyncLocal(LocalBase, AsyncOperations):
    """The methods of `polymux.AsyncClient`, run by local engines.

    Conversions run in this process. Other engines run in separate processes, which start on demand
    and end after some time without work. An object belongs to the event loop of its first use.

    Args:
        folder: Data directory, in which results stay after `aclose` until you delete them. Default:
            a temporary directory that `aclose` deletes; use `MediaFile.save` to keep a result.
        engines: Engines by name, with the models to load. Default: the engines of the
            configuration file, and the installed ones.
        backends: Custom backends that replace the engines. Default: none.
        song_search: Providers that `search_music` may use. Default: none.
        fetch: Allowed hosts beyond the public Internet for URLs in calls. Default: none.
        song_index: Song index that `identify_song` and `search_music` use: a `polymux.SongIndex`,
            which stays open, or its directory. Default: the index that ``polymux songs`` uses
            without options, if it has songs.
        song_recognition: Providers that `identify_song` may also use. Default: none.
        max_generation_s: Maximum estimated duration of image, video and music generation and of
            upscaling, in seconds. Longer requests raise `UnprocessableEntityError` with the
            estimate (code ``estimate_over_limit``). Default: 300; None for no limit.
        download: Settings of page downloads, such as size limits and music providers. Default: as
            on a server.
        summaries: Settings of video summaries, such as chat model, language and length. Default:
            as on a server.

    Example:
        >>> import asyncio
        >>> import polymux
        >>> async def main() -> None:
        ...     async with polymux.AsyncLocal() as local:
        ...         song = await local.convert_to_mp3("song.flac", bitrate="64k")
        ...         print(song.content_type)
        >>> asyncio.run(main())
        audio/mpeg
    """

    def _begin(self) -> None:
        self._home: LocalHome | None = None
        self._opening: asyncio.Lock | None = None
        #: Continues even if the task that closes is canceled; opening waits for its end.
        self._closing: asyncio.Task[None] | None = None
        self._process = os.getpid()

    def _check_process(self) -> None:
        if self._process != os.getpid():
            self._begin()

    async def _opened(self) -> LocalHome:
        self._check_process()
        if self._opening is None:
            self._opening = asyncio.Lock()
        async with self._opening:
            if self._home is None:
                from polymux.local.home import LocalHome

                if self._closing is not None and not self._closing.done():
                    # The task that closes gets its errors.
                    await asyncio.wait({self._closing})

                home = LocalHome(**self._given)
                await home.service.start()
                self._home = home
            return self._home

    async def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        from polymux.local.home import OpenCall

        home = await self._opened()
        with OpenCall(home.calls):
            return await self._done(home, operation, values, arguments)

    async def _done(
        self, home: LocalHome, operation: str, values: dict[str, Any], arguments: CallArguments
    ) -> Any:
        from polymux import contract
        from polymux.client.chat_stream import AsyncChatStream, make_stream
        from polymux.local import home as calls
        from polymux.local.inputs import Intake
        from polymux.service.model import buffered_sink
        from polymux.service.service import is_job

        limit_s = as_timeout(arguments.get("timeout")).total
        if limit_s == math.inf:
            limit_s = None
        intake = Intake(home.store.media)
        until = None if limit_s is None else asyncio.get_running_loop().time() + limit_s
        scope = asyncio.timeout_at(until)
        try:
            async with scope:
                work = await intake.read(
                    lambda: calls.work_of(operation, values, arguments, intake, home.service.routes)
                )
                work = calls.with_installed_model(home.service, work, arguments.get("model"))
                if work.streamed:
                    # The total timeout includes the reader's pauses between chunks.
                    pieces = home.calls.stream(_chunks(home, work, limit_s, until))
                    return make_stream(AsyncChatStream, pieces)
                if is_job(work.operation):
                    return await self._job(home, work, intake, arguments)
                sink = buffered_sink(home.store.media.draft)
                product = await home.service.call(work, sink)
                answer = calls.LocalAnswer((*work.warnings, *sink.warnings))
                return calls.result_of(work.operation, product.output, answer)
        except TimeoutError:
            # The caller's files and callbacks may also raise TimeoutError.
            if not scope.expired():
                raise
            raise _too_late(contract.operation(operation).name, limit_s or 0.0) from None
        finally:
            if not intake.is_of_job:
                intake.discard()

    async def _job(
        self, home: LocalHome, work: OperationRequest, intake: Intake, arguments: CallArguments
    ) -> Any:
        from polymux.local import home as calls

        on_progress = arguments.get("on_progress")
        jobs = home.service.jobs
        job, _ = await home.service.submit(work)
        intake.is_of_job = True
        jobs.when_over(job, intake.discard)
        if not arguments.get("wait", True):
            return calls.prediction_of(job, home.store)
        try:
            async for one in jobs.events(job):
                job = one
                if on_progress is not None:
                    result = on_progress(await home.store.run(calls.prediction_of, one, home.store))
                    if isawaitable(result):
                        await result
        except BaseException:
            with suppress(Exception):
                await asyncio.shield(jobs.cancel(job))
            raise
        return await home.store.run(calls.finished, job, home.store)

    async def aclose(self) -> None:
        """End running work and the engines' processes. Idempotent.

        Unfinished calls raise `OperationCancelledError`, and streams end. If this call is canceled,
        closing continues; other calls of `aclose`, and the next operation, wait for it.
        """
        self._check_process()
        if self._opening is None:
            return
        async with self._opening:
            home, self._home = self._home, None
            if home is not None:
                ending = home.end(MAX_STOP_S)
                self._closing = asyncio.create_task(ending, name="polymux closing")
        if self._closing is not None and not self._closing.done():
            await asyncio.shield(self._closing)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


async def _chunks(
    home: LocalHome, work: OperationRequest, limit_s: float | None, until: float | None
) -> AsyncGenerator[ChatChunk | bytes]:
    """Yield the chunks, then the end-of-stream event."""
    from contextlib import aclosing

    async with aclosing(home.service.stream(work)) as chunks:
        while True:
            try:
                async with asyncio.timeout_at(until) as scope:
                    chunk = await anext(chunks, None)
            except TimeoutError:
                if not scope.expired():
                    raise
                raise _too_late(work.operation, limit_s or 0.0) from None
            if chunk is None:
                break
            yield core.ChatChunk(core.write_json(chunk)) if isinstance(chunk, dict) else chunk
    yield b"data: [DONE]\n\n"


def _too_late(operation: str, limit_s: float) -> Exception:
    error = RequestTimeoutError(f"{operation}: timed out after {limit_s:g} s (timeout 'total')")
    error.limit = "total"
    return error
