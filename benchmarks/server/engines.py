"""Engines that do nothing, so only the server is measured."""

from __future__ import annotations

import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output, Produced
from polymux.service.backend import Backend
from polymux.service.model import OperationResult

from benchmarks.server.conversation import COMPLETION, HOLD, STREAM
from benchmarks.server.pacing import beats, stamped, wanted

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.service.model import OperationRequest, ProgressSink

FAMILY = "benchmarks.server.engines:NoopEngine"
OPERATIONS = ("chat", "convert_to_mp3")
#: A silent MP3 frame.
SILENCE = b"\xff\xfb\x90\x00" + bytes(413)


class Conductor:
    """Sends all streams of a rate their next chunk at the same moment, like batched decoding."""

    def __init__(self, rate: int) -> None:
        self._period_s = 1 / rate
        self._lock = threading.Lock()
        self._players: dict[int, Callable[[], bool]] = {}
        self._numbers = itertools.count()
        self._thread: threading.Thread | None = None

    def join(self, play: Callable[[], bool]) -> None:
        """Call `play` at every beat until it returns False."""
        with self._lock:
            self._players[next(self._numbers)] = play
            if self._thread is None:
                self._thread = threading.Thread(target=self._beat, daemon=True)
                self._thread.start()

    def _beat(self) -> None:
        while True:
            time.sleep(self._period_s - time.monotonic() % self._period_s)
            with self._lock:
                players = list(self._players.items())
            over = [number for number, play in players if not play()]
            with self._lock:
                for number in over:
                    del self._players[number]
                if not self._players:
                    self._thread = None
                    return


class NoopEngine(Engine):
    """Answers immediately, streams at a fixed rate, or waits, with or without reacting to
    cancellation, as the request demands."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.max_concurrency = int(options["max_concurrency"])
        self._conductors: dict[int, Conductor] = {}
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        if request.operation == "convert_to_mp3":
            path = sink.draft(len(SILENCE))
            path.write_bytes(SILENCE)
            return Output({"response": Produced(path, "audio/mpeg", "a.mp3")})
        words = wanted(request.values)
        if not words:
            return Output(COMPLETION)
        if words[0] == STREAM:
            self._stream(sink, token, int(words[1]), int(words[2]))
        elif words[0] == HOLD:
            self._hold(sink, token)
        else:
            time.sleep(float(words[1]))
        return Output(None)

    @staticmethod
    def _hold(sink: EngineSink, token: Token) -> None:
        left = threading.Event()
        token.on_cancel(left.set)
        sink.chunk(stamped())
        left.wait()
        token.check()

    def _stream(self, sink: EngineSink, token: Token, tokens: int, rate: int) -> None:
        over = threading.Event()
        token.on_cancel(over.set)
        left = iter(range(tokens - 1, -1, -1))

        def play() -> bool:
            if over.is_set():
                return False
            sink.chunk(stamped())
            if next(left) == 0:
                over.set()
            return not over.is_set()

        self._conductors.setdefault(rate, Conductor(rate)).join(play)
        over.wait()
        token.check()


class NoopBackend(Backend):
    """The same engine in the server's process, so only the server is measured."""

    def __init__(self, max_concurrency: int) -> None:
        self.name = "noop"
        self.operations = frozenset(("chat",))
        self.max_concurrency = max_concurrency

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:  # noqa: ARG002
        return OperationResult(COMPLETION)

    async def stream(
        self,
        work: OperationRequest,
        sink: ProgressSink,  # noqa: ARG002
    ) -> AsyncIterator[dict[str, Any]]:
        _, tokens, rate = wanted(work.values)
        async for _ in beats(int(tokens), int(rate)):
            yield stamped()
