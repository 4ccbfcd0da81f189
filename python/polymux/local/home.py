"""What `Local` and `AsyncLocal` share: calls as work of the service, products as results."""

from __future__ import annotations

import asyncio
import atexit
import math
import os
import shutil
import sys
import tempfile
import threading
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit
from weakref import WeakSet

from polymux import contract
from polymux._native import core
from polymux.client import responses
from polymux.client.answer import Answer
from polymux.client.methods.results import RESULTS
from polymux.client.request import messages_of
from polymux.engines.media.backend import refuse_addresses
from polymux.engines.process.in_process import InProcessBackend
from polymux.errors import NoMatchError, OperationCancelledError, PredictionFailedError
from polymux.local.inputs import upload_of
from polymux.local.local_file import LocalFile
from polymux.media.inputs import path_bytes
from polymux.models.selection import remedy
from polymux.service import job_table
from polymux.service.admission import Bounds
from polymux.service.errors import restored
from polymux.service.model import LOCAL, OperationRequest
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
    from polymux.songs.catalogue import Catalogue

_CAP_BYTES = 100 << 30
_OWN_LIFE_S = 7 * 86400.0


class LocalStore(Store):
    """A store that several may close at once.

    Args:
        folder: Made where there is none.
        is_users: Whether it is the user's: results stay until they are removed by hand. Else they
            go with the folder, or after seven days.

    Raises:
        StoreError: Another has it open; it is damaged; it cannot be written.
    """

    def __init__(self, folder: Path, *, is_users: bool) -> None:
        self._one_closes = threading.Lock()
        life_s = math.inf if is_users else _OWN_LIFE_S
        super().__init__(folder, cap_bytes=_CAP_BYTES, life_s=life_s)
        if is_users:
            try:
                self._keep()
            except BaseException:
                self.close()
                raise

    def _keep(self) -> None:
        """Takes the end from what earlier releases have written down with one.

        Nobody has swept yet, so it holds for files whose time is over as well. What a server keeps
        in the same folder has its own. The catalogue's thread has nothing to do yet.
        """
        self._database.execute(
            "UPDATE files SET expires_at = ? WHERE owner = ? AND expires_at < ?",
            (math.inf, LOCAL.id, math.inf),
        )

    def close(self) -> None:
        """Finishes what is being written, and lets the next one in. Any number of times.

        A loop that ends leaves the thread behind on which it was doing this, and does it again.
        """
        with self._one_closes:
            super().close()


class OpenCall:
    """A call in the current task; `CallTracker.end` cancels that, and an error tells its caller."""

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
        # As in asyncio.timeout: what others have cancelled stays cancelled.
        is_ours = self.task.uncancel() <= self._cancelling
        if is_ours and kind is not None and issubclass(kind, asyncio.CancelledError):
            raise OperationCancelledError("it was closed while this was done") from error


class CallTracker:
    """Belongs to one event loop."""

    def __init__(self) -> None:
        self.open: set[OpenCall] = set()
        self._streams: WeakSet[OpenStream] = WeakSet()

    def stream(self, pieces: AsyncGenerator[ChatChunk | bytes]) -> OpenStream:
        """The pieces, which may be read as long as nobody has called `end`."""
        found = OpenStream(self, pieces)
        self._streams.add(found)
        return found

    async def end(self, max_s: float) -> None:
        """Cancels all but its caller's own, and waits until they have stopped, at most so long."""
        own = asyncio.current_task()
        ending = [one for one in self.open if one.task is not own]
        for one in ending:
            one.end()
        if ending:
            await asyncio.wait([one.over for one in ending], timeout=max_s)
        for stream in list(self._streams):
            await stream.end()


class OpenStream:
    """The pieces of a stream, each of which is a call of its own."""

    def __init__(self, calls: CallTracker, pieces: AsyncGenerator[ChatChunk | bytes]) -> None:
        self._calls = calls
        self._pieces = pieces
        self._is_read = self._is_over = False

    def __aiter__(self) -> OpenStream:
        return self

    async def __anext__(self) -> ChatChunk | bytes:
        """The next piece.

        Raises:
            OperationCancelledError: What it is of is closed.
        """
        if self._is_over:
            raise OperationCancelledError("it was closed before the stream's end")
        self._is_read = True
        try:
            with OpenCall(self._calls):
                return await anext(self._pieces)
        finally:
            self._is_read = False

    async def aclose(self) -> None:
        """Ends what makes them, unless one is being read."""
        if not self._is_read:
            await self._pieces.aclose()

    async def end(self) -> None:
        """The same for good: whoever reads on is told."""
        self._is_over = True
        await self.aclose()


class LocalHome:
    """The folder of one `Local`, and the service in it.

    Args:
        folder: Where results are kept, for as long as nobody removes them; None for a folder that
            goes with it.
        engines: Name to engine; None for what is installed.
        backends: Instead of engines.
        catalogue: One's own songs, or the folder of their catalogue; None for the default one,
            where it has songs.
        max_generation_s: What a generation may be thought to take; None for no limit.
        more: Other fields of `ServiceSettings`; None for their defaults.

    Raises:
        PolymuxError: It cannot be opened; nothing of it is left open then.
    """

    def __init__(
        self,
        folder: str | os.PathLike[str] | None,
        engines: Mapping[str, EngineSettings] | None,
        backends: Sequence[Backend] | None,
        *,
        catalogue: Catalogue | str | os.PathLike[str] | None = None,
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
                    own = _backends(self.folder, engines, catalogue, more)
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
        """Ends what runs and gives up the store, also where a backend fails or the loop ends.

        Args:
            max_stop_s: How long work may take to stop before the processes that do it are
                ended.
        """
        try:
            self.service.drain()
            await self.calls.end(max_stop_s)
            await self.service.close()
            # What was held up by a process has ended with it.
            await self.calls.end(max_stop_s)
            await asyncio.to_thread(self.remove)
        except BaseException:
            # Here and now: in a loop that ends, nothing comes back from another thread.
            self.store.close()
            self.remove()
            raise

    def remove(self) -> None:
        """Removes the folder, where it was made for this."""
        if self._own is not None:
            remove(self._own)

    def leave_to_parent(self) -> None:
        """In a forked process: nothing of it is used here any more, and nothing of it ended."""
        descriptor, self.store._lock = self.store._lock, -1  # noqa: SLF001
        if descriptor >= 0:
            os.close(descriptor)  # The lock would be held for as long as this process has it.


_HOMES: WeakSet[LocalHome] = WeakSet()
#: Nobody may give these up by forgetting them: it would be the parent's database that is closed.
_OF_PARENTS: list[LocalHome] = []


def _forked() -> None:
    _OF_PARENTS.extend(_HOMES)
    _HOMES.clear()
    for home in _OF_PARENTS:
        home.leave_to_parent()


os.register_at_fork(after_in_child=_forked)


class _Media(InProcessBackend):
    """The media engine, which takes files and fetches nothing."""

    def refuse(self, work: OperationRequest) -> None:
        """Addresses are no files."""
        refuse_addresses(work, "file")


def _media(engines: Mapping[str, EngineSettings] | None) -> _Media:
    """As its settings say, but in this process; without any, with all processors."""
    cores = os.cpu_count() or 1
    told = next((one for one in (engines or {}).values() if one.family == "media"), None)
    options, max_concurrency, threads = (
        ({}, cores, cores) if told is None else (told.options, told.max_concurrency, told.threads)
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
    catalogue: Catalogue | str | os.PathLike[str] | None,
    more: Mapping[str, Any],
) -> list[Backend]:
    from polymux.downloads.url_inputs import addressed
    from polymux.runtime.build import backends_of, installed_engines, pages_of, url_fetcher_of
    from polymux.runtime.settings import ServiceSettings, StoreSettings

    wanted = installed_engines() if engines is None else engines
    others = {name: one for name, one in wanted.items() if one.family != "media"}
    given = {name: one for name, one in more.items() if one is not None}
    settings = ServiceSettings(store=StoreSettings(folder), engines=others, **given)
    media = _media(engines)
    return [
        addressed(media, url_fetcher_of(settings, pages_of(settings))),
        *backends_of(settings, media, _songs(catalogue, media, folder)),
    ]


def _songs(
    catalogue: Catalogue | str | os.PathLike[str] | None, media: Backend, folder: Path
) -> Backend | None:
    """The catalogue, for its owner."""
    from polymux.songs.backend import CatalogueBackend
    from polymux.songs.catalogue import Catalogue
    from polymux.songs.pages import FileAddresses
    from polymux.songs.reader import Library
    from polymux.songs.settings import served_folder

    if isinstance(catalogue, Catalogue):
        library = Library(catalogue.path, catalogue)
    else:
        place = served_folder(catalogue)
        if place is None:
            return None
        library = Library(place)
    covers = FileAddresses(folder / "covers")
    return CatalogueBackend(library, media, lambda _: covers, is_own=True)


def work_of(
    operation: str, values: Mapping[str, Any], arguments: CallArguments, intake: Intake
) -> OperationRequest:
    """A call as work; what `intake` has taken in for it is to be discarded when it is over.

    Raises:
        InvalidRequestError: It does not keep the contract.
        InputError: A file cannot be read.
    """

    operation, model = contract.operation(operation).name, arguments.get("model")
    given = core.present(dict(values))
    if "messages" in given:
        given["messages"] = messages_of(given["messages"])
    if operation == "chat":
        given.setdefault("model", "default")
    if operation in ("chat", "free_chat"):
        extra = arguments.get("extra_body") or {}
        given |= {name: one for name, one in extra.items() if one is not None}
    name, _, variant, chosen, _ = core.choose_variant(operation, model, given)
    core.check(name, variant, given)
    described = contract.operation(name)
    shape = next(one for one in described.variants if one.id == variant)
    files = {one.name for one in shape.fields if one.type == "file"}
    for field in files & given.keys():
        given[field] = upload_of(given[field], intake)
    checked = contract.CheckedRequest(name, variant, model or chosen, given, ())
    return OperationRequest.of(checked, LOCAL)


class LocalAnswer(Answer):
    """What results of this machine came from: no server, and files of the store."""

    __slots__ = ()

    def __init__(self, warnings: Sequence[str] = ()) -> None:
        """Nothing was asked over a network; what was left out or changed is told as a server does.

        Args:
            warnings: Lines of the work's log. Default: none.
        """
        fields = b""
        if warnings:
            from polymux.service.warnings import warnings_fields

            fields = b"".join(b"%s: %s\r\n" % one for one in warnings_fields(warnings))
        super().__init__((200, fields, b"", 1, 0.0))

    def file(self, url: str) -> MediaFile:
        """A file that a result names. The store has named it by what it is."""

        path = Path(unquote(urlsplit(url).path))
        return LocalFile(path, core.content_type_of(path.name))


def result_of(operation: str, value: Any, answer: LocalAnswer) -> Any:
    """What a method gives, of what the service has made.

    Raises:
        NoMatchError: No song is like the recording.
    """
    name = RESULTS[operation]
    if name == "MediaFile":
        return answer.file(value["response"] if isinstance(value, dict) else value)
    made = getattr(responses, name).of_value(value, answer)
    if name == "Song" and not made.is_match:
        raise NoMatchError("no song is like this recording")
    return made


def prediction_of(job: Job, store: Store) -> Prediction:
    """A job as the result that callers know."""
    value = job_table.prediction(job, lambda name: _address(store, name))
    return responses.Prediction.of_value(value, LocalAnswer())


def _address(store: Store, name: str) -> str | None:
    file = store.media.find(name)
    return None if file is None else store.media.path_of(file).as_uri()


def finished(job: Job, store: Store) -> Any:
    """The result of a job that has ended.

    Raises:
        PredictionFailedError: It was cancelled.
        APIStatusError: It failed.
    """
    if job.error is not None:
        raise restored(job.error)
    if job.status != "succeeded":
        raise PredictionFailedError(f"the prediction {job.id} was {job.status}")
    if RESULTS[job.operation] == "Prediction":
        return prediction_of(job, store)
    return result_of(
        job.operation,
        job_table.linked(job.output, lambda name: _address(store, name)),
        LocalAnswer(),
    )


#: Of this process.
_MADE: set[str] = set()


def made() -> str:
    """A new one, which is removed when this program ends, if nobody has removed it before."""
    folder = tempfile.mkdtemp(prefix="polymux-local-")
    _MADE.add(folder)
    processes = sys.modules.get("multiprocessing.process")
    if processes is not None and processes.parent_process() is not None:
        from multiprocessing.util import Finalize

        # Its workers end without what `atexit` knows.
        Finalize(None, _remove_all, exitpriority=0)
    return folder


def remove(folder: str) -> None:
    """Removes one with all that is in it."""
    shutil.rmtree(folder, ignore_errors=True)
    _MADE.discard(folder)


@atexit.register
def _remove_all() -> None:
    """At the end of the program. What engines may still write is theirs until they have ended."""
    if not _MADE:
        return
    from polymux.engines.process.process import kill_all

    kill_all()
    for folder in list(_MADE):
        remove(folder)


# A forked process must leave its parent's alone.
os.register_at_fork(after_in_child=_MADE.clear)
