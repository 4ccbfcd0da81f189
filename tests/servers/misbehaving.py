"""A server that follows a script for each request, however wrong, and records everything.

Example:

    with MisbehavingServer() as server:
        server.script(steps.answer(503, b"{}", [("Retry-After", "1")]))
        server.script(steps.event_stream(), steps.send(b"data: {"), steps.reset())
        ...  # two requests to server.url
        first, second = server.requests
        server.wait_closed(second.connection)
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from servers import steps
from servers.loopback import Exchange, LoopbackServer
from servers.records import Request
from servers.steps import Stage, Step

if TYPE_CHECKING:
    from servers.tcp_connection import TcpConnection

Script = tuple[Step, ...]

_NO_SCRIPT = (steps.answer(500, b'{"error": "the test has no script for this request"}'),)


class _Scripts:
    """Scripts for one path or all paths: each is used once, then the permanent one repeats."""

    def __init__(self) -> None:
        self.waiting: deque[Script] = deque()
        self.always: Script | None = None

    def next(self) -> Script | None:
        return self.waiting.popleft() if self.waiting else self.always


class MisbehavingServer(LoopbackServer):
    """Plays scripts of `servers.steps`; arguments are those of `LoopbackServer`.

    A request without a script gets a 500 and is listed in `unscripted`.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.unscripted: list[Request] = []
        self._by_path: dict[str | None, _Scripts] = {None: _Scripts()}
        self._on_connect = _Scripts()

    def script(self, *play: Step, path: str | None = None, times: int | None = 1) -> None:
        """Add a script for one or more requests.

        Args:
            play: The steps.
            path: Only for requests to this path, without query. Other paths use the scripts without
                a path. The scripts of a path are played in the order of these calls.
            times: The number of requests; None is for all that find no other script.
        """
        self._add(self._by_path.setdefault(path, _Scripts()), play, times)

    def forget(self, path: str | None) -> None:
        """Remove the scripts of a path that were not played."""
        self._by_path.setdefault(path, _Scripts()).waiting.clear()

    def on_connect(self, *play: Step, times: int | None = 1) -> None:
        """Add a script for one connection, played before a request is read."""
        self._add(self._on_connect, play, times)

    async def connected(self, wire: TcpConnection) -> None:
        script = self._on_connect.next()
        if script is not None:
            nothing = Request(wire.record, -1, wire.record.accepted_at, "", "", "", [])
            await _play(script, Exchange(self, wire, nothing))

    async def answer(self, exchange: Exchange) -> None:
        scripts = self._by_path.get(exchange.request.path)
        script = (scripts.next() if scripts else None) or self._by_path[None].next()
        if script is None:
            self.unscripted.append(exchange.request)
            script = _NO_SCRIPT
        if not any(step.reads_body for step in script):
            await exchange.read_body()
        await _play(script, exchange)

    @staticmethod
    def _add(scripts: _Scripts, play: Script, times: int | None) -> None:
        if times is None:
            scripts.always = play
        else:
            scripts.waiting.extend([play] * times)


async def _play(script: Script, exchange: Exchange) -> None:
    stage = Stage(exchange)
    for step in script:
        await step.play(stage)
