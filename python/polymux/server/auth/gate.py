"""Authentication and header checks, before one byte of a body is read.

Raw ASGI, because dependencies of a framework would run after the body was read and parsed.
"""

from __future__ import annotations

import logging
import re
import secrets
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polymux import contract, errors
from polymux._native import core
from polymux._util.redaction import redact
from polymux._util.text import shown
from polymux.server.auth.rate_limit import Quotas
from polymux.service.errors import restored, status_error
from polymux.service.model import Caller

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.server.auth.api_keys import Key, KeyFile
    from polymux.server.http.responses import Scope
    from polymux.server.settings.settings import ServerSettings

_log = logging.getLogger("polymux.server")
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}", re.ASCII)


@dataclass(frozen=True, slots=True)
class Access:
    """The client of a request that passed the gate.

    Attributes:
        caller: For the service.
        key: The API key; None for public endpoints.
        request_id: Identifies the request in logs and responses.
        headers: Header fields, names in lower case. Repeated fields keep their first value, except
            lists, which are joined. Repeated critical fields are rejected.
        length_bytes: Content-Length of the body; None if missing.
    """

    caller: Caller
    key: Key | None
    request_id: str
    headers: Mapping[bytes, bytes] = field(repr=False)
    length_bytes: int | None = None


def request_id_of(scope: Scope) -> str:
    """Return the client's request id if valid, else a new one."""
    for name, value in scope.get("headers", ()):
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return bytes(value).decode("ascii")
    return f"req_{secrets.token_hex(12)}"


class Gate:
    """Checks headers, origins and API keys of one server.

    Attributes:
        rules: Requirements of the server.
    """

    def __init__(
        self, settings: ServerSettings, keys: KeyFile, quotas: Quotas | None = None
    ) -> None:
        self._keys = keys
        self.rules = core.GateRules(
            allowed_hosts=settings.allowed_hosts,
            allowed_origins=settings.allowed_origins,
            is_loopback_only=settings.loopback_only,
        )
        self.quotas = quotas or Quotas()

    def admit(self, endpoint: core.EndpointRules, scope: Scope, request_id: str) -> Access:
        """Check header, origin and API key of a request.

        Raises:
            APIStatusError: The request is not admitted.
        """
        keys: tuple[Key, ...] = ()
        table, unreadable = None, None
        try:
            keys = self._keys.keys()
            table = self._keys.table
        except errors.InvalidRequestError as error:
            unreadable = error  # Endpoints that need no key still work.
        decided = self.rules.admit(endpoint, table, scope, time.time())
        if len(decided) == 5:  # The literal distinguishes the types.
            status, code, message, param, retry_after_s = decided
            if unreadable is not None and retry_after_s:
                _log.error("%s", unreadable)
            raise restored(
                {
                    "status": status,
                    "code": code,
                    "message": redact(message),
                    "param": param,
                    "retry_after": str(retry_after_s) if retry_after_s else None,
                }
            )
        headers, index, length_bytes = decided
        if index is None:
            return Access(Caller("", ""), None, request_id, headers)
        key = keys[index]
        caller = Caller(key.id, key.name, key.max_estimate_s)
        return Access(caller, key, request_id, headers, length_bytes)


def check_body(
    access: Access,
    operation: str,
    max_json_bytes: int,
    max_form_bytes: int,
    accepted: Container[str],
) -> str:
    """Return the encoding of a body from the header fields; checks its size and type.

    Raises:
        UnsupportedEncodingError: The encoding is not one of `accepted`, or the body is compressed.
        RequestTooLargeError: The body is too large.
    """
    coding = access.headers.get(b"content-encoding", b"identity")
    if coding.lower() != b"identity":
        raise errors.UnsupportedEncodingError(
            f"Content-Encoding: not supported (got {shown(coding.decode('latin-1'))}). Send the "
            "body uncompressed"
        )
    given = access.headers.get(b"content-type")
    encoding = contract.encoding_of(None if given is None else given.decode("latin-1"), accepted)
    longest = max_json_bytes if encoding == "json" else max_form_bytes
    if access.length_bytes is not None and access.length_bytes > longest:
        raise too_large(longest, operation)
    return encoding


def too_large(max_bytes: int, operation: str) -> errors.RequestTooLargeError:
    return status_error(
        errors.RequestTooLargeError,
        f"the request body is too large for {operation} (allowed: {max_bytes} bytes)",
    )
