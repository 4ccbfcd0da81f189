"""Every operation on this machine, without a server: one coroutine each."""

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
    from polymux.songs.catalogue import Catalogue
    from polymux.summaries.settings import SummaryOptions
    from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
    from polymux.upstreams.song_search.settings import SongSearchSettings

__all__ = ["AsyncLocal"]

#: How long work may take to stop before the processes that do it are ended.
MAX_STOP_S = 5.0


class LocalBase:
    """What `Local` and `AsyncLocal` were told."""

    @renamed_arguments(longest_generation_s="max_generation_s")
    def __init__(
        self,
        folder: str | os.PathLike[str] | None = None,
        *,
        engines: Mapping[str, EngineSettings] | None = None,
        backends: Sequence[Backend] | None = None,
        song_search: SongSearchSettings | None = None,
        fetch: FetchPolicy | None = None,
        catalogue: Catalogue | str | os.PathLike[str] | None = None,
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
            "catalogue": catalogue,
            "song_recognition": song_recognition,
            "max_generation_s": max_generation_s,
            "download": download,
            "summaries": summaries,
        }
        self._begin()

    def _begin(self) -> None:
        """Nothing is open; after a fork too, as threads and engines are the parent's."""
        raise NotImplementedError


class AsyncLocal(LocalBase, AsyncOperations):
    """The methods of `polymux.AsyncClient`, on engines of this machine.

    Conversions run in this process; other engines have processes of their own, which are started
    when they are wanted and end when they have had nothing to do for a while. It belongs to the
    event loop that it is first used in.

    Args:
        folder: Where results are kept, and are still there when this is closed, until somebody
            removes them. Default: a folder of its own, which goes with it; `MediaFile.save` keeps
            what is to be kept.
        engines: Name to engine: which models to load from where. Default: what is installed.
        backends: Instead of engines, for those who have written one. Default: none.
        song_search: Catalogues of songs that `search_music` may ask. Default: none.
        fetch: What may be fetched beyond the public Internet, where a call names an address.
            Default: nothing.
        catalogue: One's own songs, of which `identify_song` and `search_music` know: a
            `polymux.Catalogue`, which is left open, or its folder. Default: the one that
            ``polymux songs`` uses without an argument, where it has songs.
        song_recognition: Who else `identify_song` may ask. Default: nobody.
        max_generation_s: Pictures, detail, videos and music that are thought to take longer, in
            seconds, are refused with the estimate (`UnprocessableEntityError`, code
            ``estimate_over_limit``). Default: 300; None for no limit.
        download: How much a download of a page may be, where music is looked for, and the like.
            Default: as on a server.
        summaries: Which chat model writes them, in which language, how long. Default: as on a
            server.

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
        #: Goes on where whoever closes is cancelled; nothing is opened before it is done.
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
                    # What fails at it is told to who closes.
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
                    lambda: calls.work_of(operation, values, arguments, intake)
                )
                if work.streamed:
                    # A reader takes its time between two chunks, and that counts as well.
                    pieces = home.calls.stream(_chunks(home, work, limit_s, until))
                    return make_stream(AsyncChatStream, pieces)
                if is_job(work.operation):
                    return await self._job(home, work, intake, arguments)
                sink = buffered_sink(home.store.media.draft)
                product = await home.service.call(work, sink)
                answer = calls.LocalAnswer((*work.warnings, *sink.lines))
                return calls.result_of(work.operation, product.output, answer)
        except TimeoutError:
            # The caller's files and callbacks may raise one as well.
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
                    said = on_progress(await home.store.run(calls.prediction_of, one, home.store))
                    if isawaitable(said):
                        await said
        except BaseException:
            with suppress(Exception):
                await asyncio.shield(jobs.cancel(job))
            raise
        return await home.store.run(calls.finished, job, home.store)

    async def aclose(self) -> None:
        """Ends what runs, and the engines' processes. Idempotent.

        Calls that have not ended raise `OperationCancelledError`, and streams end where they are.
        Where this is cancelled, the closing goes on; another one, and the next call, wait for it.
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
    """The chunks, then the mark of a good end."""
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
    error = RequestTimeoutError(f"{operation} was not done within {limit_s:g} s (deadline 'total')")
    error.limit = "total"
    return error
