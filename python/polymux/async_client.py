"""The client for asyncio: every operation of the interface on a server, one coroutine each."""

from __future__ import annotations

from time import monotonic

from polymux._client_base import ClientBase
from polymux.operations.asynchronous import AsyncOperations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from types import TracebackType
    from typing import Any, Self

    from polymux import _core
    from polymux._calls import Call
    from polymux.async_predictions import AsyncPredictions
    from polymux.call_options import Timeout
    from polymux.chat_stream import AsyncChatStream
    from polymux.responses import Prediction

__all__ = ["AsyncClient"]

#: Loaded by the first call, as making a client costs nothing; and once, as calls come often.
_calls: Any = None
_loop: Any = None


def _load() -> None:
    global _calls, _loop
    import polymux._calls as calls
    import polymux._loop as loop

    _calls, _loop = calls, loop


class AsyncClient(ClientBase, AsyncOperations):
    """Speaks to a server of the interface, from coroutines.

    One client serves any number of tasks, event loops and threads, one after another or at once: a
    thread of its own, which starts with the first request, does the work. A stream belongs to one
    reader at a time, and any task may close it. The arguments are those of `polymux.Client`.

    Example:
        >>> import asyncio
        >>> import polymux
        >>> async def main() -> None:
        ...     async with polymux.AsyncClient("http://127.0.0.1:8000", "secret") as client:
        ...         print(client)
        >>> asyncio.run(main())
        AsyncClient('http://127.0.0.1:8000')
    """

    @property
    def predictions(self) -> AsyncPredictions:
        """The server's jobs: `get`, `list`, `cancel`, `events`, `wait`."""
        from polymux.async_predictions import AsyncPredictions

        return AsyncPredictions(self._connection, self._settings)

    async def _call(
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
        if _calls is None:
            _load()
        started = monotonic()
        session = self._connection.session()
        call: Call = _calls.Call(
            self._connection,
            self._settings,
            self._plans,
            operation,
            values,
            model=model,
            extra_body=extra_body,
            timeout=timeout,
            on_upload=on_upload,
            wait=wait,
            watched=on_progress is not None,
            awaited=True,
        )
        arguments = call.arguments()
        try:
            if call.stream:
                return await self._stream(
                    call, session.start(_loop.port(), *arguments, "chat"), on_upload
                )
            exchange = session.start(_loop.port(), *arguments, "buffered")
            answer = call.answer(await _loop.outcome(exchange, call.body, on_upload))
        except Exception as error:
            call.tell_failure(error, started)
            raise
        job = call.job(answer)
        if job is None:
            return call.result(answer)
        if not wait and not job.finished:
            return job
        if on_progress is not None or not job.finished:
            rest = call.rest(started)
            job = await self.predictions.wait(job, on_progress=on_progress, timeout=rest)
        return call.result_of_job(job.raise_for_status())

    async def _stream(
        self,
        call: Call,
        exchange: _core.Exchange,
        on_upload: Callable[[int, int | None], object] | None,
    ) -> AsyncChatStream:
        from polymux.chat_stream import opened_async_stream

        await _loop.news(exchange, call.body, on_upload)
        call.check_begun(exchange)
        return opened_async_stream(exchange)

    async def aclose(self) -> None:
        """Closes all connections; calls that run end with an error. Idempotent."""
        self._connection.close()

    async def __aenter__(self) -> Self:
        """The client itself."""
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Closes."""
        await self.aclose()
