"""What is wrong with settings whose types are right."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux._util.text import shown
from polymux.config import checked_base_url
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LARGEST_PORT = 65535
#: Of limits, below which nothing works at all.
_MIN_LIMITS = {
    "event_bytes": 1024, "pixels": 1, "chat_bytes": 1, "json_bytes": 1, "upload_bytes": 1,
    "image_bytes": 1, "song_bytes": 1, "form_bytes": 1,
}  # fmt: skip
#: What is read as numbers, not as a name (inet(3)), and names (RFC 1123, 2.1; ``_`` as it is used).
_NUMBERS = re.compile(r"(?:0x[0-9a-f]*|[0-9]+)(?:\.(?:0x[0-9a-f]*|[0-9]*))*", re.IGNORECASE)
_NAME = re.compile(r"[a-z0-9_](?:[a-z0-9._-]{0,251}[a-z0-9_.])?", re.ASCII | re.IGNORECASE)
#: Scheme, host and port of an origin, and nothing else.
_ORIGIN = re.compile(
    r"([a-z][a-z0-9+.-]{1,31})://([a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::(\d{1,5}))?",
    re.ASCII | re.IGNORECASE,
)
_DEFAULT_PORTS = {"http": 80, "https": 443}
#: As requests may have it: see `polymux.server.auth.gate`.
_HOST = re.compile(r"(?:[a-z0-9._-]{1,253}|\[[0-9a-f:.]{2,45}\])(?::\d{1,5})?", re.ASCII)


def is_every_address(host: str) -> bool:
    """Whether all addresses are listened on by this name, in any of the resolver's spellings.

    Example:
        >>> [is_every_address(one) for one in ("0.0.0.0", "0", "0x0", "::", "127.0.0.1")]
        [True, True, True, True, False]
    """
    if not host:
        return True  # As event loops take it.
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        return _is_short_zero(host)
    inner = getattr(address, "ipv4_mapped", None)
    return (inner or address).is_unspecified


def _is_short_zero(host: str) -> bool:
    """``0``, ``0.0``, ``0x0``: numbers for parts of an address, or for all of it (inet(3))."""
    try:
        # What follows a space would not be looked at.
        return " " not in host and not any(socket.inet_aton(host))
    except (OSError, UnicodeError):
        return False


def origin_of(text: str) -> str | None:
    """An origin as browsers send it (RFC 6454, 6.2); None where no browser sends such a one.

    Of other schemes too: extensions, and windows that are none of a browser's, have their own.

    Example:
        >>> from polymux.server.settings.checks import origin_of
        >>> origin_of("https://Site.Example:443"), origin_of("http://[::0:1]:8080")
        ('https://site.example', 'http://[::1]:8080')
        >>> origin_of("tauri://localhost")
        'tauri://localhost'
        >>> [origin_of(one) for one in ("https://*.site.example", "https://", "http://a b", "null")]
        [None, None, None, None]
    """
    found = _ORIGIN.fullmatch(text)
    if found is None:
        return None
    scheme, host = found[1].lower(), found[2].lower()
    usual = _DEFAULT_PORTS.get(scheme)
    port = usual if found[3] is None else int(found[3])
    try:
        if host.startswith("["):
            host = f"[{ipaddress.IPv6Address(host[1:-1]).compressed}]"
        elif _NUMBERS.fullmatch(host):
            ipaddress.IPv4Address(host)  # Browsers make one of all of them.
    except ValueError:
        return None
    is_name = host.startswith("[") or _NAME.fullmatch(host) is not None
    if not is_name or ".." in host or (port or 0) > _LARGEST_PORT:
        return None
    return f"{scheme}://{host}" + ("" if port == usual else f":{port}")


def no_origin(text: str) -> str:
    """What is told of what is no origin."""
    return f"{shown(text)} is no origin, such as https://site.example"


def problems_with(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with a server's settings, by their names."""
    return [
        *_of_addresses(values),
        *_of_tls(values),
        *_of_store(values),
        *_of_numbers(values),
    ]


def _of_addresses(values: Mapping[str, Any]) -> Iterator[str]:
    port = values.get("port", 1)
    if not 0 <= port <= _LARGEST_PORT:
        yield f"port={port}: must be from 0 to {_LARGEST_PORT}"
    host = values.get("host")
    if host is not None and not _may_listen_on(host):
        yield f"host={shown(host)}: is neither an address nor a host's name"
    for host in values.get("allowed_hosts", ()):
        if not _HOST.fullmatch(host):
            yield (
                f"allowed_hosts: {shown(host)} is no host, such as tools.example or "
                "tools.example:8443"
            )
    for origin in values.get("allowed_origins", ()):
        if origin_of(origin) is None:
            yield f"allowed_origins: {no_origin(origin)}"
    url = values.get("public_url")
    if url is not None:
        try:
            checked_base_url(url)
        except InvalidRequestError as error:
            yield f"public_url: {error}"


def _may_listen_on(host: str) -> bool:
    """Whether that can be an address, in any spelling, or a name."""
    try:
        ipaddress.ip_address(host.partition("%")[0])
    except ValueError:
        pass
    else:
        return True
    if _NUMBERS.fullmatch(host):
        with suppress(OSError, UnicodeError):
            return bool(socket.inet_aton(host))
        return False
    return bool(_NAME.fullmatch(host))


def _of_tls(values: Mapping[str, Any]) -> Iterator[str]:
    if (values.get("tls_cert") is None) != (values.get("tls_key") is None):
        yield "tls_cert and tls_key are given together"
    missing = list(_of_tls_files(values))
    yield from missing or _of_certificate(values)


def _of_tls_files(values: Mapping[str, Any]) -> Iterator[str]:
    for name in ("tls_cert", "tls_key"):
        path = values.get(name)
        if path is None:
            continue
        if not os.path.isfile(path):  # noqa: PTH113 - it raises nothing
            yield f"{name}={shown(os.fspath(path))}: there is no such file"
        elif not os.access(path, os.R_OK):
            yield f"{name}={shown(os.fspath(path))}: it may not be read"


def _of_certificate(values: Mapping[str, Any]) -> Iterator[str]:
    """Whether the files are what they are named for; which of them is not, OpenSSL tells badly."""
    import ssl

    certificate, key = values.get("tls_cert"), values.get("tls_key")
    if certificate is None or key is None:
        return
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key, password="")
    except (OSError, ValueError) as error:
        yield (
            f"tls_cert={shown(os.fspath(certificate))} and tls_key={shown(os.fspath(key))}: are no "
            f"certificate and its key in PEM, without a password: {error}"
        )


def _of_store(values: Mapping[str, Any]) -> Iterator[str]:
    store = values.get("store")
    if store is not None and store.folder.exists() and not store.folder.is_dir():
        yield f"store.folder={shown(os.fspath(store.folder))}: is no folder"


def _of_numbers(values: Mapping[str, Any]) -> Iterator[str]:
    limits = values.get("limits")
    if limits is not None and limits.connections_per_address == 0:
        yield "limits.connections_per_address=0: must be 1 or more"
    for name, least in _MIN_LIMITS.items() if limits is not None else ():
        if getattr(limits, name) < least:
            yield f"limits.{name}={getattr(limits, name)}: lets nothing through: at least {least}"
    for name, one in (values.get("engines") or {}).items():
        if one.max_concurrency < 1 or one.threads < 1:
            yield f"engines.{name}: max_concurrency and threads must be 1 or more"
