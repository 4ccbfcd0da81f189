"""Settings of a server, from a TOML file, the command line or Python."""

from __future__ import annotations

import ipaddress
import logging
import os
import re
import socket
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import TableReader, read_toml, rule, rules_of
from polymux._util.text import display_name, shown
from polymux.config import checked_url
from polymux.errors import InvalidRequestError
from polymux.runtime.settings import ServiceSettings, route_problems

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MAX_PORT = 65535
#: Numeric addresses (inet(3)), and names (RFC 1123, 2.1, and ``_``).
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]*))*", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_.])?", re.ASCII | re.IGNORECASE)
#: Scheme, host and port of an origin.
_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]{1,31})://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?",
    re.ASCII | re.IGNORECASE,
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
#: Values of the Host header; see `polymux.server.auth.gate`.
_HOST = re.compile(r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)


def is_every_address(host: str) -> bool:
    """Check whether a host means all addresses, in any spelling that the resolver accepts.

    Example:
        >>> [is_every_address(one) for one in ("0.0.0.0", "0", "0x0", "::", "127.0.0.1")]
        [True, True, True, True, False]
    """
    if not host:
        return True  # Event loops listen on all addresses for an empty host.
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _is_short_zero(host)
    inner = getattr(address, "ipv4_mapped", None)
    return (inner or address).is_unspecified


def _is_short_zero(host: str) -> bool:
    """Check for short forms such as ``0``, ``0.0``, ``0x0`` (inet(3))."""
    try:
        # `inet_aton` ignores what follows a space.
        return " " not in host and not any(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return False


def origin(text: str) -> str:
    """Normalize an origin to the form that browsers send (RFC 6454, 6.2).

    Accepts schemes of apps and browser extensions.

    Args:
        text: The origin, such as ``"https://site.example"``.

    Returns:
        Scheme, host and port in lower case, without a default port.

    Raises:
        InvalidRequestError: It is not an origin.

    Example:
        >>> from polymux.server.settings.settings import origin
        >>> origin("https://Site.Example:443"), origin("http://[::0:1]:8080")
        ('https://site.example', 'http://[::1]:8080')
        >>> origin("https://*.site.example")
        Traceback (most recent call last):
        polymux.errors.InvalidRequestError: invalid origin (got 'https://*.site.example', allowed
        scheme, host and port, such as https://site.example)
    """
    wrong = InvalidRequestError(
        f"invalid origin (got {shown(text)}, allowed scheme, host and port, such as "
        "https://site.example)"
    )
    found = _ORIGIN.fullmatch(text)
    if found is None:
        raise wrong
    scheme, host = found[1].lower(), found[2].lower()
    usual = _DEFAULT_PORTS.get(scheme)
    port = usual if found[3] is None else int(found[3])
    try:
        if host.startswith("["):
            host = f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        elif _NUMBERS.fullmatch(host):
            ipaddress.IPv4Address(host)  # Browsers convert all numeric hosts to IPv4 addresses.
    except ValueError:
        raise wrong from None
    is_name = host.startswith("[") or _NAME.fullmatch(host) is not None
    if not is_name or ".." in host or (port or 0) > MAX_PORT:
        raise wrong
    return f"{scheme}://{host}" + ("" if port == usual else f":{port}")


def request_host(text: str) -> str:
    """Normalize a value of the Host header to lower case.

    Args:
        text: A host with or without a port, such as ``"tools.example:8443"``.

    Raises:
        InvalidRequestError: It is not a host.
    """
    if not _HOST.fullmatch(text.lower()):
        raise InvalidRequestError(
            f"invalid host (got {shown(text)}, allowed a name or address with or without a port, "
            "such as tools.example:8443)"
        )
    return text.lower()


def listening_host(text: str) -> str:
    """Check a host to listen on: a name or an IP address in any spelling.

    Raises:
        ValueError: It is neither.
    """
    with suppress(ValueError):
        ipaddress.ip_address(text.partition("%")[0])
        return text
    is_right = _NAME.fullmatch(text)
    if _NUMBERS.fullmatch(text):
        is_right = None
        with suppress(OSError, UnicodeError):
            socket.inet_aton(text)
            return text
    if not is_right:
        raise ValueError
    return text


def readable(path: Path) -> Path:
    """Check that a file exists and can be read.

    Raises:
        InvalidRequestError: The file is missing, or permission is denied.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - it raises nothing
        raise InvalidRequestError(f"{shown(os.fspath(path))}: file not found")
    if not os.access(path, os.R_OK):
        raise InvalidRequestError(f"{shown(os.fspath(path))}: permission denied")
    return path


def certificate_problem(certificate: Path, key: Path) -> str | None:
    """Return the problem of a certificate and its key, or None."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        return (
            f"tls_cert={shown(os.fspath(certificate))} and tls_key={shown(os.fspath(key))}: "
            f"invalid ({error}). Use a certificate and the matching private key, both in PEM "
            "format and without a password"
        )
    return None


@dataclass(frozen=True, slots=True)
class CompatSettings:
    """Compatibility APIs.

    Attributes:
        openai: Serve the OpenAI API at ``/v1``. Default: on if only this machine can reach the
            server.
        mcp: Serve the Model Context Protocol at ``/mcp``. Default: as `openai`.
        replicate: Serve the Replicate API at ``/replicate/v1``. Default: as `openai`.
    """

    openai: bool | None = None
    mcp: bool | None = None
    replicate: bool | None = None


_log = logging.getLogger("polymux.server")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@renamed_arguments(grace_s="shutdown_timeout_s", doors="compat")
@dataclass(frozen=True, slots=True)
class ServerSettings(ServiceSettings):
    """Settings of a server: those of its service, and of its network interface.

    Attributes:
        host: IP address or host name to listen on. Default: ``"127.0.0.1"``.
        port: TCP port to listen on; 0 selects a free port. Default: 8000.
        public_url: URL that links to results begin with. Default: made from `host` and `port`.
        keys: File with the API keys. Default: ``keys.json`` in the store's folder.
        allowed_hosts: Accepted values of the Host header, with or without a port. Default: the
            loopback names if only this machine can reach the server, else any host.
        allowed_origins: Origins of web pages that may use the server, such as
            ``"https://site.example"``: scheme, host and port, without patterns. Default: none.
        shutdown_timeout_s: Time for running jobs after a stop signal. Default: 10.
        tls_cert: File with the TLS certificate (PEM). Default: no TLS.
        tls_key: File with the private key of `tls_cert` (PEM, without a password). Default: no TLS.
        compat: Compatibility APIs.

    Raises:
        InvalidRequestError: An item of `allowed_origins` is not an origin.
    """

    host: str = field(
        default="127.0.0.1",
        metadata=rule(parse=listening_host, must="an IP address or a host name"),
    )
    port: int = field(default=8000, metadata=rule(min=0, max=MAX_PORT))
    public_url: str | None = field(default=None, metadata=rule(parse=checked_url))
    keys: Path | None = None
    allowed_hosts: tuple[str, ...] = field(default=(), metadata=rule(parse=request_host))
    allowed_origins: tuple[str, ...] = field(default=(), metadata=rule(parse=origin))
    shutdown_timeout_s: float = 10.0
    tls_cert: Path | None = field(default=None, metadata=rule(parse=readable))
    tls_key: Path | None = field(default=None, metadata=rule(parse=readable))
    compat: CompatSettings = field(default_factory=CompatSettings)

    def __post_init__(self) -> None:
        rules_of(ServerSettings)["allowed_origins"].accept("allowed_origins", self.allowed_origins)
        origins = tuple(dict.fromkeys(map(origin, self.allowed_origins)))
        object.__setattr__(self, "allowed_origins", origins)

    def problems(self) -> Iterator[str]:
        """Check combinations of values."""
        if self.tls_cert is not None and self.tls_key is not None:
            problem = certificate_problem(self.tls_cert, self.tls_key)
            yield from () if problem is None else (problem,)
        elif self.tls_cert is not self.tls_key:
            yield "tls_cert and tls_key must be used together"
        yield from route_problems(self)

    @property
    def loopback_only(self) -> bool:
        """Whether only this machine can reach the server."""
        return self.host in _LOOPBACK and self.public_url is None

    @property
    def openai_compat(self) -> bool:
        """Whether the OpenAI API (``/v1``) is enabled."""
        return self.loopback_only if self.compat.openai is None else self.compat.openai

    @property
    def mcp_compat(self) -> bool:
        """Whether the Model Context Protocol (``/mcp``) is enabled."""
        return self.loopback_only if self.compat.mcp is None else self.compat.mcp

    @property
    def replicate_compat(self) -> bool:
        """Whether the Replicate API (``/replicate/v1``) is enabled."""
        return self.loopback_only if self.compat.replicate is None else self.compat.replicate

    @property
    def key_file(self) -> Path:
        """File of API keys."""
        return self.keys or self.store.folder / "keys.json"

    @property
    def listens_everywhere(self) -> bool:
        """Whether the server listens on all addresses."""
        return is_every_address(self.host)

    @property
    def base_url(self) -> str:
        """Base URL of links; a loopback URL if the server listens on all addresses."""
        if self.public_url is not None:
            return self.public_url.rstrip("/")
        scheme = "https" if self.tls_cert else "http"
        name = self.host
        if self.listens_everywhere:
            name = "::1" if ":" in name else "127.0.0.1"
        if ":" in name and not name.startswith("["):
            name = f"[{name}]"
        return f"{scheme}://{name}:{self.port}"


def read_settings(path: Path) -> ServerSettings:
    """Read a settings file.

    Args:
        path: The TOML file.

    Raises:
        InvalidRequestError: The file cannot be read, or a setting is invalid. The message lists all
            problems.
    """
    table = read_toml(path, "the configuration")
    where = f"the configuration {display_name(os.fspath(path))}: "
    return TableReader(_log.warning).whole(ServerSettings, table, where)
