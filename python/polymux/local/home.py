"""Shared parts of `Local` and `AsyncLocal`: convert calls to requests, and outputs to results."""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import shutil
import sys
import tempfile
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from polymux import contract, errors
from polymux._native import core
from polymux.client import responses
from polymux.client.answer import Answer
from polymux.client.methods.results import RESULTS
from polymux.client.request import messages_of
from polymux.engines.media.backend import refuse_addresses
from polymux.engines.process.in_process import InProcessBackend
from polymux.errors import (
    BadRequestError,
    InvalidRequestError,
    NoBackendError,
    NoMatchError,
    OperationCancelledError,
    PolymuxError,
    PredictionFailedError,
)
from polymux.local.inputs import upload_of
from polymux.local.local_file import LocalFile
from polymux.media.inputs import path_bytes
from polymux.models.selection import remedy
from polymux.service import job_table
from polymux.service.admission import Bounds
from polymux.service.errors import restored
from polymux.service.model import LOCAL, OperationRequest, Upload
from polymux.service.service import Service
from polymux.service.store import Store

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping, Sequence
    from types import TracebackType

    from polymux._native._core import ChatChunk
    from polymux.client.methods._caller import CallArguments
    from polymux.client.responses import Prediction
    from polymux.local.inputs import Intake
    from polymux.media.media_file import MediaFile
    from polymux.runtime.settings import EngineSettings
    from polymux.service.backend import Backend
    from polymux.service.job_table import Job
    from polymux.service.routes import Routes
    from polymux.songs.song_index import SongIndex

_CAP_BYTES = 100 << 30
_OWN_LIFE_S = 7 * 86400.0


class LocalStore(Store):
    """A store that several threads may close concurrently.

    Args:
        folder: Data directory, created if necessary.
        is_users: Whether the user specified it. Results then stay until they are deleted manually.
            Otherwise they are deleted with the directory, or after seven days.

    Raises:
        StoreError: It is in use, damaged, or cannot be written.
    """

    def __init__(self, folder: Path, *, is_users: bool) -> None:
        self._one_closes = threading.Lock()
        life_s = math.inf if is_users else _OWN_LIFE_S
        super().__init__(folder, max_bytes=_CAP_BYTES, life_s=life_s)
        if is_users:
            try:
                self._keep()
            except BaseException:
                self.close()
                raise

    def _keep(self) -> None:
        """Remove the expiry time that earlier releases set.

        This runs before expired files are deleted, so it also keeps files whose time is over.
        Files of a server in the same directory are not changed. The database thread is idle here.
        """
        self._database.execute(
            "UPDATE files SET expires_at = ? WHERE owner = ? AND expires_at < ?",
            (math.inf, LOCAL.id, math.inf),
        )

    def close(self) -> None:
        """Finish pending writes and release the lock. Idempotent.

        If an event loop ends during a close, its thread continues, and a second close may run.
        """
        with self._one_closes:
            super().close()


class OpenCall:
    """A call in the current task. `CallTracker.end` cancels it with `OperationCancelledError`."""

    def __init__(self, calls: CallTracker) -> None:
        self._calls = calls
        self._is_ended = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        assert task is not None  # noqa: S101
        self.task = task
        self._cancelling = task.cancelling()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._calls.open.add(self)

    def end(self) -> None:
        self._is_ended = True
        self.task.cancel()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._calls.open.discard(self)
        self.over.set_result(None)
        if not self._is_ended:
            return
        # Like asyncio.timeout: a task that others canceled stays canceled.
        is_ours = self.task.uncancel() <= self._cancelling
        if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise OperationCancelledError(
                "canceled: this Local or AsyncLocal was closed during the operation"
            ) from error


class CallTracker:
    """The open calls of one event loop."""

    def __init__(self) -> None:
        self.open: set[OpenCall] = set()
        self._streams: WeakSet[OpenStream] = WeakSet()

    def stream(self, pieces: AsyncGenerator[ChatChunk | bytes]) -> OpenStream:
        """Return the pieces as a stream that can be read until `end` is called."""
        found = OpenStream(self, pieces)
        self._streams.add(found)
        return found

    async def end(self, max_s: float) -> None:
        """Cancel all calls of other tasks, and wait up to `max_s` seconds for their end."""
        own = asyncio.current_task()
        ending = [one for one in self.open if one.task is not own]
        for one in ending:
            one.end()
        if ending:
            await asyncio.wait([one.over for one in ending], timeout=max_s)
        for stream in list(self._streams):
            await stream.end()


class OpenStream:
    """The pieces of a stream. Reading each piece is a call."""

    def __init__(self, calls: CallTracker, pieces: AsyncGenerator[ChatChunk | bytes]) -> None:
        self._calls = calls
        self._pieces = pieces
        self._is_read = self._is_over = False

    def __aiter__(self) -> OpenStream:
        return self

    async def __anext__(self) -> ChatChunk | bytes:
        """Return the next piece.

        Raises:
            OperationCancelledError: The `Local` or `AsyncLocal` was closed.
        """
        if self._is_over:
            raise OperationCancelledError(
                "canceled: this Local or AsyncLocal was closed before the end of the stream"
            )
        self._is_read = True
        try:
            with OpenCall(self._calls):
                return await anext(self._pieces)
        finally:
            self._is_read = False

    async def aclose(self) -> None:
        """Close the source, unless a piece is being read."""
        if not self._is_read:
            await self._pieces.aclose()

    async def end(self) -> None:
        """Close the source; further reading raises an error."""
        self._is_over = True
        await self.aclose()


class LocalHome:
    """The data directory of one `Local`, and its service.

    Args:
        folder: Data directory, whose results stay until they are deleted; None for a temporary one.
        engines: Engines by name; None for those of the configuration file, and the installed ones.
        backends: Custom backends that replace the engines.
        song_index: Song index or its directory; None for the default one, if it has songs.
        max_generation_s: Maximum estimated duration of a generation; None for no limit.
        more: Other fields of `ServiceSettings`; None for their defaults.

    Raises:
        PolymuxError: It cannot be opened; nothing stays open.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        engines: Mapping[str, EngineSettings] | None,
        backends: Sequence[Backend] | None,
        *,
        song_index: SongIndex | str | os.PathLike[str] | None = None,
        max_generation_s: float | None = None,
        **more: Any,
    ) -> None:
        self.calls = CallTracker()
        given = None if folder is None else os.fsdecode(path_bytes(folder))
        self._own = made() if given is None else None
        try:
            self.folder = Path(self._own or given or "").expanduser().absolute()
            self.store = LocalStore(self.folder, is_users=self._own is None)
            try:
                own = backends
                if own is None:
                    own = _backends(self.folder, engines, song_index, more)
                bounds = Bounds(max_generation_s=max_generation_s)
                self.service = Service(own, self.store, queue=1000, bounds=bounds, remedy=remedy)
            except BaseException:
                self.store.close()
                raise
        except BaseException:
            self.remove()
            raise
        _HOMES.add(self)

    async def end(self, max_stop_s: float) -> None:
        """End running work and close the store, even if a backend fails or the loop ends.

        Args:
            max_stop_s: Seconds that running work gets to stop before its processes are killed.
        """
        try:
            self.service.drain()
            await self.calls.end(max_stop_s)
            await self.service.close()
            # Calls that a process blocked end together with it.
            await self.calls.end(max_stop_s)
            await asyncio.to_thread(self.remove)
        except BaseException:
            # Without a thread: in a loop that ends, the result of a thread would never arrive.
            self.store.close()
            self.remove()
            raise

    def remove(self) -> None:
        """Delete a temporary data directory."""
        if self._own is not None:
            remove(self._own)

    def leave_to_parent(self) -> None:
        """Give up all resources in a forked child process without ending them."""
        descriptor, self.store._lock = self.store._lock, -1  # noqa: SLF001
        if descriptor >= 0:
            os.close(descriptor)  # An open descriptor would keep the parent's lock.


_HOMES: WeakSet[LocalHome] = WeakSet()
#: Keeps a reference: garbage collection in the child would close the parent's database.
_OF_PARENTS: list[LocalHome] = []


def _forked() -> None:
    _OF_PARENTS.extend(_HOMES)
    _HOMES.clear()
    for home in _OF_PARENTS:
        home.leave_to_parent()


os.register_at_fork(after_in_child=_forked)


class _Media(InProcessBackend):
    """The media engine, which accepts files and does not download URLs."""

    def refuse(self, work: OperationRequest) -> None:
        """Reject URLs."""
        refuse_addresses(work, "file")


def _media(engines: Mapping[str, EngineSettings]) -> _Media:
    """Create the media engine in this process with its settings, or by default with all cores."""
    cores = os.cpu_count() or 1
    media = next((one for one in engines.values() if one.family == "media"), None)
    options, max_concurrency, threads = (
        ({}, cores, cores)
        if media is None
        else (media.options, media.max_concurrency, media.threads)
    )
    return _Media(
        "media",
        "media",
        ["convert_to_mp3"],
        options,
        max_concurrency=max_concurrency,
        threads=threads,
    )


def _backends(
    folder: Path,
    engines: Mapping[str, EngineSettings] | None,
    song_index: SongIndex | str | os.PathLike[str] | None,
    more: Mapping[str, Any],
) -> list[Backend]:
    from polymux.downloads.url_inputs import addressed
    from polymux.runtime.build import backends_of, pages_of, url_fetcher_of, usual_engines
    from polymux.runtime.settings import ServiceSettings, StoreSettings, configured_engines

    wanted = usual_engines() if engines is None else engines
    others = {name: one for name, one in wanted.items() if one.family != "media"}
    given = {name: one for name, one in more.items() if one is not None}
    settings = ServiceSettings(store=StoreSettings(folder), engines=others, **given)
    media = _media(configured_engines() if engines is None else engines)
    return [
        addressed(media, url_fetcher_of(settings, pages_of(settings))),
        *backends_of(settings, media, _songs(song_index, media, folder)),
    ]


def _songs(
    song_index: SongIndex | str | os.PathLike[str] | None, media: Backend, folder: Path
) -> Backend | None:
    """Create the backend of the song index, with the owner's permissions."""
    from polymux.songs.backend import SongIndexBackend
    from polymux.songs.pages import FileAddresses
    from polymux.songs.reader import Library
    from polymux.songs.settings import served_folder
    from polymux.songs.song_index import SongIndex

    if isinstance(song_index, SongIndex):
        library = Library(song_index.path, song_index)
    else:
        place = served_folder(song_index)
        if place is None:
            return None
        library = Library(place)
    covers = FileAddresses(folder / "covers")
    return SongIndexBackend(library, media, lambda _: covers, is_own=True)


def work_of(
    operation: str,
    values: Mapping[str, Any],
    arguments: CallArguments,
    intake: Intake,
    routes: Routes,
) -> OperationRequest:
    """Convert a call to a request. Discard the files in `intake` at the end of the request.

    Raises:
        InvalidRequestError: The request is invalid.
        InputError: A file cannot be read.
    """

    operation = contract.operation(operation).name
    try:
        choice = routes.choose_model(operation, arguments.get("model"))
    except BadRequestError as error:
        raise InvalidRequestError(str(error)) from None
    model = choice.selector
    given = core.present(dict(values))
    if "messages" in given:
        given["messages"] = messages_of(given["messages"])
    if operation == "chat":
        given.setdefault("model", "default")
    if operation in ("chat", "free_chat"):
        extra = arguments.get("extra_body") or {}
        given |= {name: one for name, one in extra.items() if one is not None}
    name, _, variant, chosen, _ = core.choose_variant(operation, model, given)
    given = core.check(name, variant, given)
    described = contract.operation(name)
    shape = next(one for one in described.variants if one.id == variant)
    files = {one.name for one in shape.fields if one.type == "file"}
    for field in files & given.keys():
        given[field] = upload_of(given[field], intake)
    checked = contract.CheckedRequest(name, variant, model or chosen, given, ())
    return choice.applied(OperationRequest.of(checked, LOCAL))


def with_installed_model(
    service: Service, work: OperationRequest, model: str | None
) -> OperationRequest:
    """Return the request for the first variant that can run, if the caller named no model.

    Args:
        service: The service with its engines.
        work: The request for the default variant.
        model: The model that the caller named.
    """
    variants = contract.operation(work.operation).variants
    if model is not None or len(variants) == 1 or _is_served(service, work):
        return work
    given = {name: work.values[name] for name in work.given}
    # The check only needs to know that there is a file.
    checkable = {name: "file" if isinstance(one, Upload) else one for name, one in given.items()}
    for one in variants:
        name = one.model or ""
        warnings = (f"model: {name}, because {work.model} is not installed",)
        checked = contract.CheckedRequest(work.operation, one.id, name, given, warnings)
        other = OperationRequest.of(checked, LOCAL)
        with suppress(InvalidRequestError):
            core.check(work.operation, one.id, checkable)
            if _is_served(service, other):
                return other
    return work


def _is_served(service: Service, work: OperationRequest) -> bool:
    """Whether a backend other than a fallback can run the request."""
    try:
        return not any(one.is_fallback(work) for one in service.backends_of(work))
    except NoBackendError:
        return False


class LocalAnswer(Answer):
    """The response object of local results, without a server."""

    __slots__ = ()

    def __init__(self, warnings: Sequence[str] = ()) -> None:
        """Create a response with warnings in the same form as from a server.

        Args:
            warnings: Warnings of the operation. Default: none.
        """
        fields = b""
        if warnings:
            from polymux.service.warnings import warnings_fields

            fields = b"".join(b"%s: %s\r\n" % one for one in warnings_fields(warnings))
        super().__init__((200, fields, b"", 1, 0.0, ()))

    def file(self, url: str) -> MediaFile:
        """Return the file of a URL in a result. The store derives its suffix from the content."""

        path = Path(unquote(urlsplit(url).path))
        return LocalFile(path, core.content_type_of(path.name))


def result_of(operation: str, value: Any, answer: LocalAnswer) -> Any:
    """Convert the service's output to a method's result.

    Raises:
        NoMatchError: No song matches.
    """
    name = RESULTS[operation]
    if name == "MediaFile":
        return answer.file(value["response"] if isinstance(value, dict) else value)
    made = getattr(responses, name).of_value(value, answer)
    if name == "Song" and not made.is_match:
        raise NoMatchError("no song matches this recording")
    return made


def prediction_of(job: Job, store: Store) -> Prediction:
    """Convert a job to a prediction."""
    value = job_table.prediction(job, lambda name: _address(store, name))
    return responses.Prediction.of_value(value, LocalAnswer(job.warnings))


def _address(store: Store, name: str) -> str | None:
    file = store.media.find(name)
    return None if file is None else store.media.path_of(file).as_uri()


def finished(job: Job, store: Store) -> Any:
    """Return the result of a job that has ended.

    Raises:
        PredictionFailedError: It was canceled.
        InputError: Its file cannot be read.
        MediaError: The content of its file is invalid.
        APIStatusError: It failed for another reason.
    """
    if job.error is not None:
        raise _failure(job.error)
    if job.status != "succeeded":
        raise PredictionFailedError(f"job {job.id}: {job.status}")
    if RESULTS[job.operation] == "Prediction":
        return prediction_of(job, store)
    return result_of(
        job.operation,
        job_table.linked(job.output, lambda name: _address(store, name)),
        LocalAnswer(job.warnings),
    )


def _failure(error: Mapping[str, Any]) -> PolymuxError:
    """Return the error of a job. A file raises the same class as with `polymux.convert_to_mp3`."""
    details = dict(error.get("input", {}))
    if not details:
        return restored(error)
    kind: type[PolymuxError] = getattr(errors, details.pop("type"))
    return kind(**details)


#: Temporary data directories of this process.
_MADE: set[str] = set()


def made() -> str:
    """Create a temporary data directory, which is deleted at the latest when the program ends."""
    folder = tempfile.mkdtemp(prefix="polymux-local-")
    _MADE.add(folder)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        # multiprocessing workers end without running `atexit` functions.
        Finalize(None, _remove_all, exitpriority=0)
    return folder


def remove(folder: str) -> None:
    """Delete a temporary data directory."""
    shutil.rmtree(folder, ignore_errors=True)
    _MADE.discard(folder)


@atexit.register
def _remove_all() -> None:
    """Delete all temporary data directories at exit, after killing engines that may still write."""
    if not _MADE:
        return
    from polymux.engines.process.process import kill_all

    kill_all()
    for folder in list(_MADE):
        remove(folder)


# A child process must not delete its parent's directories.
os.register_at_fork(after_in_child=_MADE.clear)
