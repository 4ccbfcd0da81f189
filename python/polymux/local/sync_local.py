"""Run operations locally without asyncio: one method for each operation."""

from __future__ import annotations

import asyncio
import os
import threading
from concurrent.futures import CancelledError
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any
from weakref import WeakSet

from polymux.client.methods.synchronous import Operations
from polymux.errors import OperationCancelledError
from polymux.local.async_local import MAX_STOP_S, AsyncLocal, LocalBase

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Iterator, Mapping
    from concurrent.futures import Future
    from typing import Self, Unpack

    from polymux._native._core import ChatChunk
    from polymux.client.methods._caller import CallArguments
    from polymux.client.responses import Prediction

__all__ = ["Local"]

#: Seconds between checks for signals. A signal that arrives just before the main thread waits, or
#: on another thread, would not wake it.
_LOOK_AGAIN_S = 0.1


class Session:
    """An event loop on a thread with an `AsyncLocal`, from the first call until `close`."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.inner = AsyncLocal(**given)
        self.loop = asyncio.new_event_loop()
        #: Set after a complete end, when all resources are released.
        self.over = threading.Event()
        self._is_ended = self._is_ending = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="polymux-local", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        """Run the loop on its thread."""
        try:
            while not self._is_ended:
                # A custom backend may raise SystemExit or KeyboardInterrupt. That must only end its
                # task, because threads wait for the other tasks of the loop.
                with suppress(SystemExit, KeyboardInterrupt):
                    self.loop.run_forever()
            self.loop.close()
        finally:
            self.over.set()

    def begin_end(self) -> None:
        """Start the end of all running work. No new work can be started.

        The end completes even if the waiting thread is interrupted. Idempotent: an interrupted
        thread may call it again.
        """
        if not self._is_ending:
            asyncio.run_coroutine_threadsafe(self._end(), self.loop)
            self._is_ending = True

    def wait_until_over(self) -> None:
        """Wait for the end on another thread; Ctrl-C interrupts the wait."""
        while not self.over.wait(_LOOK_AGAIN_S):
            pass

    def wait_for_end(self) -> None:
        """Wait for the end and raise its error, if any."""
        self.wait_until_over()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    async def _end(self) -> None:
        try:
            try:
                await self.inner.aclose()
            finally:
                # Threads wait for these tasks and would wait forever.
                left = asyncio.all_tasks() - {asyncio.current_task()}
                for one in left:
                    one.cancel()
                if left:
                    await asyncio.wait(left, timeout=MAX_STOP_S)
                await self.loop.shutdown_asyncgens()
        except BaseException as error:
            self._failure = error
        finally:
            self._is_ended = True
            # After the callbacks that wake those threads.
            self.loop.call_soon(self.loop.stop)


class CallbackBridge:
    """Passes a call's predictions from the loop's thread to the thread of the call.

    Args:
        on_progress: Called on the thread of the call; may be None.
    """

    def __init__(self, on_progress: Callable[[Prediction], object] | None) -> None:
        self._on_progress = on_progress
        #: Predictions with a function that confirms their delivery; None at the end of the call.
        self._deliveries: SimpleQueue[tuple[Prediction, Callable[[], None]] | None] = SimpleQueue()

    @property
    def callback(self) -> Callable[[Prediction], object] | None:
        """The callback for the loop's thread."""
        return None if self._on_progress is None else self._deliver

    async def _deliver(self, prediction: Prediction) -> None:
        """Pass a prediction on (loop's thread). Changes until the delivery are skipped."""
        loop = asyncio.get_running_loop()
        delivered = loop.create_future()

        def confirm() -> None:
            if not delivered.done():
                delivered.set_result(None)

        def answer() -> None:
            with suppress(RuntimeError):  # The loop is closed, maybe by the callback.
                loop.call_soon_threadsafe(confirm)

        self._deliveries.put((prediction, answer))
        await delivered

    def until_done(self, future: Future[Any]) -> None:
        """Run callbacks on this thread until the call is done. Their exceptions are raised."""
        future.add_done_callback(lambda _: self._deliveries.put(None))
        is_main = threading.current_thread() is threading.main_thread()
        max_s = _LOOK_AGAIN_S if is_main else None
        while True:
            try:
                delivery = self._deliveries.get(timeout=max_s)
            except Empty:
                continue
            if delivery is None:
                return
            prediction, answer = delivery
            # Do not call back after a timeout or a close.
            if self._on_progress is not None and not future.done():
                self._on_progress(prediction)
            answer()


class Local(LocalBase, Operations):
    """The methods of `polymux.Client`, run by local engines.

    Like `AsyncLocal`, for programs without asyncio: it runs an event loop on a separate thread,
    which the first call starts. Threads can share one object; the thread of a call runs its
    `on_progress`. A forked child process starts again with new engines and a new data directory.
    The arguments are those of `AsyncLocal`.

    Example:
        >>> import polymux
        >>> with polymux.Local() as local:
        ...     local.convert_to_mp3("song.flac", bitrate="64k").content_type
        'audio/mpeg'
    """

    def _begin(self) -> None:
        self._lock = threading.Lock()
        self._session: Session | None = None
        #: The previous session, until its end is known.
        self._ending: Session | None = None
        _LOCALS.add(self)

    def _begun(
        self, work: Callable[[AsyncLocal], Coroutine[Any, Any, Any]], session: Session | None
    ) -> tuple[Future[Any], threading.Event]:
        """Start a coroutine in a session, by default the current one. Return future and event.

        The event is set when the coroutine has stopped. The future's result is the coroutine's
        result and exception, because SystemExit and KeyboardInterrupt, which a file object may
        raise, would otherwise end the loop's thread.

        Raises:
            OperationCancelledError: The session has ended.
        """
        stopped = threading.Event()

        async def watched(inner: AsyncLocal) -> tuple[Any, BaseException | None]:
            try:
                return await work(inner), None
            except BaseException as error:
                if isinstance(error, asyncio.CancelledError) and _is_cancelled():
                    raise
                return None, error
            finally:
                stopped.set()

        while True:
            # With the lock: work that starts after the session's end would never run.
            with self._lock:
                ending = self._ending
                if session is not None or ending is None or ending.over.is_set():
                    if self._session is None and session is None:
                        self._session = Session(self._given)
                    present = self._session
                    if present is None or session not in (None, present):
                        raise OperationCancelledError(
                            "canceled: this Local was closed before the operation started"
                        )
                    begun = watched(present.inner)
                    return asyncio.run_coroutine_threadsafe(begun, present.loop), stopped
            # The previous session still uses the data directory.
            ending.begin_end()
            ending.wait_until_over()

    def _run(
        self,
        work: Callable[[AsyncLocal], Coroutine[Any, Any, Any]],
        session: Session | None = None,
        bridge: CallbackBridge | None = None,
    ) -> Any:
        """Run a coroutine to its end. Ctrl-C cancels it and waits until it has stopped.

        An exception of a callback, which runs on this thread, does the same.
        """
        future, stopped = self._begun(work, session)
        try:
            (bridge or CallbackBridge(None)).until_done(future)
        except BaseException:
            if future.cancel():
                stopped.wait(MAX_STOP_S)
            raise
        try:
            result, error = future.result()
        except CancelledError:
            raise OperationCancelledError(
                "canceled: this Local was closed during the operation"
            ) from None
        if error is None:
            return result
        try:
            raise error
        finally:
            del error, future  # Breaks the reference cycle with the traceback.

    def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        bridge = CallbackBridge(arguments.get("on_progress"))
        arguments["on_progress"] = bridge.callback
        result = self._run(
            lambda inner: inner._call(operation, values, **arguments),  # noqa: SLF001 - same API
            bridge=bridge,
        )
        if values.get("stream") is True and hasattr(result, "_detach"):
            from polymux.client.chat_stream import ChatStream, make_stream

            return make_stream(ChatStream, _Pieces(self, result._detach()))  # noqa: SLF001
        return result

    def close(self) -> None:
        """End running work and the engines' processes. Idempotent.

        Unfinished calls of other threads raise `OperationCancelledError`. If Ctrl-C interrupts this
        call, closing continues; other calls of `close`, and the next operation, wait for it.
        """
        with self._lock:
            if self._session is not None:
                self._ending, self._session = self._session, None
            ending = self._ending
            if ending is not None:
                ending.begin_end()
        if ending is None:
            return
        try:
            ending.wait_for_end()
        finally:
            with self._lock:
                if self._ending is ending and ending.over.is_set():
                    self._ending = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _is_cancelled() -> bool:
    """Return whether the current task is canceled, unlike a CancelledError from a file object."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_LOCALS: WeakSet[Local] = WeakSet()
#: Keeps a reference: garbage collection would unregister descriptors that the parent still uses.
_OF_PARENTS: list[Session] = []


def _forked() -> None:
    """Reset in a child process, which has no session threads and no owners of locks."""
    for local in list(_LOCALS):
        sessions = (local._session, local._ending)  # noqa: SLF001
        _OF_PARENTS.extend(one for one in sessions if one is not None)
        local._begin()  # noqa: SLF001


os.register_at_fork(after_in_child=_forked)


class _Pieces:
    """Iterates over a stream of the loop's thread from another thread."""

    def __init__(self, local: Local, source: Any) -> None:
        self._local = local
        self._session = local._session  # noqa: SLF001
        self._source = source

    def __iter__(self) -> Iterator[ChatChunk | bytes]:
        return self

    def __next__(self) -> ChatChunk | bytes:
        async def following(_: AsyncLocal) -> ChatChunk | bytes | None:
            return await anext(self._source, None)

        if self._session is None:
            raise OperationCancelledError(
                "canceled: this Local was closed before the end of the stream"
            )
        piece: ChatChunk | bytes | None = self._local._run(following, self._session)  # noqa: SLF001
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        async def end(_: AsyncLocal) -> None:
            await self._source.aclose()

        if self._session is not None:
            with suppress(OperationCancelledError):  # The stream has ended with its session.
                self._local._run(end, self._session)  # noqa: SLF001
