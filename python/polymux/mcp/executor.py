"""Executors: run tool calls on a remote polymux server or on a local service."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

from polymux import errors
from polymux.client.responses.prediction import files_of
from polymux.mcp.answers import MadeFile, Outcome
from polymux.mcp.tools import CHATS, checked
from polymux.media.media_file import MediaFile
from polymux.service import job_table
from polymux.service.errors import bad_request, restored, status_error
from polymux.service.job_table import SUCCEEDED
from polymux.service.model import OperationRequest, Upload, buffered_sink
from polymux.service.service import is_job
from polymux.service.temporary_files import copied, written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence

    from polymux.client.async_client import AsyncClient
    from polymux.client.responses import Prediction
    from polymux.mcp.files import Input
    from polymux.mcp.tools import Arguments
    from polymux.service.job_table import Job
    from polymux.service.media_store import StoredFile
    from polymux.service.model import Caller
    from polymux.service.service import Service


@dataclass(frozen=True, slots=True)
class Call:
    """A tool call that passed all checks.

    Attributes:
        arguments: The arguments without files.
        files: Field name to file.
        request_id: Identifies the call in logs.
        max_json_bytes: Maximum JSON size of `arguments`.
        tell: Reports progress: a number from 0 to 1 and a status line.
    """

    arguments: Arguments
    files: Mapping[str, Input]
    caller: Caller
    request_id: str
    max_json_bytes: int
    tell: Callable[[float, str | None], Coroutine[Any, Any, None]]


#: Maximum number of files that `RemoteExecutor` remembers; it drops the oldest.
_MAX_FILES = 1000


class RemoteExecutor:
    """Runs calls on a polymux server.

    Args:
        client: Connection to the server; streams files while reading them.
    """

    def __init__(self, client: AsyncClient) -> None:
        self._client = client
        self._made: dict[str, MadeFile] = {}

    async def call(self, call: Call) -> Outcome:
        """Run one call. Cancellation also cancels its job on the server."""
        given = call.arguments
        values: dict[str, Any] = dict(given.values)
        extra = None
        if given.operation.name in CHATS:
            # The chat operations pass unknown fields on.
            known = {field.name for one in given.operation.variants for field in one.fields}
            extra = {name: values.pop(name) for name in values.keys() - known}
        values |= {name: _content(one) for name, one in call.files.items()}
        progress = _Progress(call)
        try:
            result = await self._client.request(
                given.operation.name,
                values,
                model=given.model,
                extra_body=extra,
                on_progress=progress.forward,
            )
        except asyncio.CancelledError:
            # A job continues without its client once it exists: cancel it.
            if progress.job is not None:
                with suppress(errors.PolymuxError):
                    await asyncio.shield(self._client.predictions.cancel(progress.job))
            raise
        except (errors.APIStatusError, errors.InvalidRequestError):
            raise
        except errors.PolymuxError as error:
            # A connection error: its text is for the user of this process.
            raise status_error(errors.InternalServerError, str(error), code=error.code) from None
        files = [self._kept(file) for _, file in files_of(result)]
        return Outcome(_value(result), files)

    def _kept(self, file: MediaFile) -> MadeFile:
        uri = str(file)
        name = uri.partition("?")[0].rpartition("/")[2]
        made = MadeFile(uri, name, file.content_type, None, partial(_read, file))
        self._made[uri] = made
        while len(self._made) > _MAX_FILES:
            self._made.pop(next(iter(self._made)))
        return made

    async def made(
        self, caller: Caller, cursor: str | None
    ) -> tuple[Sequence[MadeFile], str | None]:
        """List the files created by this process, newest first, in one page."""
        del caller, cursor  # There is one caller and one page.
        return list(reversed(self._made.values())), None

    async def find(self, caller: Caller, uri: str) -> MadeFile | None:
        """Find a file created by this process."""
        del caller
        return self._made.get(uri)


@asynccontextmanager
async def remote_executor(client: AsyncClient) -> AsyncIterator[RemoteExecutor]:
    """Create an executor that closes the client at the end."""
    async with client:
        yield RemoteExecutor(client)


class _Progress:
    """Forwards the progress of a job.

    Attributes:
        job: Id of the job, once the server has sent it.
    """

    def __init__(self, call: Call) -> None:
        self.job: str | None = None
        self._call = call
        self._reported = -1.0
        self._tasks: set[asyncio.Task[None]] = set()

    def forward(self, job: Prediction) -> None:
        """Forward the progress of a running job. Runs on the event loop and does not block."""
        self.job = job.id
        progress = job.extra.get("progress")
        if not isinstance(progress, (int, float)) or not progress > self._reported:
            return
        self._reported = float(progress)
        lines = job.logs.splitlines()
        task = asyncio.ensure_future(self._call.tell(self._reported, lines[-1] if lines else None))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _content(one: Input) -> Any:
    if one.path is not None:
        return one.path
    return one.file_name, one.data, one.content_type or None


def _value(result: Any) -> Any:
    return {"response": str(result)} if isinstance(result, MediaFile) else result.json()


async def _read(file: Any, max_bytes: int) -> bytes | None:
    try:
        data: bytes = await file.aread(limit_bytes=max_bytes)
    except errors.AnswerTooLargeError:
        return None
    return data


_JOBS_ON_A_PAGE = 50
_LARGEST_CURSOR = 1 << 62


class LocalExecutor:
    """Runs calls on a local service, with its checks, queues, estimates and store.

    Args:
        answer_of: Returns the answer of a successful job, as in the polymux API.
        uri_of: Returns the resource URI of a stored file; it ends with the file's name.
    """

    def __init__(
        self,
        service: Callable[[], Service],
        answer_of: Callable[[Job], Any],
        uri_of: Callable[[StoredFile], str],
    ) -> None:
        self._service = service
        self._answer_of = answer_of
        self._uri_of = uri_of

    async def call(self, call: Call) -> Outcome:
        """Run one call. Cancellation stops its work."""
        service = self._service()
        with ExitStack() as drafts:
            files = {}
            for name, one in call.files.items():
                files[name] = await _upload(one, service, drafts)
            request = await asyncio.to_thread(checked, call.arguments, files, call.max_json_bytes)
            work = OperationRequest.of(request, call.caller, call.request_id)
            if is_job(work.operation):
                return await self._job(service, work, drafts, call)
            sink = buffered_sink(service.store.media.draft)
            product = await service.call(work, sink)
            return Outcome(product.output, (), (*work.warnings, *sink.warnings))

    async def _job(
        self, service: Service, work: OperationRequest, drafts: ExitStack, call: Call
    ) -> Outcome:
        jobs = service.jobs
        begun, _ = await service.submit(work)
        job = begun
        jobs.when_over(begun, drafts.pop_all().close)
        reported = -1.0
        try:
            async for job in jobs.events(begun):
                if not job.ended and job.progress is not None and job.progress > reported:
                    reported = job.progress
                    await call.tell(reported, job.logs[-1] if job.logs else None)
        except BaseException:
            await jobs.release(begun)
            raise
        if job.status == SUCCEEDED:
            files = await service.store.run(_files_of, job, service)
            made = [self._made(service, one) for one in files]
            answer = await service.store.run(self._answer_of, job)
            return Outcome(answer, made, job.warnings)
        raise restored(job.failure)

    def _made(self, service: Service, file: StoredFile) -> MadeFile:
        read = partial(_read_result, service, file)
        return MadeFile(
            self._uri_of(file),
            file.file_name,
            file.content_type,
            file.size_bytes,
            read,
            service.store.media.path_of(file),
            file,
        )

    async def made(
        self, caller: Caller, cursor: str | None
    ) -> tuple[Sequence[MadeFile], str | None]:
        """List files of the caller's latest jobs, and the cursor of the next page, if any."""
        service, store = self._service(), self._service().store
        before = None if cursor is None else _number(cursor)
        jobs, following = await store.run(
            lambda: store.jobs.newest(caller.id, before=before, most=_JOBS_ON_A_PAGE)
        )
        files = await store.run(
            lambda: [file for job in jobs if job.status == SUCCEEDED
                     for file in store.media.of_job(job.id)]
        )  # fmt: skip
        page = [self._made(service, one) for one in files if one.expires_at > store.clock()]
        return page, None if following is None else str(following)

    async def find(self, caller: Caller, uri: str) -> MadeFile | None:
        service = self._service()
        name = uri.rpartition("/")[2]
        file = await service.store.run(service.store.media.find, name)
        if file is None or file.owner != caller.id or self._uri_of(file) != uri:
            return None
        return self._made(service, file)


#: Runs calls and provides the files that they created.
ToolExecutor: TypeAlias = RemoteExecutor | LocalExecutor


async def _upload(one: Input, service: Service, drafts: ExitStack) -> Upload:
    """Use a local file directly; copy or write any other file into a draft of the store."""
    media = service.store.media
    if one.kept is not None:
        try:
            draft = await copied(media, one.kept, drafts)
        except FileNotFoundError:
            raise bad_request(
                f"{one.file_name}: the file has just expired. Create it again"
            ) from None
    elif one.path is not None:
        return Upload(one.path, one.file_name, one.content_type, one.size_bytes)
    else:
        draft = await written(media, one.data or b"", drafts)
    return Upload(draft.path, one.file_name, one.content_type, one.size_bytes)


def _files_of(job: Job, service: Service) -> list[StoredFile]:
    names: list[str] = []
    job_table.linked(job.output, names.append)
    return [file for name in names if (file := service.store.media.find(name)) is not None]


async def _read_result(service: Service, file: StoredFile, max_bytes: int) -> bytes | None:
    if file.size_bytes > max_bytes:
        return None
    return await asyncio.to_thread(_whole, service, file)


def _whole(service: Service, file: StoredFile) -> bytes:
    try:
        with os.fdopen(service.store.media.open(file), "rb") as opened:
            return opened.read()
    except OSError:
        raise bad_request("uri: the file no longer exists", "uri") from None


def _number(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 19:
        raise bad_request("cursor: invalid cursor", "cursor")
    return min(int(cursor), _LARGEST_CURSOR)
