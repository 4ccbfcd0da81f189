"""Every operation on this machine, without a server: one call each."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from polymux.call_options import LONGEST_GENERATION_S
from polymux.operations.synchronous import Operations

if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
    from types import TracebackType
    from typing import Self

    from polymux.async_local import AsyncLocal
    from polymux.call_options import Timeout
    from polymux.downloads.settings import DownloadSettings
    from polymux.fetching import FetchPolicy
    from polymux.responses import Prediction
    from polymux.server.settings import EngineSettings
    from polymux.service.backend import Backend
    from polymux.songs.catalogue import Catalogue
    from polymux.summaries.settings import SummaryOptions
    from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
    from polymux.upstreams.song_search.settings import SongSearchSettings

__all__ = ["Local"]

_LONGEST_STOP_S = 5.0


class Local(Operations):
    """The methods of `polymux.Client`, on engines of this machine.

    What `AsyncLocal` is, for programs without an event loop: it has one of its own, on a thread,
    from the first call on. Any number of threads may use it.

    Args:
        folder: As for `AsyncLocal`.
        engines: As for `AsyncLocal`.
        backends: As for `AsyncLocal`.
        song_search: As for `AsyncLocal`.
        fetch: As for `AsyncLocal`.
        catalogue: As for `AsyncLocal`.
        song_recognition: As for `AsyncLocal`.
        longest_generation_s: As for `AsyncLocal`.
        download: As for `AsyncLocal`.
        summaries: As for `AsyncLocal`.

    Example:
        >>> import polymux
        >>> with polymux.Local() as local:
        ...     local.convert_to_mp3("song.flac", bitrate="64k").content_type
        'audio/mpeg'
    """

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
        longest_generation_s: float | None = LONGEST_GENERATION_S,
        download: DownloadSettings | None = None,
        summaries: SummaryOptions | None = None,
    ) -> None:
        """Keeps what is given; nothing is opened."""
        self._given: dict[str, Any] = {
            "folder": folder,
            "engines": engines,
            "backends": backends,
            "song_search": song_search,
            "fetch": fetch,
            "catalogue": catalogue,
            "song_recognition": song_recognition,
            "longest_generation_s": longest_generation_s,
            "download": download,
            "summaries": summaries,
        }
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._inner: AsyncLocal | None = None

    def _opened(self) -> tuple[asyncio.AbstractEventLoop, AsyncLocal]:
        with self._lock:
            if self._loop is None or self._inner is None:
                from polymux.async_local import AsyncLocal

                self._inner = AsyncLocal(**self._given)
                self._loop = asyncio.new_event_loop()
                self._thread = threading.Thread(
                    target=self._loop.run_forever, name="polymux-local", daemon=True
                )
                self._thread.start()
            return self._loop, self._inner

    def _run(self, work: Callable[[AsyncLocal], Coroutine[Any, Any, Any]]) -> Any:
        """Runs a coroutine to its end; Ctrl-C cancels it, and waits until it has stopped."""
        loop, inner = self._opened()
        stopped = threading.Event()

        async def watched() -> Any:
            try:
                return await work(inner)
            finally:
                stopped.set()

        future = asyncio.run_coroutine_threadsafe(watched(), loop)
        try:
            return future.result()
        except BaseException:
            if future.cancel():
                stopped.wait(_LONGEST_STOP_S)
            raise

    def _call(
        self,
        operation: str,
        values: dict[str, Any],
        *,
        model: str | None,
        extra_body: Mapping[str, Any] | None,
        timeout: float | Timeout | None = None,
        on_upload: Callable[[int, int | None], object] | None = None,
        on_progress: Callable[[Prediction], object] | None = None,
        wait: bool = True,
    ) -> Any:
        result = self._run(
            lambda inner: inner._call(  # noqa: SLF001 - its twin
                operation,
                values,
                model=model,
                extra_body=extra_body,
                timeout=timeout,
                on_upload=on_upload,
                on_progress=on_progress,
                wait=wait,
            )
        )
        if values.get("stream") is True and hasattr(result, "_detach"):
            return self._stream(result)
        return result

    def _stream(self, stream: Any) -> Any:
        from polymux.chat_stream import decode_chat_stream

        return decode_chat_stream(_Pieces(self, stream._detach()))  # noqa: SLF001

    def close(self) -> None:
        """Ends what runs, and the engines' processes. Idempotent."""
        with self._lock:
            loop, thread, inner = self._loop, self._thread, self._inner
            self._loop = self._thread = self._inner = None
        if loop is None or thread is None or inner is None:
            return
        asyncio.run_coroutine_threadsafe(inner.aclose(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()

    def __enter__(self) -> Self:
        """Itself."""
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes."""
        self.close()


class _Pieces:
    """The pieces of a stream of the other loop, for this thread."""

    def __init__(self, local: Local, source: Any) -> None:
        self._local = local
        self._source = source

    def __iter__(self) -> Iterator[bytes]:
        return self

    def __next__(self) -> bytes:
        async def following(_: AsyncLocal) -> bytes | None:
            return await anext(self._source, None)

        piece: bytes | None = self._local._run(following)  # noqa: SLF001
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        async def end(_: AsyncLocal) -> None:
            await self._source.aclose()

        self._local._run(end)  # noqa: SLF001
