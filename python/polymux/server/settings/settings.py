"""What a server was told: by a file in TOML, by the command line, by whoever makes it."""

from __future__ import annotations

import logging
import os
import tomllib
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.deprecation import new_names_of, renamed_arguments, with_new_keys
from polymux._util.text import display_name, shown
from polymux._util.toml_values import converted, right_for
from polymux.downloads.settings import DownloadSettings
from polymux.engines.registry import ENGINES
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.ray.settings import RaySettings
from polymux.runtime.engine_options import option_problems, with_new_options
from polymux.runtime.route_checks import route_problems
from polymux.runtime.settings import EngineSettings, Limits, ServiceSettings, StoreSettings
from polymux.runtime.upstream_settings import read_upstreams
from polymux.server.settings.checks import is_every_address, no_origin, origin_of, problems_with
from polymux.service.routes import Route
from polymux.songs.selection import SongSettings
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
from polymux.upstreams.song_search.settings import SongSearchSettings

if TYPE_CHECKING:
    from collections.abc import Mapping
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
#: Where no end is meant by ``inf``.
_ENDLESS = ("max_generation_s",)


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

    host: str = "127.0.0.1"
    port: int = 8000
    public_url: str | None = None
    keys: Path | None = None
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    shutdown_timeout_s: float = 10.0
    tls_cert: Path | None = None
    tls_key: Path | None = None
    compat: CompatSettings = field(default_factory=CompatSettings)

    def __post_init__(self) -> None:
        """Has origins as they are compared, wherever they come from."""
        found: dict[str, None] = {}
        for one in self.allowed_origins:
            origin = origin_of(one)
            if origin is None:
                raise InvalidRequestError(f"allowed_origins: {no_origin(one)}")
            found[origin] = None
        object.__setattr__(self, "allowed_origins", tuple(found))

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
        return is_every_address(self.host)

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
    """The settings in a file.

    Raises:
        InvalidRequestError: It cannot be read, or something in it is wrong; everything that is
            wrong is named.
    """
    name = display_name(os.fspath(path))
    try:
        plain = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise InvalidRequestError(
            f"cannot read the configuration {name}: {error.strerror}"
        ) from error
    except (ValueError, RecursionError) as error:  # Also of numbers with thousands of digits.
        raise InvalidRequestError(f"the configuration {name} is no TOML: {error}") from None
    problems: list[str] = []
    settings = _Reader(problems).server(plain)
    problems += [] if problems else route_problems(settings)
    if problems:
        raise InvalidRequestError(f"the configuration {name}: {'; '.join(problems[:20])}")
    return settings


class _Reader:
    """Makes settings of plain values, and keeps what is wrong with them."""

    def __init__(self, problems: list[str]) -> None:
        self._problems = problems

    def server(self, plain: dict[str, Any]) -> ServerSettings:
        plain = with_new_keys(plain, new_names_of(ServerSettings), _log.warning)
        own = {name: value for name, value in plain.items() if not isinstance(value, dict)}
        values = self._values(ServerSettings, own, "")
        groups = {
            "limits": Limits,
            "store": StoreSettings,
            "fetch": FetchPolicy,
            "compat": CompatSettings,
            "songs": SongSettings,
            "song_recognition": SongRecognitionSettings,
            "song_search": SongSearchSettings,
            "download": DownloadSettings,
            "summaries": SummaryOptions,
            "ray": RaySettings,
        }
        for name, kind in groups.items():
            if name in plain:
                found = self._values(kind, self._table(plain, name), f"{name}.")
                try:
                    values[name] = kind(**found)
                except InvalidRequestError as error:
                    self._problems.append(f"{name}.{error}")
        if "engines" in plain:
            values["engines"] = self._engines(self._table(plain, "engines"))
        if "upstreams" in plain:
            upstreams = self._table(plain, "upstreams")
            values["upstreams"] = read_upstreams(upstreams, self._problems)
        if "routes" in plain:
            values["routes"] = self._routes(self._table(plain, "routes"))
        for name in plain.keys() - own.keys() - {*groups, "engines", "upstreams", "routes"}:
            self._problems.append(f"{name} is not known")
        hosts = values.get("allowed_hosts", ())
        values.update({"allowed_hosts": tuple(one.lower() for one in hosts)} if hosts else {})
        self._problems += problems_with(values)
        return ServerSettings() if self._problems else ServerSettings(**values)

    def _table(self, plain: Mapping[str, Any], name: str) -> dict[str, Any]:
        found = plain[name]
        if isinstance(found, dict):
            return found
        self._problems.append(f"{name} must be a table")
        return {}

    def _values(self, kind: type[Any], plain: Mapping[str, Any], prefix: str) -> dict[str, Any]:
        known = {one.name: str(one.type) for one in fields(kind)}
        found: dict[str, Any] = {}
        plain = with_new_keys(plain, new_names_of(kind), _log.warning, prefix)
        for name, value in plain.items():
            if name not in known:
                self._problems.append(f"{prefix}{name} is not known")
                continue
            right, made = converted(known[name], value)
            if value == float("inf") and name in _ENDLESS:
                right, made = True, value
            if right:
                found[name] = made
            else:
                self._problems.append(
                    f"{prefix}{name}={shown(value)}: must be {right_for(known[name])}"
                )
        return found

    def _engines(self, plain: dict[str, Any]) -> dict[str, EngineSettings]:
        found = {}
        for name in plain:
            prefix = f"engines.{name}."
            table = self._table(plain, name)
            values = self._values(EngineSettings, table, prefix)
            family = values.setdefault("family", name)
            if family not in ENGINES and ":" not in family:
                known = ", ".join(sorted(ENGINES))
                self._problems.append(
                    f"engines.{name}.family={shown(family)}: must be one of {known}"
                )
            values["options"] = with_new_options(
                family, values.get("options", {}), _log.warning, f"{prefix}options."
            )
            self._check_operations(name, family, values.get("operations", ()))
            for problem in option_problems(family, values["options"]):
                self._problems.append(f"engines.{name}.options.{problem}")
            found[name] = EngineSettings(**values)
        return found

    def _check_operations(self, name: str, family: str, operations: tuple[str, ...]) -> None:
        known = {one.name for one in contract.operations()}
        for one in operations:
            if one not in known:
                self._problems.append(f"engines.{name}.operations: {shown(one)} is no operation")
        if ":" in family and not operations:
            self._problems.append(
                f"engines.{name}.operations: an engine of one's own says what it can do"
            )

    def _routes(self, plain: dict[str, Any]) -> dict[str, tuple[Route, ...]]:
        known = {one.name for one in contract.operations()}
        found: dict[str, tuple[Route, ...]] = {}
        for operation, wanted in plain.items():
            if operation not in known:
                self._problems.append(f"routes.{operation} is no operation")
            elif not isinstance(wanted, list):
                self._problems.append(f"routes.{operation} must be an array")
            else:
                found[operation] = tuple(self._route(operation, one) for one in wanted)
        return found

    def _route(self, operation: str, wanted: object) -> Route:
        if isinstance(wanted, str):
            return Route(wanted)
        if isinstance(wanted, dict) and isinstance(wanted.get("backend"), str):
            models = wanted.get("models", [])
            if isinstance(models, list) and all(isinstance(one, str) for one in models):
                return Route(wanted["backend"], tuple(models))
        self._problems.append(
            f"routes.{operation}: {shown(wanted)} is no backend's name, and no table with "
            "`backend` and `models`"
        )
        return Route("")
