"""A server's response: results on success, exceptions on failure."""

from __future__ import annotations

import re

from polymux._native import core
from polymux._util.imports import IMPORTING
from polymux._util.redaction import redact, redact_json
from polymux._util.text import printable, shortened

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from typing import Any

    from polymux.client.connection import Connection
    from polymux.errors import APIError, APIStatusError
    from polymux.media.media_file import MediaFile

    #: Result of the native core: status, header fields, body, number of attempts, seconds, and why
    #: the request was sent again.
    Native = tuple[int, bytes, bytes, int, float, tuple[str, ...]]

_REQUEST_ID_FIELDS = ("x-request-id", "request-id", "x-amzn-requestid", "cf-ray")
_MAX_BODY_CHARACTERS = 4000
#: Members of error bodies with the message, or with an object that has it.
_ERROR_MEMBERS = ("error", "detail", "message", "msg", "errors", "title")
# A list of strings (RFC 9651, 3.1 and 3.3.3). The possessive quantifiers avoid backtracking.
_STRING = re.compile(r'"((?:[^"\\]++|\\.?)*+)("|\Z)', re.DOTALL)
_ESCAPED = re.compile(r"\\(.)")
_FIRST_ERROR = 300


class Answer:
    """A complete response.

    Attributes:
        status: HTTP status.
        body: Body in bytes.
        tries: Number of attempts.
        elapsed_s: Seconds from the first byte sent to the last byte received, including all
            attempts and the waits between them.
        retry_reasons: For each time that the request was sent again: why, and after which delay.
    """

    __slots__ = (
        "_fields",
        "body",
        "certificates",
        "elapsed_s",
        "host",
        "retry_reasons",
        "status",
        "tries",
        "verified",
    )

    def __init__(self, native: Native, connection: Connection | None = None) -> None:
        self.status, self._fields, self.body, self.tries, self.elapsed_s, self.retry_reasons = (
            native
        )
        #: ``name:port`` of the server, and the file of its trusted CA certificates.
        self.host = None if connection is None else connection.host
        self.certificates = None if connection is None else connection.certificates
        self.verified = connection is None or connection.verified

    @property
    def headers(self) -> dict[str, str]:
        """Header fields with lower-case names. Commas join the values of repeated fields."""
        return headers_of(self._fields)

    @property
    def request_id(self) -> str | None:
        """The ID of the request in the server's log; None if the server does not send one."""
        return request_id_of(self.headers)

    def file(self, url: str) -> MediaFile:
        """Return the file that a URL of this response refers to."""
        with IMPORTING:
            from polymux.client.remote_file import RemoteFile

        return RemoteFile(
            url, host=self.host, certificates=self.certificates, verified=self.verified
        )


def headers_of(fields: bytes) -> dict[str, str]:
    """Parse field lines into a dict with lower-case names."""
    found: dict[str, str] = {}
    for line in fields.decode("latin-1").split("\r\n"):
        name, colon, value = line.partition(":")
        if not colon:
            continue
        name, value = name.strip().lower(), value.strip(" \t")
        found[name] = f"{found[name]}, {value}" if name in found else value
    return found


def request_id_of(headers: dict[str, str]) -> str | None:
    return next((headers[name] for name in _REQUEST_ID_FIELDS if headers.get(name)), None)


def warnings_of(headers: dict[str, str]) -> list[str]:
    """Return the warnings of a polymux server, such as ignored fields."""
    quoted = _STRING.findall(headers.get("polymux-warnings", ""))
    return [_ESCAPED.sub(r"\1", text) for text, end in quoted if end]


def status_error(answer: Answer) -> APIStatusError:
    """Return the exception for an error status, with our own keys redacted."""
    headers = answer.headers
    text = answer.body.decode("utf-8", "backslashreplace")
    body = redact_json(_parsed(text))
    fields = error_fields(body)
    error = _class_of(answer.status)(_message(answer.status, fields, headers, text))
    _name(error, fields)
    error.status = answer.status
    error.headers = {name: redact(value) for name, value in headers.items()}
    error.request_id = _text_of(fields.get("request_id")) or request_id_of(error.headers)
    error.body = shortened(redact(text), _MAX_BODY_CHARACTERS) if body is None else body
    error.tries = answer.tries
    error.retry_reasons = answer.retry_reasons
    return error


def reported_error(data: bytes) -> APIError:
    """Return the exception for a failure that a server reports inside a response.

    Its code, type and param are set if the data is JSON in the form of an error body.
    """
    from polymux.errors import APIError

    text = data.decode("utf-8", "backslashreplace")
    fields = error_fields(redact_json(_parsed(text)))
    message = fields.get("message")
    if not isinstance(message, str) or not message.strip():
        message = text
    error = APIError(shortened(printable(message.strip()), 2 * _FIRST_ERROR))
    _name(error, fields)
    return error


def _name(error: APIError, fields: dict[str, Any]) -> None:
    if isinstance(fields.get("code"), (str, int)) and fields["code"] != "":
        error.code = shortened(printable(str(fields["code"])))
    error.type = _text_of(fields.get("type"))
    error.param = _text_of(fields.get("param"))


def _class_of(status: int) -> type[APIStatusError]:
    from polymux import errors

    known: dict[int, type[APIStatusError]] = {
        400: errors.BadRequestError,
        401: errors.AuthenticationError,
        403: errors.PermissionDeniedError,
        404: errors.NotFoundError,
        409: errors.ConflictError,
        413: errors.RequestTooLargeError,
        422: errors.UnprocessableEntityError,
        429: errors.RateLimitError,
        501: errors.NoBackendError,
        503: errors.OverloadedError,
    }
    general = errors.InternalServerError if status >= 500 else errors.APIStatusError
    return known.get(status, general)


def _parsed(text: str) -> Any:
    """Return the JSON of an error's body; None if it is not JSON."""
    from polymux.errors import DecodeError

    try:
        return core.parse_json(text.encode())
    except DecodeError:
        return None


def error_fields(body: Any) -> dict[str, Any]:
    """Return message, code, type and param of an error body in any known format."""
    if isinstance(body, list) and body:
        body = body[0]  # Google's OpenAI-compatible API returns a list.
    if not isinstance(body, dict):
        return {}
    for name in _ERROR_MEMBERS:
        found = body.get(name)
        if isinstance(found, list) and found:
            found = found[0]
        if isinstance(found, dict) and found:
            return {**body, **error_fields(found)}
        if isinstance(found, str) and found:
            return {**body, "message": found}
    return body


def error_in(answer: Answer) -> APIError | None:
    """Return the exception for an error that a server sent with a successful status, else None."""
    body = _parsed(answer.body.decode("utf-8", "backslashreplace"))
    message = error_fields(body).get("message")
    return reported_error(answer.body) if isinstance(message, str) and message.strip() else None


def _message(status: int, fields: dict[str, Any], headers: dict[str, str], text: str) -> str:
    message = fields.get("message")
    if isinstance(message, str) and message.strip():
        return shortened(printable(message.strip()), 2 * _FIRST_ERROR)
    start = printable(" ".join(redact(text)[:_FIRST_ERROR].split()))
    if 300 <= status < 400:
        place = headers.get("location", "")
        return (
            f"the server returned status {status}, a redirect to "
            f"{shortened(printable(place)) or 'an unknown URL'}. Redirects are not followed. Check "
            "the server's base URL"
        )
    return f"the server returned status {status}{f': {start}' if start else ''}"


def _text_of(value: object) -> str | None:
    return shortened(printable(value)) if isinstance(value, str) and value else None
