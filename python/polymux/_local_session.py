"""The thread of a `Local`: the event loop that it has, and what goes from there to its callers."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from queue import Empty, SimpleQueue
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from concurrent.futures import Future

    from polymux.client.responses import Prediction

LONGEST_STOP_S = 5.0
#: A signal may come just before the main thread begins to wait, or to another thread: neither
#: would wake it.
_LOOK_AGAIN_S = 0.1


class Session:
    """From the first call to `close`: an event loop on a thread, and what does the calls there."""

    def __init__(self, given: Mapping[str, Any]) -> None:
        """Its thread runs from now on."""
        from polymux.local.async_local import AsyncLocal

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
                    await asyncio.wait(left, timeout=LONGEST_STOP_S)
                await self.loop.shutdown_asyncgens()
        except BaseException as error:
            self._failure = error
        finally:
            self._is_ended = True
            # Behind what tells those threads.
            self.loop.call_soon(self.loop.stop)


class Hearing:
    """A call's predictions, from the loop's thread to the one that made the call.

    Args:
        on_progress: Called there. None where nobody wants to know.
    """

    def __init__(self, on_progress: Callable[[Prediction], object] | None) -> None:
        """Nothing was told."""
        self._on_progress = on_progress
        #: What was told, and whom to tell that it was heard; None at the call's end.
        self._told: SimpleQueue[tuple[Prediction, Callable[[], None]] | None] = SimpleQueue()

    @property
    def teller(self) -> Callable[[Prediction], object] | None:
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
        longest_s = _LOOK_AGAIN_S if is_main else None
        while True:
            try:
                told = self._told.get(timeout=longest_s)
            except Empty:
                continue
            if told is None:
                return
            prediction, answer = told
            # It may have come to its end by its deadline, or was closed.
            if self._on_progress is not None and not future.done():
                self._on_progress(prediction)
            answer()
