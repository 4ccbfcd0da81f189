"""Create the backends of a server from its settings, or from the installed engines."""

from __future__ import annotations

import socket
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NoReturn

from polymux import errors
from polymux._util.text import sentences
from polymux.downloads import downloader as downloads
from polymux.downloads.backend import DownloadBackend
from polymux.downloads.url_inputs import UrlFetcher, addressed
from polymux.engines.base import MODEL_NAME
from polymux.engines.media.backend import MediaBackend
from polymux.engines.process.sandbox import python_paths
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.engines.registry import ENGINES, BackendContext, loaded
from polymux.models.roles import ROLES, needed_roles, why_missing
from polymux.models.selection import available, chosen
from polymux.runtime.memory_budget import MemoryBudget, needed_bytes
from polymux.runtime.settings import EngineSettings, configured_engines
from polymux.runtime.upstream_settings import upstreams_of
from polymux.service.backend import Backend, Health
from polymux.service.errors import status_error
from polymux.songs.backend import SongIndexBackend
from polymux.songs.pages import SignedAddresses
from polymux.songs.reader import Library
from polymux.songs.settings import served_folder
from polymux.summaries.backend import SummaryBackend
from polymux.upstreams.song_recognition.backend import SongRecognitionBackend
from polymux.upstreams.song_search.backend import SongSearchBackend

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from polymux.downloads.downloader import PageDownloader
    from polymux.ray.deployment import Cluster
    from polymux.runtime.settings import ServiceSettings
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink


#: Readable paths of the process that opens untrusted files: libraries and what they need.
_READABLE = (
    "/usr",
    "/lib",
    "/lib64",
    "/etc/ld.so.cache",
    "/etc/ld.so.conf",
    "/proc",
    "/dev/null",
    "/dev/zero",
    "/dev/urandom",
    "/sys/devices/system/cpu",
)
_MEDIA_ADDRESS_SPACE_BYTES = 8 << 30


def backends_of(
    settings: ServiceSettings, media: Backend | None = None, songs: Backend | None = None
) -> list[Backend]:
    """Create the backends of a server; none is loaded yet.

    Args:
        media: Opens files for the other backends. Default: a sandboxed process for untrusted files,
            and with it the music library of the settings.
        songs: The music library, if `media` is given. Default: none.
    """
    engines = settings.engines
    if engines is None:
        engines = usual_engines()
    builder = _Builder(settings)
    if media is None:
        media = builder.media(engines)
        songs = _songs(media, settings)
    pages = pages_of(settings)
    url_fetcher = url_fetcher_of(settings, pages)
    backends = [
        addressed(builder.backend(name, one, media, url_fetcher), url_fetcher)
        for name, one in engines.items()
    ]
    if pages is not None:
        backends += [DownloadBackend(pages, media), SummaryBackend(pages, settings.summaries)]
    if songs is not None:
        backends.append(songs)
    if settings.song_recognition.providers:
        backends.append(SongRecognitionBackend(settings.song_recognition, media))
    if settings.song_search.providers:
        backends.append(SongSearchBackend(settings.song_search))
    taken = [one.name for one in backends]
    return backends + upstreams_of(settings.upstreams, settings.fetch, taken, url_fetcher)


def _songs(media: Backend, settings: ServiceSettings) -> Backend | None:
    """Create the music library for untrusted clients; None if not configured or missing."""
    folder = served_folder(settings.songs.index_dir)
    if folder is None:
        return None
    return SongIndexBackend(
        Library(folder, min_confidence=settings.songs.min_confidence),
        media,
        lambda store: SignedAddresses(settings.base_url, store, settings.store.retention_s),
    )


def pages_of(settings: ServiceSettings) -> PageDownloader | None:
    """Create the page downloader; None if yt-dlp is not installed or downloads are disabled."""
    enabled = settings.download.enabled
    if not (downloads.is_installed() if enabled is None else enabled):
        return None
    return downloads.PageDownloader(
        settings.download,
        settings.fetch,
        settings.store.folder / "drafts",
        settings.limits.duration_s,
    )


def url_fetcher_of(settings: ServiceSettings, pages: PageDownloader | None) -> UrlFetcher:
    return UrlFetcher(settings.fetch, settings.limits.upload_bytes, pages=pages)


def usual_engines() -> dict[str, EngineSettings]:
    """Return the engines of the user's configuration file, then the installed ones.

    An engine in the file replaces the installed engines of its family, and one of its name.

    Raises:
        InvalidRequestError: The file is invalid, or has unknown keys.
    """
    configured = configured_engines()
    families = {one.family for one in configured.values()}
    installed = installed_engines().items()
    others = {name: one for name, one in installed if one.family not in families}
    return configured | {name: one for name, one in others.items() if name not in configured}


def installed_engines() -> dict[str, EngineSettings]:
    """Return name and settings of all engines that are installed with a model."""
    engines: dict[str, EngineSettings] = {}
    done: set[str] = set()
    for name, spec in ENGINES.items():
        # Without a model chosen by the user, use the first engine for the same operations.
        if not spec.model_form and spec.is_installed and not done.issuperset(spec.operations):
            done.update(spec.operations)
            engines[name] = EngineSettings(name)
    for family, (first, *others) in available().items():
        if ENGINES[family].has_roles:
            engines[family] = EngineSettings(family)
            continue
        engines[family] = EngineSettings(family, {"model": first.name})
        # Requests select a model by its name; the first one runs those that do not.
        for one in others:
            engines[f"{family}-{one.name}"] = EngineSettings(family, {"model": one.name})
    return engines


def operations_of(engine: EngineSettings) -> tuple[str, ...]:
    """Return the operations of an engine: from its settings, else all of its family."""
    spec = ENGINES.get(engine.family)
    return engine.operations or (spec.operations if spec else ())


class _Builder:
    """Creates the backends of engines, on this machine or on a Ray cluster.

    Raises:
        ConnectError: The cluster of the settings is not reachable.
        MissingDependencyError: Ray is not installed.
    """

    def __init__(self, settings: ServiceSettings) -> None:
        self._settings = settings
        self._memory = MemoryBudget(settings.limits.engines_memory_bytes)
        self._cluster: Cluster | None = None
        if settings.ray is not None:
            from polymux.ray.deployment import Cluster

            self._cluster = Cluster(settings.ray)

    def media(self, engines: Mapping[str, EngineSettings]) -> Backend:
        """Create the backend for untrusted files from the settings, or a default one."""
        named = {name: one for name, one in engines.items() if one.family == "media"}
        name, engine = next(iter(named.items()), ("media", EngineSettings("media")))
        return self._engine(name, engine)

    def backend(
        self, name: str, engine: EngineSettings, media: Backend, url_fetcher: UrlFetcher
    ) -> Backend:
        if engine.family == "media":
            return media
        options, problem, model = chosen(engine.family, engine.options)
        spec = ENGINES.get(engine.family)
        if problem:
            names = [str(options.get("model") or name), name] if engine.family == "chat" else None
            return UnavailableBackend(name, operations_of(engine), problem, names)
        if model:
            options = {**options, MODEL_NAME: model}
        made = self._engine(name, replace(engine, options=options))
        if spec is None or not spec.backend:
            return made
        policy = self._settings.fetch
        context = BackendContext(name, engine.options, options, media, url_fetcher, policy)
        backend: Backend = loaded(spec.backend)(made, context)
        return backend

    def _engine(self, name: str, engine: EngineSettings) -> Backend:
        settings, is_media = self._settings, engine.family == "media"
        options: dict[str, Any] = {"max_concurrency": engine.max_concurrency, **engine.options}
        if is_media:
            limits = settings.limits
            options.setdefault("limits", {"duration_s": limits.duration_s, "streams": 100})
            options.setdefault("max_pixels", limits.pixels)
        supervision = Supervision(
            threads=engine.threads,
            idle_s=engine.idle_s,
            confinement=(media_confinement if is_media else model_confinement)(settings),
            **(ENGINES[engine.family].supervision if engine.family in ENGINES else {}),
        )
        operations = operations_of(engine)
        if self._cluster is not None and self._cluster.has(name):
            from polymux.ray.messages import Plan

            slots, how = engine.max_concurrency, supervision._asdict()
            plan = Plan(name, engine.family, operations, options, slots, how)
            return self._cluster.deploy(plan, media=is_media)
        made = (MediaBackend if is_media else EngineBackend)(
            name,
            engine.family,
            operations,
            options,
            max_concurrency=engine.max_concurrency,
            supervision=supervision,
            before_load=self._memory.make_room,
            needed_bytes=needed_bytes(engine.family, options),
        )
        self._memory.add(made)
        return made


def model_confinement(settings: ServiceSettings) -> dict[str, Any]:
    """Return the sandbox of a process with a model: no network, limited file size.

    Access to files is not restricted: models and devices may be anywhere. Such a process receives
    samples, pixels and text, but never untrusted files.
    """
    return {
        "readable": [],
        "writable": [],
        "network": False,
        "families": [socket.AF_UNIX],
        "limits": {"CORE": 0, "FSIZE": settings.store.bytes},
    }


def media_confinement(settings: ServiceSettings) -> dict[str, Any]:
    """Return the sandbox of the process for untrusted files: read them, write drafts."""
    return {
        "readable": [*_READABLE, *sorted(python_paths())],
        "writable": [str(settings.store.folder / "drafts")],
        "network": False,
        "limits": {
            "AS": _MEDIA_ADDRESS_SPACE_BYTES,
            "CORE": 0,
            "FSIZE": settings.store.bytes,
            "NOFILE": 256,
        },
    }


class UnavailableBackend(Backend):
    """Stands for an engine without a model; rejects all requests.

    Args:
        problem: Why the engine is unavailable, and what to do.
        models: Names by which requests could select its model; None for any name.
    """

    def __init__(
        self,
        name: str,
        operations: Sequence[str],
        problem: str,
        models: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.operations = frozenset(operations)
        self.models = None if models is None else tuple(models)
        self._problem = problem

    def refuse(self, work: OperationRequest) -> NoReturn:
        """Reject the request.

        Raises:
            NoBackendError: Always; names the model that this request needs, if known.
        """
        roles = needed_roles(work.operation, work.variant, work.values)
        known = [why_missing(role) for role in roles if role in ROLES]
        raise status_error(errors.NoBackendError, sentences(*known) or self._problem)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:  # noqa: ARG002
        self.refuse(work)

    def health(self) -> Health:
        return Health("failed", self._problem)
