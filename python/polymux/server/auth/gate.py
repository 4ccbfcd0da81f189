"""Authentication and header checks, before one byte of a body is read.

Raw ASGI, because dependencies of a framework would run after the body was read and parsed.
"""

from __future__ import annotations

import contextlib
import ipaddress
import logging
import re
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polymux import contract, errors
from polymux._util.text import shown
from polymux.server.auth.rate_limit import Quotas
from polymux.service.errors import bad_request, status_error
from polymux.service.model import Caller

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.server.auth.api_keys import Key, KeyFile
    from polymux.server.http.responses import Scope
    from polymux.server.settings.settings import ServerSettings

_log = logging.getLogger("polymux.server")
_MAX_TARGET_BYTES = 8 << 10
_MAX_HEADER_BYTES = 64 << 10
_MAX_FIELDS = 200
_REQUEST_ID = re.compile(rb"[A-Za-z0-9._:-]{1,128}", re.ASCII)
_HOST = re.compile(rb"(?:[A-Za-z0-9._-]{1,253}|\[[0-9A-Fa-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)
_TOKEN = re.compile(rb"bearer ([\x21-\x7e]{1,512})", re.ASCII | re.IGNORECASE)
_LOOPBACK_HOSTS = ("localhost", "127.0.0.1", "[::1]")
#: Header fields that proxies add; with one of them, a request does not come from this machine.
_FORWARDED = re.compile(
    rb"forwarded|x-forwarded(?:-.*)?|via|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|"
    rb"cf-connecting-ip(?:v6)?|fastly-client-ip|x-original-.*",
    re.ASCII,
)


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


def _is_address(host: bytes) -> bool:
    text = re.sub(r":\d+$", "", host.decode("latin-1"))
    with contextlib.suppress(ValueError):
        return bool(ipaddress.ip_address(re.sub(r"^\[(.*)\]$", r"\1", text)))
    return False


class Gate:
    """Checks headers, origins and API keys of one server."""

    def __init__(
        self, settings: ServerSettings, keys: KeyFile, quotas: Quotas | None = None
    ) -> None:
        self._settings = settings
        self._keys = keys
        self.quotas = quotas or Quotas()
        #: The last valid Host value: most clients send the same.
        self._known_host: bytes | None = None

    def headers_of(self, scope: Scope, *, any_address: bool = False) -> dict[bytes, bytes]:
        """Validate the header and return its fields.

        With `any_address`, the Host may be any IP address. DNS rebinding needs a name.
        """
        length = len(scope.get("raw_path") or b"") + len(scope["query_string"])
        if length > _MAX_TARGET_BYTES:
            raise status_error(
                errors.APIStatusError,
                f"the URL is too long (got {length} bytes, allowed {_MAX_TARGET_BYTES})",
                code="too_long",
                status=414,
            )
        fields = scope["headers"]
        size = sum(len(name) + len(value) for name, value in fields)
        if len(fields) > _MAX_FIELDS or size > _MAX_HEADER_BYTES:
            raise status_error(
                errors.APIStatusError,
                f"the request header is too large (got {len(fields)} fields with {size} bytes, "
                f"allowed {_MAX_FIELDS} fields with {_MAX_HEADER_BYTES} bytes)",
                code="header_too_large",
                status=431,
            )
        found: dict[bytes, bytes] = {}
        for name, value in fields:
            if name not in found:
                found[name] = value
            elif name in _ONCE:
                field_name = name.decode("latin-1")
                raise bad_request(f"{field_name}: header field sent more than once", field_name)
            elif name in _LISTS:
                found[name] += b", " + value
        transfer = found.get(b"transfer-encoding", b"chunked")
        if transfer.lower() != b"chunked":
            raise bad_request(
                f"Transfer-Encoding: not supported (got {shown(transfer.decode('latin-1'))}, "
                "allowed chunked)",
                "Transfer-Encoding",
            )
        if b"transfer-encoding" in found and b"content-length" in found:
            # With both, servers and proxies may disagree about the end (RFC 9112, 6.3).
            raise bad_request(
                "Content-Length: must not be used with Transfer-Encoding", "Content-Length"
            )
        host = found.get(b"host")
        by_address = any_address and host is not None and _is_address(host)
        if not by_address and (host is None or host != self._known_host):
            if host is not None or scope.get("http_version") != "1.0":
                self._check_host(host)
            self._known_host = host
        return found

    def _check_host(self, host: bytes | None) -> None:
        if host is None or not _HOST.fullmatch(host):
            raise bad_request("missing or invalid Host header", "Host")
        name = host.decode("ascii").lower()
        allowed = self._settings.allowed_hosts
        if not allowed and self._settings.loopback_only:
            # Protects against DNS rebinding by web pages.
            allowed = _LOOPBACK_HOSTS
        bare = name.rpartition(":")[0] if re.search(r":\d+$", name) else name
        if allowed and name not in allowed and bare not in allowed:
            raise status_error(
                errors.APIStatusError,
                f"Host header not allowed: {shown(name)} (see the server setting `allowed_hosts`)",
                code="wrong_host",
                status=421,
            )

    def check_origin(self, headers: Mapping[bytes, bytes]) -> str | None:
        """Return the allowed origin of the web page that sent the request, or None."""
        origin = headers.get(b"origin")
        if origin is None:
            return None
        text = origin.decode("latin-1")
        if text in self._settings.allowed_origins:
            return text
        own = headers.get(b"host", b"").decode("latin-1").lower()
        if own and text.lower() in (f"http://{own}", f"https://{own}"):
            return text
        raise status_error(
            errors.PermissionDeniedError,
            f"origin not allowed: {text[:200]!r} (see the server setting `allowed_origins`)",
        )

    def is_loopback(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Check that this machine sent the request, and only this machine can reach the server."""
        ends = [(scope.get(one) or ("",))[0] for one in ("server", "client")]
        if any(one not in ("127.0.0.1", "::1") for one in ends):
            return False
        name = headers.get(b"host", b"").decode("latin-1").lower()
        bare = re.sub(r":\d+$", "", name)
        return (
            self._settings.loopback_only
            and bare in _LOOPBACK_HOSTS
            and not any(_FORWARDED.fullmatch(one) for one in headers)
        )

    def key_of(self, headers: Mapping[bytes, bytes], now: float) -> Key:
        value = headers.get(b"authorization")
        matched = None if value is None else _TOKEN.fullmatch(value)
        try:
            self._keys.keys()
        except errors.InvalidRequestError as error:
            _log.error("%s", error)
            raise status_error(
                errors.OverloadedError,
                "the server cannot check API keys at the moment. Try again later, or ask the "
                "server's administrator to check the log",
                retry_after_s=10,
            ) from None
        # Also look up a missing key: all cases take equally long.
        key = self._keys.find(b"" if matched is None else matched[1], now)
        if key is None or matched is None:
            # The same message for a missing and an unknown key.
            raise status_error(
                errors.AuthenticationError,
                "missing or invalid API key. Send `Authorization: Bearer <key>`",
            )
        return key

    def admit(
        self, headers: Mapping[bytes, bytes], wanted: str | None, request_id: str, now: float
    ) -> Access:
        """Check origin and API key of a request.

        Args:
            headers: Result of `headers_of`.
            wanted: Required scope: an operation, or ``"predictions"``, ``"metrics"``; None if every
                key is allowed.
            request_id: Id of the request.
            now: Seconds since 1970.
        """
        self.check_origin(headers)
        key = self.key_of(headers, now)
        if wanted is not None and not key.allows(wanted):
            raise status_error(
                errors.PermissionDeniedError,
                f"permission denied: this API key does not have the scope {wanted}",
                code="forbidden",
            )
        caller = Caller(key.id, key.name, key.max_estimate_s)
        return Access(caller, key, request_id, headers, _declared(headers))


#: Critical fields, which must not be repeated: servers and proxies may use different values.
_ONCE = frozenset(
    (
        b"authorization",
        b"content-length",
        b"content-type",
        b"expect",
        b"host",
        b"idempotency-key",
        b"origin",
        b"range",
        b"transfer-encoding",
    )
)


#: Fields whose repeated lines form one list (RFC 9110, 5.3).
_LISTS = frozenset((b"if-none-match", b"prefer"))


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


def _declared(headers: Mapping[bytes, bytes]) -> int | None:
    value = headers.get(b"content-length")
    if value is None:
        return None
    if not value.isdigit() or len(value) > 18:
        raise bad_request(
            f"Content-Length: invalid (got {shown(value.decode('latin-1'))}, allowed an integer "
            "with at most 18 digits)",
            "Content-Length",
        )
    return int(value)
