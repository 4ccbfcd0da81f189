"""What is wrong with settings whose types are right."""

from __future__ import annotations

import ipaddress
import os
import re
import socket
from typing import TYPE_CHECKING, Any

from polymux._text import shown
from polymux.errors import InvalidRequestError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LARGEST_PORT = 65535
#: As requests may have it: see `polymux.server.gate`.
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


def problems_with(values: Mapping[str, Any]) -> list[str]:
    """What is wrong with a server's settings, by their names."""
    return [*_of_addresses(values), *_of_tls(values), *_of_numbers(values)]


def _of_addresses(values: Mapping[str, Any]) -> Iterator[str]:
    port = values.get("port", 1)
    if not 0 <= port <= _LARGEST_PORT:
        yield f"port={port}: must be from 0 to {_LARGEST_PORT}"
    for host in values.get("allowed_hosts", ()):
        if not _HOST.fullmatch(host):
            yield (
                f"allowed_hosts: {shown(host)} is no host, such as tools.example or "
                "tools.example:8443"
            )
    for origin in values.get("allowed_origins", ()):
        if origin.count("/") != 2 or not origin.startswith(("http://", "https://")):
            yield f"allowed_origins: {shown(origin)} is no origin, such as https://site.example"
    url = values.get("public_url")
    if url is not None:
        from polymux.config import checked_base_url

        try:
            checked_base_url(url)
        except InvalidRequestError as error:
            yield f"public_url: {error}"


def _of_tls(values: Mapping[str, Any]) -> Iterator[str]:
    if (values.get("tls_cert") is None) != (values.get("tls_key") is None):
        yield "tls_cert and tls_key are given together"
    for name in ("tls_cert", "tls_key"):
        path = values.get(name)
        if path is None:
            continue
        if not os.path.isfile(path):  # noqa: PTH113 - it raises nothing
            yield f"{name}={shown(os.fspath(path))}: there is no such file"
        elif not os.access(path, os.R_OK):
            yield f"{name}={shown(os.fspath(path))}: it may not be read"


def _of_numbers(values: Mapping[str, Any]) -> Iterator[str]:
    limits = values.get("limits")
    if limits is not None and limits.connections_per_address == 0:
        yield "limits.connections_per_address=0: must be 1 or more"
    for name, one in (values.get("engines") or {}).items():
        if one.slots < 1 or one.threads < 1:
            yield f"engines.{name}: slots and threads must be 1 or more"
