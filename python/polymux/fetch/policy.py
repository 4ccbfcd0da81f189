"""Policy and limits of the URL fetcher. `polymux.fetch` exports both classes."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

from polymux._native import core
from polymux.errors import InvalidRequestError
from polymux.media.inputs import path_bytes
from polymux.media.options import integer

if TYPE_CHECKING:
    import os

    from polymux._native import _core


@dataclass(frozen=True, slots=True)
class FetchPolicy:
    """Allowed destinations beyond the public Internet. Set by the operator, never by a request.

    Attributes:
        allowed_hosts: Host names or IP addresses that may be fetched although they are not public,
            each with or without a port: ``"media.example"``, ``"127.0.0.1:8080"``,
            ``"[::1]:8080"``. A host with a port is allowed on that port only, whether or not
            `allowed_ports` has it. Default: none.
        allowed_networks: Networks whose addresses count as public, such as ``"10.1.0.0/16"``.
            Default: none.
        allowed_ports: Ports that any URL may have. Default: 80 and 443.
        certificate_bundle: File with trusted certificates (PEM). Default: the file named by
            ``SSL_CERT_FILE`` or ``CURL_CA_BUNDLE``, else the system's bundle.
        verify_allowed_hosts: Verify the certificates of `allowed_hosts`. Those of other hosts are
            always verified. Default: True.

    Raises:
        TypeError: A value has the wrong type.
        InvalidRequestError: A host, network or port is invalid.

    Example:
        >>> FetchPolicy(allowed_hosts=("media.example:8080",)).allowed_ports
        (80, 443)
    """

    allowed_hosts: tuple[str, ...] = ()
    allowed_networks: tuple[str, ...] = ()
    allowed_ports: tuple[int, ...] = (80, 443)
    certificate_bundle: str | os.PathLike[str] | None = None
    verify_allowed_hosts: bool = True

    def __post_init__(self) -> None:
        for name in ("allowed_hosts", "allowed_networks", "allowed_ports"):
            object.__setattr__(self, name, _tuple(name, getattr(self, name)))
        for name in ("allowed_hosts", "allowed_networks"):
            for item in getattr(self, name):
                if not isinstance(item, str):
                    raise TypeError(
                        f"{name}: invalid type of an item (got {type(item).__name__}, allowed str)"
                    )
        for port in self.allowed_ports:
            if not 1 <= integer("allowed_ports", port) <= 65535:
                raise InvalidRequestError(
                    f"allowed_ports: out of range (got {port}, allowed 1 to 65535)"
                )
        native_policy(self)


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """Limits of one fetch.

    Attributes:
        body_bytes: Maximum size of the body, both as sent and decoded. A response that declares
            more is rejected before its body. Default: 256 MiB.
        header_bytes: Maximum size of status line, headers and trailers of a response. Default:
            64 KiB.
        header_count: Maximum number of headers of a response. Default: 200.
        connect_ms: Timeout of DNS lookup, TCP and TLS for each connection. Default: 10 s.
        idle_ms: Maximum time without received data. Default: 20 s.
        total_ms: Timeout of the whole fetch including redirects. Default: 300 s.
        rate_bytes_per_s: Minimum average rate in each `rate_window_ms`; 0 for no limit. Time for
            writes to the destination does not count. Default: 1,000.
        rate_window_ms: See `rate_bytes_per_s`. Default: 10 s.
        redirects: Maximum number of redirects. Default: 5.

    Raises:
        TypeError: A limit is not an integer.
        InvalidRequestError: A limit is out of range; the message names it.

    Example:
        >>> FetchLimits(body_bytes=20 * 1024 * 1024).redirects
        5
    """

    body_bytes: int = 256 * 1024 * 1024
    header_bytes: int = 64 * 1024
    header_count: int = 200
    connect_ms: int = 10_000
    idle_ms: int = 20_000
    total_ms: int = 300_000
    rate_bytes_per_s: int = 1_000
    rate_window_ms: int = 10_000
    redirects: int = 5

    def __post_init__(self) -> None:
        native_limits(self)


def _tuple(name: str, value: Any) -> tuple[Any, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(
            f"{name}: invalid type (got {type(value).__name__}, allowed an iterable such as a "
            "tuple)"
        )
    return tuple(value)


def native_policy(policy: FetchPolicy) -> _core.FetchPolicy:
    """Convert to the native core's policy, which validates it."""
    bundle = policy.certificate_bundle
    return core.FetchPolicy(
        policy.allowed_hosts,
        policy.allowed_networks,
        policy.allowed_ports,
        b"" if bundle is None else path_bytes(bundle),
        policy.verify_allowed_hosts,
    )


def native_limits(limits: FetchLimits, waited_ms: int = 0) -> _core.FetchLimits:
    """Convert to the native core's limits, which validates them. `waited_ms` reduces the total."""
    values: dict[str, int] = {}
    for item in fields(limits):
        value = integer(item.name, getattr(limits, item.name), bits=64)
        wide = item.name == "body_bytes"
        maximum = (1 << (63 if wide else 32)) - 1
        if not 0 <= value <= maximum:
            raise InvalidRequestError(
                f"{item.name}: out of range (got {value}, allowed 0 to {maximum})"
            )
        values[item.name] = value
    if waited_ms:
        values["total_ms"] = max(1, values["total_ms"] - waited_ms)
    return core.FetchLimits(**values)
