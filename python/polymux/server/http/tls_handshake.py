"""TLS handshakes that count as connections from their start."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from polymux.server.http.protocol import BoundedProtocol

#: Maximum time of a TLS shutdown.
_GOODBYE_S = 5.0


class Handshake(asyncio.Protocol):
    """The protocol of a connection during its TLS handshake; afterwards its real protocol runs.

    asyncio calls a TLS protocol only after the handshake. Without this class, unfinished handshakes
    would not be counted, and an untrusted client could use all descriptors of the process.
    """

    def __init__(
        self, make: Callable[[], BoundedProtocol], context: ssl.SSLContext, max_s: float
    ) -> None:
        self._protocol = make()
        self._context = context
        self._max_s = max_s
        self._address: str | None = None
        self._agreeing: asyncio.Task[None] | None = None
        self._came: list[bytes] = []
        self._handed_over = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection and start the handshake; closes excess connections without a
        reply.
        """
        peer = transport.get_extra_info("peername")
        self._address, welcome = self._protocol.limiter.acquire(peer[0] if peer else None)
        if not welcome:
            transport.abort()
            return
        # Data now belongs to the handshake.
        transport.pause_reading()
        loop = asyncio.get_running_loop()
        self._agreeing = loop.create_task(self._agree(transport), name="polymux handshake")

    async def _agree(self, transport: asyncio.Transport) -> None:
        try:
            agreed = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                self._context,
                server_side=True,
                ssl_handshake_timeout=self._max_s,
                ssl_shutdown_timeout=_GOODBYE_S,
            )
        except (OSError, ValueError):  # Caused by the peer; logging it could fill the log.
            agreed = None
        if agreed is None or self._address is None:
            self._leave()
            return
        self._handed_over = True
        self._protocol.take_place(self._address)
        agreed.set_protocol(self._protocol)
        self._protocol.connection_made(agreed)
        for data in self._came:
            if not agreed.is_closing():
                self._protocol.data_received(data)
        self._came.clear()

    def _leave(self) -> None:
        if self._address is not None:
            self._protocol.limiter.release(self._address)
            self._address = None

    def data_received(self, data: bytes) -> None:
        """Store data that arrived with the end of the handshake."""
        self._came.append(data)

    def connection_lost(self, exc: Exception | None) -> None:
        """Release the connection, unless its real protocol does."""
        if self._handed_over:
            self._protocol.connection_lost(exc)
        else:
            self._leave()
