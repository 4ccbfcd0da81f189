"""Offers of another protocol, such as Java's and curl's ``Upgrade: h2c``, are left alone.

A server may leave such an offer alone (RFC 9110, 7.8). The parser reads nothing behind the header
of one that is made, and uvicorn drops what has come: a body would be lost, and where it comes later
it would be read as the next request, which a proxy in front has not seen.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

if TYPE_CHECKING:
    import asyncio

_FRAMING = (b"content-length", b"transfer-encoding")


class IgnoreUpgradeProtocol(HttpToolsProtocol):
    """A connection whose requests are read to their ends, whatever they offer.

    Attributes:
        body_is_to_come: Whether the parser takes a request for complete whose body is not read.
    """

    body_is_to_come = False

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._given = b""
        super().connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Keeps the piece, of which the parser may leave a part."""
        self._given = data
        super().data_received(data)

    def on_headers_complete(self) -> None:
        """Sees whether a body follows."""
        length = [value for name, value in self.headers if name in _FRAMING]
        self.body_is_to_come = self.parser.should_upgrade() and length not in ([], [b"0"])
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        """The end of a request, where it is one."""
        if not self.body_is_to_come:
            super().on_message_complete()

    def _unsupported_upgrade_warning(self) -> None:
        """Reads on behind the header; called while the parser's exception is handled."""
        offer = sys.exc_info()[1]
        if not isinstance(offer, httptools.HttpParserUpgrade):
            return
        rest = self._given[offer.args[0] :]
        head = b""
        if self.body_is_to_come:
            self.body_is_to_come = False
            fields = (b"%s: %s\r\n" % one for one in self.headers if one[0] in _FRAMING)
            head = b"POST / HTTP/1.1\r\n" + b"".join(fields) + b"\r\n"
        self.parser = httptools.HttpRequestParser(_Behind(self) if head else self)
        try:
            self.parser.feed_data(head)
        except httptools.HttpParserError:
            self.send_400_response("")
            return
        if rest:
            self.data_received(rest)


class _Behind:
    """Hands on what a parser finds, but for the header by which it was told of a body."""

    def __init__(self, protocol: IgnoreUpgradeProtocol) -> None:
        self._protocol = protocol
        self._told = False

    def on_message_begin(self) -> None:
        if self._told:
            self._protocol.on_message_begin()

    def on_url(self, url: bytes) -> None:
        if self._told:
            self._protocol.on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        if self._told:
            self._protocol.on_header(name, value)

    def on_headers_complete(self) -> None:
        if self._told:
            self._protocol.on_headers_complete()
        self._told = True

    def on_body(self, body: bytes) -> None:
        self._protocol.on_body(body)

    def on_message_complete(self) -> None:
        self._protocol.on_message_complete()
