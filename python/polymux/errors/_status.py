"""Errors that a server tells by a status of HTTP."""

from __future__ import annotations

from polymux.errors._answers import APIError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class APIStatusError(APIError):
    """The server answered with a status that is no success (RFC 9110, 15).

    Attributes:
        status: Of HTTP, such as 404.
        request_id: Names the request in the server's log; None where the server has none.
        body: The answer's JSON, else its text; shortened where it is long.
        headers: Header fields of the answer, names in lower case.
        tries: How often the request was sent.
    """

    code = "status_error"
    status: int = 0
    request_id: str | None = None
    body: Any = None
    headers: dict[str, str]
    tries: int = 1

    def __init__(self, message: str, **details: Any) -> None:
        """Starts with no header fields."""
        super().__init__(message, **details)
        self.headers = {}


class BadRequestError(APIStatusError):
    """Status 400: the server refuses the request; `param` names the field where it says so."""

    code = "bad_request"


class AuthenticationError(APIStatusError):
    """Status 401: no key, or a wrong one."""

    code = "unauthorized"


class PermissionDeniedError(APIStatusError):
    """Status 403: the key does not allow this operation."""

    code = "forbidden"


class NotFoundError(APIStatusError):
    """Status 404: no such path, job, file or model; nothing was found."""

    code = "not_found"


class ConflictError(APIStatusError):
    """Status 409: another request has gone before with the same idempotency key."""

    code = "conflict"


class RequestTooLargeError(APIStatusError):
    """Status 413: the body, or what it holds once decoded, is over the server's limit."""

    code = "too_large"


class UnprocessableEntityError(APIStatusError):
    """Status 422: the media was received whole and cannot be worked with."""

    code = "unprocessable"


class RateLimitError(APIStatusError):
    """Status 429: too many requests, after all retries."""

    code = "rate_limited"


class InternalServerError(APIStatusError):
    """Status 500 or above: the server, or one behind it, failed."""

    code = "server_error"


class NoBackendError(InternalServerError):
    """Status 501: the server has nothing that could do this; asking again does not help."""

    code = "no_backend"


class OverloadedError(InternalServerError):
    """Status 503: the server has too much to do, starts or stops; after all retries."""

    code = "overloaded"
