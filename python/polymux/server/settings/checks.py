"""Checks of hosts, origins and TLS files in settings."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

from polymux._util.text import shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

MAX_PORT = 65535
#: Addresses as numbers (inet(3)), and names (RFC 1123, 2.1, and ``_``).
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]*))*", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_.])?", re.ASCII | re.IGNORECASE)
#: Scheme, host and port of an origin, and nothing else.
_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]{1,31})://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?",
    re.ASCII | re.IGNORECASE,
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
#: The Host header: see `polymux.server.auth.gate`.
_HOST = re.compile(r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)


def is_every_address(host: str) -> bool:
    """Whether this host means all addresses, in any spelling of the resolver.

    Example:
        >>> [is_every_address(one) for one in ("0.0.0.0", "0", "0x0", "::", "127.0.0.1")]
        [True, True, True, True, False]
    """
    if not host:
        return True  # As event loops understand it.
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _is_short_zero(host)
    inner = getattr(address, "ipv4_mapped", None)
    return (inner or address).is_unspecified


def _is_short_zero(host: str) -> bool:
    """``0``, ``0.0``, ``0x0``: numbers for parts of an address, or for all of it (inet(3))."""
    try:
        # `inet_aton` ignores what follows a space.
        return " " not in host and not any(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return False


def origin(text: str) -> str:
    """An origin as browsers send it (RFC 6454, 6.2). Schemes of apps and extensions count too.

    Raises:
        InvalidRequestError: No browser sends it.

    Example:
        >>> from polymux.server.settings.checks import origin
        >>> origin("https://Site.Example:443"), origin("http://[::0:1]:8080")
        ('https://site.example', 'http://[::1]:8080')
        >>> origin("https://*.site.example")
        Traceback (most recent call last):
        polymux.errors.InvalidRequestError: 'https://*.site.example' is not an origin, such as
        https://site.example
    """
    wrong = InvalidRequestError(f"{shown(text)} is not an origin, such as https://site.example")
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
            ipaddress.IPv4Address(host)  # Browsers turn all numbers into an address.
    except ValueError:
        raise wrong from None
    is_name = host.startswith("[") or _NAME.fullmatch(host) is not None
    if not is_name or ".." in host or (port or 0) > MAX_PORT:
        raise wrong
    return f"{scheme}://{host}" + ("" if port == usual else f":{port}")


def request_host(text: str) -> str:
    """A host as requests have it, in lower case.

    Raises:
        InvalidRequestError: It is not a host.
    """
    if not _HOST.fullmatch(text.lower()):
        raise InvalidRequestError(
            f"{shown(text)} is not a host, such as tools.example or tools.example:8443"
        )
    return text.lower()


def listening_host(text: str) -> str:
    """A host to listen on: a name, or an address in any spelling; raises ValueError for others."""
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
    """The path of a file.

    Raises:
        InvalidRequestError: It does not exist or cannot be read.
    """
    if not os.path.isfile(path):  # noqa: PTH113 - it raises nothing
        raise InvalidRequestError(f"{shown(os.fspath(path))} is missing or is not a file")
    if not os.access(path, os.R_OK):
        raise InvalidRequestError(f"{shown(os.fspath(path))} cannot be read: permission denied")
    return path


def certificate_problem(certificate: Path, key: Path) -> str | None:
    """What is wrong with a certificate and its key, if anything."""
    import ssl

    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        return (
            f"tls_cert={shown(os.fspath(certificate))} and tls_key={shown(os.fspath(key))}: must "
            f"be a certificate and its key in PEM, without a password: {error}"
        )
    return None
