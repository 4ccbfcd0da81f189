"""Errors of the way to a server."""

from __future__ import annotations

from polymux.errors._base import PolymuxError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class URLRefusedError(PolymuxError, ValueError):
    """A URL that must not be fetched: its form, its scheme, its port, or where it leads.

    The message never has the address that a name stands for.

    Attributes:
        limit: ``"redirects"`` where it led on through more than are followed, which says nothing of
            where to; else empty.
    """

    code = "url_refused"
    limit: str = ""


class _SystemError(PolymuxError, OSError):
    """Fills in what handlers of `OSError` look at."""

    def __init__(self, message: str, **details: Any) -> None:
        super().__init__(message, **details)
        self.strerror = message


class TransportError(_SystemError, ConnectionError):
    """The exchange with a server failed. Base class.

    Attributes:
        stage: Where: ``"resolve"``, ``"connect"``, ``"proxy"``, ``"tls"``, ``"send"`` or
            ``"receive"``.
    """

    code = "transport_failed"
    stage: str = ""


class ConnectError(TransportError):
    """There is no connection to the server: nothing of the request was sent."""

    code = "connect_failed"


class TLSError(ConnectError):
    """The server's certificate was refused, or TLS could not be agreed on."""

    code = "tls_failed"


class ConnectionLostError(TransportError):
    """The connection broke off before the answer was whole; the server may have done the work."""

    code = "connection_lost"


class AnswerTooLargeError(PolymuxError):
    """An answer passed a limit of its size; the message names the limit."""

    code = "answer_too_large"
