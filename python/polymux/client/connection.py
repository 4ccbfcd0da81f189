"""A client's server URL and the native session that sends its requests."""

from __future__ import annotations

import os

from polymux._native import core
from polymux._util.imports import IMPORTING
from polymux._util.redaction import register_secret
from polymux.config import checked_base_url, checked_key, configuration, host_of
from polymux.errors import InvalidRequestError

TYPE_CHECKING = bool()
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from polymux._native import _core


_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Connection:
    """The server's URL and the native session, which the first request creates."""

    __slots__ = (
        "_closed",
        "_given",
        "_made",
        "_options",
        "_session",
        "base_url",
        "certificates",
        "chat_model",
        "host",
        "verified",
    )

    def __init__(
        self, base_url: str | None, api_key: str | None, options: Mapping[str, Any]
    ) -> None:
        self._given = (
            None if base_url is None else checked_base_url(base_url),
            None if api_key is None else checked_key(api_key),
        )
        self._options = dict(options)
        if not isinstance(options["verify"], bool):
            self._options["verify"] = _checked_path("verify", options["verify"], "a bool or a path")
        if options["client_certificate"] is not None:
            self._options["client_certificate"] = _checked_path(
                "client_certificate", options["client_certificate"], "a path or None"
            )
        self._session: _core.Session | None = None
        #: The server's URL; None until it is known.
        self.base_url = self._given[0]
        #: Its ``name:port``, and the file of its trusted CA certificates. Set by `session`.
        self.host: str | None = None
        self.certificates: str | None = None
        #: Whether to verify its certificate.
        self.verified = bool(options["verify"])
        #: Default chat model from the environment or the configuration file.
        self.chat_model: str | None = None
        register_secret(api_key)
        # `setdefault` decides which thread's session wins. A lock is not safe here: after a fork,
        # a thread that no longer exists may hold it forever.
        self._made: dict[str, _core.Session] = {}
        self._closed = False

    def session(self) -> _core.Session:
        """Return the session and create it if necessary. Thread-safe.

        Raises:
            InvalidRequestError: The client was closed before its first request.
        """
        if self._session is not None:
            return self._session
        if self._closed:
            raise InvalidRequestError("client: already closed. Create a new one")
        own = self._open()
        self._session = session = self._made.setdefault("session", own)
        if session is not own or self._closed:
            own.close()
        return session

    def _open(self) -> _core.Session:
        with IMPORTING:
            from polymux._native.version import __version__

        found = configuration(*self._given)
        headers = [f"User-Agent: polymux/{__version__}", "Accept: application/json, */*;q=0.1"]
        if found.api_key:
            headers.append(f"Authorization: Bearer {found.api_key}")
            register_secret(found.api_key)
        proxy, no_proxy = chosen(
            found.base_url,
            self._options["proxy"] or found.proxy,
            trust_env=self._options["trust_env"],
        )
        verify = self._options["verify"]
        self.certificates = found.ca_file if isinstance(verify, bool) else verify
        shown_certificate = self._options["client_certificate"] or found.client_certificate
        self.base_url, self.host = found.base_url, host_of(found.base_url)
        self.chat_model = found.chat_model
        return core.Session(
            headers=headers,
            proxy=proxy,
            no_proxy=no_proxy,
            certificates=self.certificates or "",
            verify=self.verified,
            http2=bool(self._options["http2"]),
            client_certificate=shown_certificate or "",
        )

    def close(self) -> None:
        """Close all connections. Running requests fail. Idempotent."""
        self._closed = True
        session = self._made.get("session")
        if session is not None:
            session.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("connection: cannot be pickled or copied, because it holds an API key")


def _checked_path(name: str, path: Any, expected: str) -> str:
    """Return the path of a file that OpenSSL reads.

    Raises:
        InvalidRequestError: The path is empty or contains a null byte.
        TypeError: The value is not a path.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: invalid type (got {type(path).__name__}, allowed {expected})")
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise InvalidRequestError(f"{name}: invalid path (empty, or contains a null byte)")
    return text


def hosts_like(host: str) -> tuple[str, ...]:
    """Return all equivalent names of a ``name:port``; only loopback has several.

    A server that is reached as ``localhost``, or through a local tunnel, may use ``127.0.0.1`` in
    its links, and vice versa.
    """
    name, _, port = host.rpartition(":")
    names = _LOOPBACK if name in _LOOPBACK else (name,)
    return tuple(f"{one}:{port}" for one in names)


def chosen(base_url: str, proxy: str | None, *, trust_env: bool) -> tuple[str, str]:
    """Return the proxy's URL and the hosts that bypass it; empty strings mean no proxy.

    With `trust_env`, the standard variables apply: ``https_proxy`` or ``http_proxy`` depending on
    the scheme of `base_url`, else ``all_proxy``, in lower or upper case, and ``no_proxy``.
    ``HTTP_PROXY`` in upper case is ignored, because CGI servers set it from a request header
    (httpoxy).

    Raises:
        InvalidRequestError: The proxy is not an http, https or socks URL.
    """
    if proxy is not None:
        return checked_proxy(proxy), ""
    if not trust_env:
        return "", ""
    scheme = base_url.partition(":")[0]
    names = [f"{scheme}_proxy"]
    if scheme == "https":
        names.append("HTTPS_PROXY")
    names += ["all_proxy", "ALL_PROXY"]
    found = next((os.environ[name] for name in names if os.environ.get(name)), "")
    no_proxy = os.environ.get("no_proxy") or os.environ.get("NO_PROXY") or ""
    return (checked_proxy(found), no_proxy) if found else ("", "")


def checked_proxy(proxy: str) -> str:
    """Validate a proxy's URL and redact its password in all texts from now on.

    Raises:
        InvalidRequestError: It is not an http, https or socks URL.
        TypeError: It is not a str.
    """

    if not isinstance(proxy, str):
        raise TypeError(f"proxy: invalid type (got {type(proxy).__name__}, allowed str)")
    schemes = ("http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://")
    if not proxy.isascii() or not proxy.isprintable() or " " in proxy:
        raise InvalidRequestError(
            "proxy: invalid URL (contains a space, control or non-ASCII character)"
        )
    if not proxy.lower().startswith(schemes):
        # The URL is not shown, because it may contain a password.
        raise InvalidRequestError(f"proxy: invalid URL scheme (allowed {', '.join(schemes)})")
    with IMPORTING:
        from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(proxy)
        password = parts.password
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host:
        raise InvalidRequestError("proxy: invalid URL (missing or invalid host or port)")
    register_secret(password, None if password is None else unquote(password))
    return proxy
