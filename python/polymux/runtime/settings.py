"""Settings of a service: engines, upstreams, the store and limits."""

from __future__ import annotations

import logging
import os
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._util.deprecation import renamed_arguments, with_new_keys
from polymux._util.settings import TableReader, rule, rules_of
from polymux._util.text import display_name, shown, unknown_operation
from polymux.client.options import MAX_GENERATION_S
from polymux.config import config_path, engine_tables, state_folder
from polymux.downloads.settings import DownloadSettings
from polymux.engines.registry import ENGINES
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.ray.settings import RaySettings
from polymux.runtime.upstream_settings import UpstreamSettings, without_keys
from polymux.service.routes import Route
from polymux.songs.settings import SongSettings
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
from polymux.upstreams.song_search.settings import SongSearchSettings

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

#: Every class that a table of the settings file is read into, except those of the server alone.
__all__ = [
    "DownloadSettings",
    "EngineSettings",
    "FetchPolicy",
    "Limits",
    "RaySettings",
    "Route",
    "ServiceSettings",
    "SongRecognitionSettings",
    "SongSearchSettings",
    "SongSettings",
    "StoreSettings",
    "SummaryOptions",
    "UpstreamSettings",
]

_log = logging.getLogger("polymux.runtime")
_AT_LEAST_1 = rule(min=1)


def _operations() -> set[str]:
    return {one.name for one in contract.operations()}


def _folder(path: Path) -> Path:
    if path.exists() and not path.is_dir():
        raise ValueError
    return path


@renamed_arguments(longest_generation_s="max_generation_s")
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of connections and requests.

    Attributes:
        header_s: Maximum time for a request header in seconds. Default: 10.
        keep_alive_s: Time that a connection may stay open without a request. Default: 10.
        body_first_s: Time until the body begins. Its total time is this plus its length divided by
            `body_bytes_per_s`. Default: 10.
        body_bytes_per_s: Minimum average rate of a body. Default: 16 KiB.
        body_idle_s: Maximum pause within a body, at least `body_first_s`. Default: 30.
        chat_bytes: Maximum body of chat requests. Default: 32 MiB.
        json_bytes: Maximum of other JSON bodies. Default: 1 MiB.
        upload_bytes: Maximum upload of a conversion or transcription. Default: 2 GiB.
        image_bytes: Maximum upload of image operations. Default: 20 MiB.
        song_bytes: Maximum upload of song recognition. Default: 30 MiB.
        form_bytes: Maximum upload of other operations. Default: 200 MiB.
        queue: Maximum number of requests that wait for one engine. Default: 32.
        connections_per_address: Maximum connections from one IP address, or one IPv6 /64 network.
            Default: half of all connections; this machine may have all of them.
        streams_keep_alive_s: Interval of keep-alive comments in a silent stream. Default: 15.
        event_bytes: Maximum event of a stream; a longer one ends the stream. Default: 1 MiB.
        wait_s: Maximum of the header ``Prefer: wait``. Default: 60.
        memory_bytes: Maximum estimated memory of one job. Default: no limit.
        max_generation_s: Maximum estimated time to generate an image, a video or music, or to
            upscale an image. A key with ``max_estimate_s`` has that limit instead. Default: 300;
            ``inf`` for no limit.
        engines_memory_bytes: Maximum memory of all engines together. Default: the machine's memory.
        duration_s: Maximum duration of media. Default: 4 hours.
        pixels: Maximum pixels of an input image. Default: 40 megapixels.
    """

    header_s: float = 10.0
    keep_alive_s: float = 10.0
    body_first_s: float = 10.0
    body_bytes_per_s: float = 16384.0
    body_idle_s: float = 30.0
    chat_bytes: int = field(default=32 << 20, metadata=_AT_LEAST_1)
    json_bytes: int = field(default=1 << 20, metadata=_AT_LEAST_1)
    upload_bytes: int = field(default=2 << 30, metadata=_AT_LEAST_1)
    image_bytes: int = field(default=20 << 20, metadata=_AT_LEAST_1)
    song_bytes: int = field(default=30 << 20, metadata=_AT_LEAST_1)
    form_bytes: int = field(default=200 << 20, metadata=_AT_LEAST_1)
    queue: int = 32
    connections_per_address: int | None = field(default=None, metadata=_AT_LEAST_1)
    streams_keep_alive_s: float = 15.0
    event_bytes: int = field(default=1 << 20, metadata=rule(min=1024))
    wait_s: float = 60.0
    memory_bytes: int | None = None
    max_generation_s: float = field(default=MAX_GENERATION_S, metadata=rule(max=float("inf")))
    engines_memory_bytes: int | None = None
    duration_s: float = 4 * 3600.0
    pixels: int = field(default=40_000_000, metadata=_AT_LEAST_1)


@renamed_arguments(keep_s="retention_s")
@dataclass(frozen=True, slots=True)
class StoreSettings:
    """Where jobs and files are stored.

    Attributes:
        folder: Folder of jobs, results and API keys. Default: ``polymux/server`` in
            ``$XDG_STATE_HOME`` or ``~/.local/state``.
        bytes: Maximum size of all jobs and files together. Default: 20 GiB.
        bytes_per_key: Maximum size of the jobs and files of one API key. Default: half of `bytes`.
        jobs_per_key: Maximum number of jobs of one API key. Default: 100,000.
        retention_s: Time after which jobs and results are deleted. Default: 86,400 (one day).
    """

    folder: Path = field(
        default_factory=lambda: state_folder() / "server",
        metadata=rule(parse=_folder, must="the path of a directory"),
    )
    bytes: int = 20 << 30
    bytes_per_key: int | None = None
    jobs_per_key: int = 100_000
    retention_s: float = 86400.0

    @property
    def max_key_bytes(self) -> int:
        """`bytes_per_key` or its default."""
        return self.bytes // 2 if self.bytes_per_key is None else self.bytes_per_key


_NEW_OPTIONS = {
    "slots": "max_concurrency", "names": "aliases", "most_pixels": "max_pixels",
    "most_detail_pixels": "max_detail_pixels", "tiny_decoder": "tiny_vae",
    "enlarger": "upscaler", "enlarger_factor": "upscaler_factor",
}  # fmt: skip


def _with_new_options(
    family: str, options: Mapping[str, Any], warn: Callable[[str], object], prefix: str = ""
) -> Mapping[str, Any]:
    """Rename deprecated options; options of custom engines stay unchanged."""
    if family not in ENGINES or not _NEW_OPTIONS.keys() & options.keys():
        return options
    return with_new_keys(options, _NEW_OPTIONS, warn, prefix)


@renamed_arguments(slots="max_concurrency")
@dataclass(frozen=True, slots=True)
class EngineSettings:
    """An engine.

    Attributes:
        family: Engine to run, such as ``chat``, or ``MODULE:CLASS`` for your own engine class.
        options: Options of the engine, such as its model. Default: none.
        max_concurrency: Maximum number of requests at the same time. Default: 0, which means 1, or
            2 for media and OCR on a machine with enough memory.
        threads: Threads of the engine's libraries. Default: one for each processor.
        idle_s: Time without requests after which the engine process ends. Default: 300.
        operations: Operations that the engine runs. Default: all that it supports; required for
            your own engine.
    """

    family: str
    options: Mapping[str, Any] = field(default_factory=dict)
    max_concurrency: int = field(default=0, metadata=rule(min=0))
    threads: int = field(default_factory=lambda: os.cpu_count() or 1, metadata=_AT_LEAST_1)
    idle_s: float = 300.0
    operations: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        def warn(text: str) -> None:
            warnings.warn(text, DeprecationWarning, stacklevel=6)

        options = _with_new_options(self.family, self.options, warn)
        object.__setattr__(self, "options", options)
        if self.max_concurrency == 0:
            spec = ENGINES.get(self.family)
            usual = 1 if spec is None else spec.usual_concurrency
            object.__setattr__(self, "max_concurrency", usual)

    def problems(self) -> Iterator[str]:
        is_own = ":" in self.family
        if self.family not in ENGINES and not is_own:
            yield (
                f"family={shown(self.family)}: unknown engine family "
                f"(known: {', '.join(sorted(ENGINES))})"
            )
        for one in self.operations:
            if one not in _operations():
                yield f"operations: {unknown_operation(one)}"
        if is_own and not self.operations:
            yield "operations: missing. List the operations of your custom engine"
        if self.family in ENGINES:  # The options of a custom engine are unknown.
            reader = TableReader()
            reader.values(ENGINES[self.family].options, self.options, "options.")
            yield from reader.problems


def _engine_table(
    name: str, table: dict[str, Any], warn: Callable[[str], object]
) -> dict[str, Any]:
    """Add the family to an engine's settings table, and rename deprecated options."""
    table = {"family": name, **table}
    if isinstance(table["family"], str) and isinstance(table.get("options"), dict):
        table["options"] = _with_new_options(
            table["family"], table["options"], warn, f"engines.{name}.options."
        )
    return table


def configured_engines() -> dict[str, EngineSettings]:
    """Return the engines in the user's configuration file by name.

    The table ``engines`` has the same settings as in the settings file of a server.

    Raises:
        InvalidRequestError: The file is invalid, or has unknown keys.
    """
    found = engine_tables()
    if not found:
        return {}
    reader = TableReader(_log.warning)
    rules = {"engines": rules_of(ServiceSettings)["engines"]}
    engines: dict[str, EngineSettings] = reader.values(rules, {"engines": found})["engines"]
    reader.end(f"configuration file {display_name(os.fspath(config_path()))}: ")
    return engines


def _routes(plain: Any) -> dict[str, tuple[Route, ...]]:
    """Read the routes of a settings file.

    Raises:
        InvalidRequestError: A route is invalid.
    """
    if not isinstance(plain, dict):
        raise InvalidRequestError("must be a table")
    for operation, wanted in plain.items():
        if operation not in _operations():
            raise InvalidRequestError(unknown_operation(operation))
        if not isinstance(wanted, list):
            raise InvalidRequestError(f"{operation}: must be an array")
    return {name: tuple(_route(name, one) for one in wanted) for name, wanted in plain.items()}


def _route(operation: str, wanted: object) -> Route:
    if isinstance(wanted, str):
        return Route(wanted)
    return TableReader().whole(Route, wanted, prefix=f"{operation}.")


@dataclass(frozen=True, slots=True)
class ServiceSettings:
    """Settings of a service, for a server and for `polymux.Local`.

    Attributes:
        limits: Limits of connections and requests.
        fetch: Hosts beyond the public Internet from which URL inputs may be downloaded.
        store: Where jobs and files are stored.
        songs: The music library, which is searched first.
        song_recognition: Services that recognize songs. Default: none.
        song_search: Services that search for songs. Default: none.
        download: Downloads from web pages. Default: enabled if yt-dlp is installed.
        summaries: How videos are summarized.
        engines: Name to engine. Default: those of the user's configuration file, and the installed
            ones.
        upstreams: Name to upstream server; engines are tried first. Default: none.
        ray: The Ray cluster that runs the engines. Default: this machine.
        routes: Operation to its backends, in the order of trying. Default: all engines.
    """

    limits: Limits = field(default_factory=Limits)
    fetch: FetchPolicy = field(default_factory=FetchPolicy)
    store: StoreSettings = field(default_factory=StoreSettings)
    songs: SongSettings = field(default_factory=SongSettings)
    song_recognition: SongRecognitionSettings = field(default_factory=SongRecognitionSettings)
    song_search: SongSearchSettings = field(default_factory=SongSearchSettings)
    download: DownloadSettings = field(default_factory=DownloadSettings)
    summaries: SummaryOptions = field(default_factory=SummaryOptions)
    engines: Mapping[str, EngineSettings] | None = field(
        default=None, metadata=rule(tables=EngineSettings, prepare=_engine_table)
    )
    upstreams: Mapping[str, UpstreamSettings] = field(
        default_factory=dict, metadata=rule(tables=UpstreamSettings, prepare=without_keys)
    )
    ray: RaySettings | None = field(default=None, metadata=rule(table=RaySettings))
    routes: Mapping[str, tuple[Route, ...]] | None = field(
        default=None, metadata=rule(read=_routes)
    )

    @property
    def base_url(self) -> str:
        """Base of links to files; empty without a server."""
        return ""


def missing_files(engines: Mapping[str, EngineSettings]) -> list[str]:
    """Return an error for each missing engine file; ignores names of models in the registry."""
    found = []
    for name, engine in engines.items():
        spec = ENGINES.get(engine.family)
        for option in spec.files if spec else ():
            named = engine.options.get(option)
            if not isinstance(named, str) or "/" not in named:
                continue
            path = Path(named).expanduser()
            if not path.exists() and not path.with_suffix(".bin").exists():
                found.append(f"engines.{name}.options.{option}={shown(named)}: file not found")
    return found


#: Built-in backends; whether they are available is known only after the start.
_OWN = {
    "download": ("download_video", "download_music"),
    "summaries": ("summarize_video",),
    "songs": ("identify_song", "search_music"),
    "song_recognition": ("identify_song",),
    "song_search": ("search_music",),
}


def route_problems(settings: ServiceSettings) -> list[str]:
    """Check the routes against the settings, without starting engines."""
    if not settings.routes:
        return []
    known = _operations_of(settings)
    return [
        f"routes.{operation}: no engine or upstream named {shown(route.backend)} supports this "
        "operation"
        for operation, wanted in settings.routes.items()
        for route in wanted
        if operation not in known.get(route.backend, ())
    ]


def _operations_of(settings: ServiceSettings) -> dict[str, Collection[str]]:
    from polymux.runtime.build import operations_of, usual_engines

    engines = usual_engines() if settings.engines is None else settings.engines
    known: dict[str, Collection[str]] = {**_OWN}
    for name, engine in engines.items():
        known[name] = operations_of(engine)
    return known | {name: one.does for name, one in settings.upstreams.items()}
