"""Every operation on this machine, without a server: one call each."""

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

#: A signal may come just before the main thread begins to wait, or to another thread: neither
#: would wake it.
_LOOK_AGAIN_S = 0.1


class Session:
    """From the first call to `close`: an event loop on a thread, and what does the calls there."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        self.inner = AsyncLocal(**given)
        self.loop = asyncio.new_event_loop()
        #: Set when it has ended whole: what it had open is free for the next one.
        self.over = threading.Event()
        self._is_ended = self._is_ending = False
        self._failure: BaseException | None = None
        self._thread = threading.Thread(target=self._live, name="polymux-local", daemon=True)
        self._thread.start()

    def _live(self) -> None:
        """On its thread."""
        try:
            while not self._is_ended:
                # What a backend of the caller's own raises ends its task and not all others: who
                # waits for them in another thread would wait for ever.
                with suppress(SystemExit, KeyboardInterrupt):
                    self.loop.run_forever()
            self.loop.close()
        finally:
            self.over.set()

    def begin_end(self) -> None:
        """Ends what runs; whoever waits for it is told. Nothing may be begun any more.

        It comes to its end by itself, also where whoever waits for that is interrupted. Any number
        of times: who was interrupted before it had begun has not begun it.
        """
        if not self._is_ending:
            asyncio.run_coroutine_threadsafe(self._end(), self.loop)
            self._is_ending = True

    def wait_until_over(self) -> None:
        """Waits for that, on any thread but its own, with an ear for Ctrl-C."""
        while not self.over.wait(_LOOK_AGAIN_S):
            pass

    def wait_for_end(self) -> None:
        """The same; raises what has failed at it."""
        self.wait_until_over()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    async def _end(self) -> None:
        try:
            try:
                await self.inner.aclose()
            finally:
                # A thread waits for each of them, and would for ever.
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
            # Behind what tells those threads.
            self.loop.call_soon(self.loop.stop)


class CallbackBridge:
    """A call's predictions, from the loop's thread to the one that made the call.

    Args:
        on_progress: Called there. None where nobody wants to know.
    """

    def __init__(self, on_progress: Callable[[Prediction], object] | None) -> None:
        self._on_progress = on_progress
        #: What was told, and whom to tell that it was heard; None at the call's end.
        self._told: SimpleQueue[tuple[Prediction, Callable[[], None]] | None] = SimpleQueue()

    @property
    def callback(self) -> Callable[[Prediction], object] | None:
        """The callback for the loop's thread."""
        return None if self._on_progress is None else self._tell

    async def _tell(self, prediction: Prediction) -> None:
        """On the loop's thread. What happens meanwhile is not told: the next one is as new."""
        loop = asyncio.get_running_loop()
        heard = loop.create_future()

        def hear() -> None:
            if not heard.done():
                heard.set_result(None)

        def answer() -> None:
            with suppress(RuntimeError):  # It was closed, by the callback maybe.
                loop.call_soon_threadsafe(hear)

        self._told.put((prediction, answer))
        await heard

    def until_done(self, future: Future[Any]) -> None:
        """Calls back on this thread until the call is done; what a callback raises comes out."""
        future.add_done_callback(lambda _: self._told.put(None))
        is_main = threading.current_thread() is threading.main_thread()
        max_s = _LOOK_AGAIN_S if is_main else None
        while True:
            try:
                told = self._told.get(timeout=max_s)
            except Empty:
                continue
            if told is None:
                return
            prediction, answer = told
            # It may have come to its end by its deadline, or was closed.
            if self._on_progress is not None and not future.done():
                self._on_progress(prediction)
            answer()


class Local(LocalBase, Operations):
    """The methods of `polymux.Client`, on engines of this machine.

    What `AsyncLocal` is, for programs without an event loop: it has one of its own, on a thread,
    from the first call on. Any number of threads may use it; `on_progress` is called by the one
    that made the call. A process that is forked begins anew, with engines and a folder of its own.
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
        #: The one before, as long as it is not known to be over.
        self._ending: Session | None = None
        _LOCALS.add(self)

    def _begun(
        self, work: Callable[[AsyncLocal], Coroutine[Any, Any, Any]], session: Session | None
    ) -> tuple[Future[Any], threading.Event]:
        """Begins a coroutine in a session, or in the present one; that it has stopped is an event.

        Its result is what it gives and what it raises. SystemExit and KeyboardInterrupt of a file
        object would otherwise end the loop's thread, and nobody the call.

        Raises:
            OperationCancelledError: That session is over.
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
            # Not without the lock: what is begun after its session's end would never run.
            with self._lock:
                ending = self._ending
                if session is not None or ending is None or ending.over.is_set():
                    if self._session is None and session is None:
                        self._session = Session(self._given)
                    present = self._session
                    if present is None or session not in (None, present):
                        raise OperationCancelledError("it was closed before this was done")
                    begun = watched(present.inner)
                    return asyncio.run_coroutine_threadsafe(begun, present.loop), stopped
            # It holds the folder still.
            ending.begin_end()
            ending.wait_until_over()

    def _run(
        self,
        work: Callable[[AsyncLocal], Coroutine[Any, Any, Any]],
        session: Session | None = None,
        bridge: CallbackBridge | None = None,
    ) -> Any:
        """Runs a coroutine to its end; Ctrl-C cancels it, and waits until it has stopped.

        So does what a callback raises, which is called on this thread.
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
            raise OperationCancelledError("it was closed while this was done") from None
        if error is None:
            return result
        try:
            raise error
        finally:
            del error, future  # Its traceback leads here.

    def _call(
        self, operation: str, values: dict[str, Any], **arguments: Unpack[CallArguments]
    ) -> Any:
        bridge = CallbackBridge(arguments.get("on_progress"))
        arguments["on_progress"] = bridge.callback
        result = self._run(
            lambda inner: inner._call(operation, values, **arguments),  # noqa: SLF001 - its twin
            bridge=bridge,
        )
        if values.get("stream") is True and hasattr(result, "_detach"):
            from polymux.client.chat_stream import ChatStream, make_stream

            return make_stream(ChatStream, _Pieces(self, result._detach()))  # noqa: SLF001
        return result

    def close(self) -> None:
        """Ends what runs, and the engines' processes. Idempotent.

        Calls of other threads that have not ended raise `OperationCancelledError`. Where it is
        interrupted by Ctrl-C, the closing goes on; another one, and the next call, wait for it.
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
    """Whether the current task is, and not a file object has raised what looks like it."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


_LOCALS: WeakSet[Local] = WeakSet()
#: Forgotten, their loops would take what the parent's still waits for out of the system's list.
_OF_PARENTS: list[Session] = []


def _forked() -> None:
    """The child has neither the sessions' threads nor who holds the locks."""
    for local in list(_LOCALS):
        sessions = (local._session, local._ending)  # noqa: SLF001
        _OF_PARENTS.extend(one for one in sessions if one is not None)
        local._begin()  # noqa: SLF001


os.register_at_fork(after_in_child=_forked)


class _Pieces:
    """The pieces of a stream of the other loop, for this thread."""

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
            raise OperationCancelledError("it was closed before the stream's end")
        piece: ChatChunk | bytes | None = self._local._run(following, self._session)  # noqa: SLF001
        if piece is None:
            raise StopIteration
        return piece

    def close(self) -> None:
        async def end(_: AsyncLocal) -> None:
            await self._source.aclose()

        if self._session is not None:
            with suppress(OperationCancelledError):  # It has ended with its session.
                self._local._run(end, self._session)  # noqa: SLF001
