"""A scripted server for one file with range requests, both correct and faulty."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from support.http_server import Exchange


@dataclass
class RangeServer:
    """A file, the way to send it, and a record of requests.

    Attributes:
        data: The file.
        etag: Its entity tag; empty for none.
        stops: The next answers end after these numbers of body bytes; later answers are complete.
        stalls: Whether an interrupted answer waits until the client closes the connection.
        instead: Replaces the answer to a range request.
        headers: Extra headers of each answer.
        asked: ``Range`` and ``If-Range`` of each request; empty if missing.
        sent: The total of sent body bytes.
    """

    data: bytes
    etag: str = '"one"'
    stops: list[int] = field(default_factory=list)
    stalls: bool = False
    instead: Callable[[Exchange], Awaitable[None]] | None = None
    headers: tuple[str, ...] = ()
    asked: list[tuple[str, str]] = field(default_factory=list)
    sent: int = 0

    async def __call__(self, exchange: Exchange) -> None:
        headers = {name.lower(): value for name, value in exchange.headers}
        wanted, condition = headers.get("range", ""), headers.get("if-range", "")
        self.asked.append((wanted, condition))
        if wanted and self.instead is not None:
            await self.instead(exchange)
        elif wanted and condition in ("", self.etag):
            await self._part(exchange, int(wanted.removeprefix("bytes=").removesuffix("-")))
        else:
            await self._send(exchange, 200, self.data)

    async def _part(self, exchange: Exchange, first: int) -> None:
        count = len(self.data)
        if first >= count:
            await exchange.answer(416, b"", f"Content-Range: bytes */{count}")
            return
        place = f"Content-Range: bytes {first}-{count - 1}/{count}"
        await self._send(exchange, 206, self.data[first:], place)

    async def _send(self, exchange: Exchange, status: int, body: bytes, *headers: str) -> None:
        tags = [f"ETag: {self.etag}"] if self.etag else []
        lines = [f"HTTP/1.1 {status} Said", f"Content-Length: {len(body)}"]
        lines += [*tags, *headers, *self.headers, "", ""]
        part = body[: self.stops.pop(0)] if self.stops else body
        self.sent += len(part)
        await exchange.send("\r\n".join(lines).encode() + part)
        if len(part) < len(body) and self.stalls:
            await exchange.closed()
