"""Where a client's requests go, and the native session that carries them."""

from __future__ import annotations

import os

from polymux._native import core
from polymux._util.redaction import register_secret
from polymux.config import checked_base_url, checked_key, configuration, host_of
from polymux.errors import InvalidRequestError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, NoReturn

    from polymux._native import _core


_LOOPBACK = ("localhost", "127.0.0.1", "[::1]")


class Connection:
    """Where requests go, and the native session that carries them; made at the first request."""

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
        #: The server's address, once it is known.
        self.base_url = self._given[0]
        #: Its ``name:port``, and the file of certificates that it is trusted by; from `session` on.
        self.host: str | None = None
        self.certificates: str | None = None
        #: Whether its certificate is looked at.
        self.verified = bool(options["verify"])
        #: From the environment or the configuration file.
        self.chat_model: str | None = None
        register_secret(api_key)
        # Filled by `setdefault`, of which one thread's counts. A lock would not do: in the child of
        # a fork it may be held for ever, by a thread that is not there.
        self._made: dict[str, _core.Session] = {}
        self._closed = False

    def session(self) -> _core.Session:
        """The session; made by whoever comes first.

        Raises:
            InvalidRequestError: The client was closed before its first request.
        """
        if self._session is not None:
            return self._session
        if self._closed:
            raise InvalidRequestError("the client is closed")
        own = self._open()
        self._session = session = self._made.setdefault("session", own)
        if session is not own or self._closed:
            own.close()
        return session

    def _open(self) -> _core.Session:
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
        """Closes all connections; what runs ends. Idempotent."""
        self._closed = True
        session = self._made.get("session")
        if session is not None:
            session.close()

    def __reduce__(self) -> NoReturn:
        raise TypeError("a client's connection cannot be pickled or copied, as it holds a key")


def _checked_path(name: str, path: Any, expected: str) -> str:
    """The path of a file that OpenSSL will read.

    Raises:
        InvalidRequestError: It is empty, or holds a zero byte.
        TypeError: It is no path.
    """
    if not isinstance(path, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: {expected}, not {type(path).__name__}")
    text = os.fsdecode(path)
    if not text or "\0" in text:
        raise InvalidRequestError(f"{name}: the path is empty or holds a zero byte")
    return text


def hosts_like(host: str) -> tuple[str, ...]:
    """What may stand in the place of a ``name:port``: this machine alone has several names.

    A server that is reached as ``localhost``, or through a tunnel that ends there, writes
    ``127.0.0.1`` into its links as well, and the other way round.
    """
    name, _, port = host.rpartition(":")
    names = _LOOPBACK if name in _LOOPBACK else (name,)
    return tuple(f"{one}:{port}" for one in names)


def chosen(base_url: str, proxy: str | None, *, trust_env: bool) -> tuple[str, str]:
    """The proxy's address and the hosts that are reached without it; empty texts for none.

    With `trust_env` the standard variables count: ``https_proxy`` or ``http_proxy`` by the scheme
    of `base_url`, else ``all_proxy``, each in capitals too, and ``no_proxy``. ``HTTP_PROXY`` in
    capitals does not: web servers set it from a header field of strangers.

    Raises:
        InvalidRequestError: The proxy is no http, https or socks URL.
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
    """The address of a proxy; its password is in no text from then on.

    Raises:
        InvalidRequestError: It is no http, https or socks URL.
        TypeError: It is no text.
    """

    if not isinstance(proxy, str):
        raise TypeError(f"proxy is a str, not {type(proxy).__name__}")
    schemes = ("http://", "https://", "socks4://", "socks4a://", "socks5://", "socks5h://")
    if not proxy.isascii() or not proxy.isprintable() or " " in proxy:
        raise InvalidRequestError("proxy: holds a space, a control or a non-ASCII character")
    if not proxy.lower().startswith(schemes):
        # Not shown: it may hold a password.
        raise InvalidRequestError(f"proxy: must begin with one of {', '.join(schemes)}")
    from urllib.parse import unquote, urlsplit

    try:
        parts = urlsplit(proxy)
        password = parts.password
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:
        has_host = False
    if not has_host:
        raise InvalidRequestError("proxy: its host or port cannot be one")
    register_secret(password, None if password is None else unquote(password))
    return proxy
