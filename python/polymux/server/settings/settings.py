"""What a server was told: by a file in TOML, by the command line, by whoever makes it."""

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
    """Addresses in the shapes of others' interfaces.

    Attributes:
        openai: Whether there is ``/v1``, in OpenAI's shape. Default: where nobody but this machine
            is meant.
        mcp: Whether there is ``/mcp``, the Model Context Protocol. Default: as `openai`.
        replicate: Whether there is ``/replicate/v1``, in Replicate's shape. Default: as `openai`.
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
        port: The port. Default: 8000.
        public_url: What links begin with. Default: the address that is listened on.
        keys: The file of keys. Default: ``keys.json`` in the store's folder.
        allowed_hosts: Names that Host may have, in lower case, with a port or without. Default: on
            loopback its names; else the public URL's and any.
        allowed_origins: Web pages of other sites that may ask, such as ``"https://site.example"``;
            kept as browsers send them, in lower case and without the scheme's own port.
        shutdown_timeout_s: How long work may go on when the server is told to stop. Default: 10.
        tls_cert: File of the certificate, PEM. Default: no TLS.
        tls_key: File of its key.
        compat: Addresses in the shapes of others' interfaces.

    Raises:
        InvalidRequestError: One of `allowed_origins` is none.
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
        """Keeps origins as browsers send them, each once."""
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
        """Whether nobody but this machine is meant."""
        return self.host in _LOOPBACK and self.public_url is None

    @property
    def openai_compat(self) -> bool:
        """Whether there is ``/v1``, in OpenAI's shape."""
        return self.loopback_only if self.compat.openai is None else self.compat.openai

    @property
    def mcp_compat(self) -> bool:
        """Whether ``/mcp`` is wanted, the Model Context Protocol."""
        return self.loopback_only if self.compat.mcp is None else self.compat.mcp

    @property
    def replicate_compat(self) -> bool:
        """Whether there is ``/replicate/v1``, in Replicate's shape."""
        return self.loopback_only if self.compat.replicate is None else self.compat.replicate

    @property
    def key_file(self) -> Path:
        """Where the keys are."""
        return self.keys or self.store.folder / "keys.json"

    @property
    def listens_everywhere(self) -> bool:
        """Whether it listens on all addresses, so that none of them is the one that callers use."""
        return checks.is_every_address(self.host)

    @property
    def base_url(self) -> str:
        """What links begin with; where it listens everywhere, what only this machine reaches."""
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
