"""Settings of a server, from a TOML file, the command line or Python."""

from __future__ import annotations

import logging
import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import TableReader, read_toml, rule, rules_of
from polymux._util.text import display_name
from polymux.config import checked_url
from polymux.runtime.settings import ServiceSettings, route_problems
from polymux.server.settings import checks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class CompatSettings:
    """Compatibility APIs. Default: on if only this machine can reach the server.

    Attributes:
        openai: ``/v1``, the OpenAI API.
        mcp: ``/mcp``, the Model Context Protocol.
        replicate: ``/replicate/v1``, the Replicate API.
    """

    openai: bool | None = None
    mcp: bool | None = None
    replicate: bool | None = None


_log = logging.getLogger("polymux.server")
_LOOPBACK = ("127.0.0.1", "::1", "localhost")


@renamed_arguments(grace_s="shutdown_timeout_s", doors="compat")
@dataclass(frozen=True, slots=True)
class ServerSettings(ServiceSettings):
    """Settings of a server: those of its service, and how it is reached.

    Attributes:
        host: The address to listen on. Default: ``"127.0.0.1"``.
        port: The port; 0 for any free one. Default: 8000.
        public_url: The beginning of links. Default: the address and port that it listens on.
        keys: The file of API keys. Default: ``keys.json`` in the store's folder.
        allowed_hosts: Accepted values of the Host header, in lower case, with or without a port.
            Default: the names of loopback; on other addresses any host.
        allowed_origins: Origins of web pages that may use the server, such as
            ``"https://site.example"``; kept as browsers send them.
        shutdown_timeout_s: Time for running work after a stop signal. Default: 10.
        tls_cert: File of the TLS certificate (PEM). Default: no TLS.
        tls_key: File of its key.
        compat: Compatibility APIs.

    Raises:
        InvalidRequestError: An item of `allowed_origins` is not an origin.
    """

    host: str = field(
        default="127.0.0.1",
        metadata=rule(parse=checks.listening_host, must="an IP address or a host name"),
    )
    port: int = field(default=8000, metadata=rule(min=0, max=checks.MAX_PORT))
    public_url: str | None = field(default=None, metadata=rule(parse=checked_url))
    keys: Path | None = None
    allowed_hosts: tuple[str, ...] = field(default=(), metadata=rule(parse=checks.request_host))
    allowed_origins: tuple[str, ...] = field(default=(), metadata=rule(parse=checks.origin))
    shutdown_timeout_s: float = 10.0
    tls_cert: Path | None = field(default=None, metadata=rule(parse=checks.readable))
    tls_key: Path | None = field(default=None, metadata=rule(parse=checks.readable))
    compat: CompatSettings = field(default_factory=CompatSettings)

    def __post_init__(self) -> None:
        rules_of(ServerSettings)["allowed_origins"].accept("allowed_origins", self.allowed_origins)
        origins = tuple(dict.fromkeys(map(checks.origin, self.allowed_origins)))
        object.__setattr__(self, "allowed_origins", origins)

    def problems(self) -> Iterator[str]:
        """What is wrong with the values together."""
        if self.tls_cert is not None and self.tls_key is not None:
            problem = checks.certificate_problem(self.tls_cert, self.tls_key)
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
        """Whether ``/v1``, the OpenAI API, is on."""
        return self.loopback_only if self.compat.openai is None else self.compat.openai

    @property
    def mcp_compat(self) -> bool:
        """Whether ``/mcp``, the Model Context Protocol, is on."""
        return self.loopback_only if self.compat.mcp is None else self.compat.mcp

    @property
    def replicate_compat(self) -> bool:
        """Whether ``/replicate/v1``, the Replicate API, is on."""
        return self.loopback_only if self.compat.replicate is None else self.compat.replicate

    @property
    def key_file(self) -> Path:
        """The file of API keys."""
        return self.keys or self.store.folder / "keys.json"

    @property
    def listens_everywhere(self) -> bool:
        """Whether it listens on all addresses."""
        return checks.is_every_address(self.host)

    @property
    def base_url(self) -> str:
        """What links begin with. If it listens on all addresses, this is a loopback URL."""
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
    """Read the settings in a file.

    Raises:
        InvalidRequestError: The file cannot be read, or something in it is wrong. The message names
            everything that is wrong.
    """
    table = read_toml(path, "the configuration")
    where = f"the configuration {display_name(os.fspath(path))}: "
    return TableReader(_log.warning).whole(ServerSettings, table, where)
