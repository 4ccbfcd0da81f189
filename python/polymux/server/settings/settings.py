"""What a server was told: by a file in TOML, by the command line, by whoever makes it."""

from __future__ import annotations

import logging
import os
import tomllib
import warnings
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any

from polymux._util.deprecation import renamed_arguments, with_new_keys
from polymux._util.text import display_name, shown
from polymux._util.toml_values import converted, right_for
from polymux.client.options import MAX_GENERATION_S
from polymux.config import state_folder
from polymux.downloads.settings import DownloadSettings
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.ray.settings import RaySettings
from polymux.runtime.route_checks import route_problems
from polymux.runtime.upstream_settings import UpstreamSettings, read_upstreams
from polymux.server.engine_options import option_problems, with_new_options
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
#: Old names of keys, by the table's prefix; ``""`` is the top.
_RENAMED: Mapping[str, Mapping[str, str]] = {
    "": {"grace_s": "shutdown_timeout_s", "doors": "compat"},
    "limits.": {"longest_generation_s": "max_generation_s"},
    "store.": {"keep_s": "retention_s"},
    "songs.": {"least_confidence": "min_confidence"},
    "download.": {"most_bytes": "max_bytes", "slots": "max_concurrency"},
    "summaries.": {"most_parts": "max_parts"},
}
#: Where no end is meant by ``inf``.
_ENDLESS = ("max_generation_s",)


@renamed_arguments(longest_generation_s="max_generation_s")
@dataclass(frozen=True, slots=True)
class Limits:
    """What requests may cost.

    Attributes:
        header_s: How long a request's header may take. Default: 10.
        keep_alive_s: How long a connection may stay without a request. Default: 10.
        body_first_s: How long a body may take, beside what its length allows. Default: 10.
        body_bytes_per_s: How fast a body must come, on the whole. Default: 16 KiB.
        body_idle_s: Longest that none of a body comes, however much has; not less than
            `body_first_s`. Default: 30.
        chat_bytes: Longest body of the two chats. Default: 32 MiB.
        json_bytes: Longest of other JSON bodies. Default: 1 MiB.
        upload_bytes: Longest form of conversions and transcriptions. Default: 2 GiB.
        image_bytes: Longest form of operations on pictures. Default: 20 MiB.
        song_bytes: Longest form of recordings whose song is to be named. Default: 30 MiB.
        form_bytes: Longest of other forms. Default: 200 MiB.
        queue: How many requests may wait for one engine. Default: 32.
        connections_per_address: Connections of one address, or of one network of 64 bits of IPv6.
            Default: half of all that are taken, and from this machine itself as many as these.
        streams_keep_alive_s: After how long a silent stream is told that it goes on. Default: 15.
        event_bytes: Longest event of a stream that is sent; a longer one ends it. Default: 1 MiB.
        wait_s: Most that ``Prefer: wait`` can ask for. Default: 60.
        memory_bytes: Most that one piece of work may take. Default: no limit.
        max_generation_s: Longest that a picture, its detail, a video or music may be thought to
            take, of keys that have no limit of their own. Default: 300; ``inf``: no limit.
        engines_memory_bytes: Most that all engines may take together. Default: what the machine
            has.
        duration_s: Longest media, in seconds. Default: 4 hours.
        pixels: Largest picture. Default: 40 megapixels.
    """

    header_s: float = 10.0
    keep_alive_s: float = 10.0
    body_first_s: float = 10.0
    body_bytes_per_s: float = 16384.0
    body_idle_s: float = 30.0
    chat_bytes: int = 32 << 20
    json_bytes: int = 1 << 20
    upload_bytes: int = 2 << 30
    image_bytes: int = 20 << 20
    song_bytes: int = 30 << 20
    form_bytes: int = 200 << 20
    queue: int = 32
    connections_per_address: int | None = None
    streams_keep_alive_s: float = 15.0
    event_bytes: int = 1 << 20
    wait_s: float = 60.0
    memory_bytes: int | None = None
    max_generation_s: float = MAX_GENERATION_S
    engines_memory_bytes: int | None = None
    duration_s: float = 4 * 3600.0
    pixels: int = 40_000_000


@renamed_arguments(keep_s="retention_s")
@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where jobs and files are kept.

    Attributes:
        folder: Default: ``polymux/server`` in the XDG folder for state.
        bytes: Most that all files may take. Default: 20 GiB.
        retention_s: How long results are kept. Default: a day.
    """

    folder: Path = field(default_factory=lambda: state_folder() / "server")
    bytes: int = 20 << 30
    retention_s: float = 86400.0


@renamed_arguments(slots="max_concurrency")
@dataclass(frozen=True, slots=True)
class EngineSettings:
    """An engine.

    Attributes:
        family: As `polymux.runtime.registry` knows it.
        options: What it is loaded with.
        max_concurrency: How much of it at once. Default: 1.
        threads: For its libraries. Default: one for each processor.
        idle_s: After how long without work it is ended. Default: 300.
        operations: What it can do. Default: all that its family can; an engine of one's own, whose
            family is a ``MODULE:CLASS``, must say it.
    """

    family: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_concurrency: int = 1
    threads: int = field(default_factory=lambda: os.cpu_count() or 1)
    idle_s: float = 300.0
    operations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Accepts old names of options."""

        def warn(text: str) -> None:
            warnings.warn(text, DeprecationWarning, stacklevel=6)

        options = with_new_options(self.family, self.options, warn)
        object.__setattr__(self, "options", options)


@renamed_arguments(grace_s="shutdown_timeout_s", doors="compat")
@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Everything.

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
        limits: What requests may cost.
        fetch: What may be fetched beyond the public Internet, such as pictures of chats.
        store: Where jobs and files are kept.
        compat: Addresses in the shapes of others' interfaces.
        songs: One's own songs, which are asked before all others.
        song_recognition: Who else is asked for the song of a recording. Default: nobody.
        song_search: Which catalogues of others are searched for songs. Default: none.
        download: Downloads from pages. Default: where yt-dlp is installed.
        summaries: How videos are summarised.
        engines: Name to engine. Default: those whose parts are installed.
        upstreams: Name to a server of somebody else, which is asked behind the engines. Default:
            none.
        ray: The cluster that engines are on. Default: none, they are on this machine.
        routes: Operation to the backends that are tried for it, in order. Default: every engine for
            all that it can do.

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
    limits: Limits = field(default_factory=Limits)
    fetch: FetchPolicy = field(default_factory=FetchPolicy)
    store: StoreSettings = field(default_factory=StoreSettings)
    compat: CompatSettings = field(default_factory=CompatSettings)
    songs: SongSettings = field(default_factory=SongSettings)
    song_recognition: SongRecognitionSettings = field(default_factory=SongRecognitionSettings)
    song_search: SongSearchSettings = field(default_factory=SongSearchSettings)
    download: DownloadSettings = field(default_factory=DownloadSettings)
    summaries: SummaryOptions = field(default_factory=SummaryOptions)
    engines: Mapping[str, EngineSettings] | None = None
    upstreams: Mapping[str, UpstreamSettings] = field(default_factory=dict)
    ray: RaySettings | None = None
    routes: Mapping[str, tuple[Route, ...]] | None = None

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
        plain = with_new_keys(plain, _RENAMED[""], _log.warning)
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
        plain = with_new_keys(plain, _RENAMED.get(prefix, {}), _log.warning, prefix)
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
        from polymux.runtime.registry import FAMILIES

        found = {}
        for name in plain:
            prefix = f"engines.{name}."
            table = self._table(plain, name)
            table = with_new_keys(table, {"slots": "max_concurrency"}, _log.warning, prefix)
            values = self._values(EngineSettings, table, prefix)
            family = values.setdefault("family", name)
            if family not in FAMILIES and ":" not in family:
                known = ", ".join(sorted(FAMILIES))
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
        from polymux import contract

        known = {one.name for one in contract.operations()}
        for one in operations:
            if one not in known:
                self._problems.append(f"engines.{name}.operations: {shown(one)} is no operation")
        if ":" in family and not operations:
            self._problems.append(
                f"engines.{name}.operations: an engine of one's own says what it can do"
            )

    def _routes(self, plain: dict[str, Any]) -> dict[str, tuple[Route, ...]]:
        from polymux import contract

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
