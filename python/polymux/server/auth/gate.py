"""Who may come in: decided from the request line and header alone, before one byte of a body.

Raw ASGI: a framework's dependency would run after the body was read and parsed.
"""

from __future__ import annotations

import logging
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polymux import contract, errors
from polymux.server.auth.rate_limit import Quotas
from polymux.server.http.connection_limit import new_request_id
from polymux.service.errors import bad_request, status_error
from polymux.service.model import Caller

if TYPE_CHECKING:
    from collections.abc import Mapping

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
#: By which proxies say for whom they ask, and that they do.
_FORWARDED = re.compile(
    rb"forwarded|x-forwarded(?:-.*)?|via|x-real-ip|x-client-ip|x-cluster-client-ip|true-client-ip|"
    rb"cf-connecting-ip(?:v6)?|fastly-client-ip|x-original-.*",
    re.ASCII,
)


@dataclass(frozen=True, slots=True)
class Access:
    """Who has come in.

    Attributes:
        caller: For the service.
        key: The key; None on paths that need none.
        request_id: Names the request in logs and answers.
        headers: Field lines, names in lower case; of one name the first counts, where one is
            allowed at all, but for lists, which are joined.
        length_bytes: Of the body, as declared; None where it is not.
    """

    caller: Caller
    key: Key | None
    request_id: str
    headers: Mapping[bytes, bytes] = field(repr=False)
    length_bytes: int | None = None


def request_id_of(scope: Scope) -> str:
    """The caller's name for its request where that is a good one, else a new one."""
    for name, value in scope.get("headers", ()):
        if name == b"x-request-id" and _REQUEST_ID.fullmatch(value):
            return bytes(value).decode("ascii")
    return new_request_id()


class Gate:
    """The rules of one server."""

    def __init__(
        self, settings: ServerSettings, keys: KeyFile, quotas: Quotas | None = None
    ) -> None:
        self._settings = settings
        self._keys = keys
        self.quotas = quotas or Quotas()
        #: One that was found right: most callers name the same.
        self._known_host: bytes | None = None

    def headers_of(self, scope: Scope) -> dict[bytes, bytes]:
        """The header, when it is one that can be believed."""
        if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _MAX_TARGET_BYTES:
            raise status_error(
                errors.APIStatusError,
                "the request's target is too long",
                code="too_long",
                status=414,
            )
        fields = scope["headers"]
        size = sum(len(name) + len(value) for name, value in fields)
        if len(fields) > _MAX_FIELDS or size > _MAX_HEADER_BYTES:
            raise status_error(
                errors.APIStatusError,
                "the request's header is too large",
                code="header_too_large",
                status=431,
            )
        found: dict[bytes, bytes] = {}
        for name, value in fields:
            if name not in found:
                found[name] = value
            elif name in _ONCE:
                field_name = name.decode("latin-1")
                raise bad_request(f"the header field {field_name} came more than once", field_name)
            elif name in _LISTS:
                found[name] += b", " + value
        if found.get(b"transfer-encoding", b"chunked").lower() != b"chunked":
            raise bad_request(
                "the only transfer coding that is taken is chunked", "Transfer-Encoding"
            )
        if b"transfer-encoding" in found and b"content-length" in found:
            # Of what has both, two readers know different ends (RFC 9112, 6.3).
            raise bad_request(
                "a body in chunks has no Content-Length beside them", "Content-Length"
            )
        host = found.get(b"host")
        if host is None or host != self._known_host:
            if host is not None or scope.get("http_version") != "1.0":
                self._check_host(host)
            self._known_host = host
        return found

    def _check_host(self, host: bytes | None) -> None:
        if host is None or not _HOST.fullmatch(host):
            raise bad_request("the request's Host is missing, or is none", "Host")
        name = host.decode("ascii").lower()
        allowed = self._settings.allowed_hosts
        if not allowed and self._settings.loopback_only:
            # A name that leads here and is not ours is a page's trick.
            allowed = _LOOPBACK_HOSTS
        bare = name.rpartition(":")[0] if re.search(r":\d+$", name) else name
        if allowed and name not in allowed and bare not in allowed:
            raise status_error(
                errors.APIStatusError,
                "this server is not the one that Host names",
                code="wrong_host",
                status=421,
            )

    def check_origin(self, headers: Mapping[bytes, bytes]) -> str | None:
        """The origin of a web page that asks, where it may; None where no page asks."""
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
            "pages of this origin may not use this server: add it to allowed_origins",
        )

    def is_loopback(self, scope: Scope, headers: Mapping[bytes, bytes]) -> bool:
        """Whether somebody of this machine asks a server that listens to this machine alone."""
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
                errors.OverloadedError, "keys cannot be checked now", retry_after_s=10
            ) from None
        # A missing one is looked for as well: all take equally long.
        key = self._keys.find(b"" if matched is None else matched[1], now)
        if key is None or matched is None:
            # The same words for a missing one and an unknown one.
            raise status_error(
                errors.AuthenticationError,
                "no key, or one that this server does not know: send Authorization: Bearer KEY",
            )
        return key

    def admit(
        self, headers: Mapping[bytes, bytes], wanted: str | None, request_id: str, now: float
    ) -> Access:
        """Who asks, where they may.

        Args:
            headers: The header, as `headers_of` gave it.
            wanted: The scope that a key needs: an operation, or ``"predictions"``, ``"metrics"``;
                None where every key will do.
            request_id: Names the request.
            now: Seconds since 1970.
        """
        self.check_origin(headers)
        key = self.key_of(headers, now)
        if wanted is not None and not key.allows(wanted):
            raise status_error(
                errors.PermissionDeniedError, f"this key may not use {wanted}", code="forbidden"
            )
        caller = Caller(key.id, key.name, key.max_estimate_s)
        return Access(caller, key, request_id, headers, _declared(headers))


#: What decides may come once: of two, servers and proxies believe different ones.
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


#: What may come in several lines, which are one (RFC 9110, 5.3).
_LISTS = frozenset((b"if-none-match", b"prefer"))


def check_body(access: Access, operation: str, max_json_bytes: int, max_form_bytes: int) -> str:
    """The encoding of a body that is announced, where it can be taken."""
    coding = access.headers.get(b"content-encoding", b"identity").lower()
    if coding != b"identity":
        raise errors.UnsupportedEncodingError(
            "Content-Encoding: bodies are taken as they are, not compressed"
        )
    given = access.headers.get(b"content-type")
    encoding = contract.encoding_of(None if given is None else given.decode("latin-1"))
    longest = max_json_bytes if encoding == "json" else max_form_bytes
    if access.length_bytes is not None and access.length_bytes > longest:
        raise too_large(longest, operation)
    return encoding


def too_large(max_bytes: int, operation: str) -> errors.RequestTooLargeError:
    return status_error(
        errors.RequestTooLargeError,
        f"the body is over the {max_bytes} bytes that {operation} takes",
    )


def _declared(headers: Mapping[bytes, bytes]) -> int | None:
    value = headers.get(b"content-length")
    if value is None:
        return None
    if not value.isdigit() or len(value) > 18:
        raise bad_request("Content-Length is no number", "Content-Length")
    return int(value)
