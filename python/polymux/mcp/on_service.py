"""Calls that a service does: of this process, or of the server that this is."""

from __future__ import annotations

import asyncio
import os
from contextlib import ExitStack
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux.mcp.answers import MadeFile, Outcome
from polymux.mcp.arguments import checked
from polymux.service import job_table
from polymux.service.errors import invalid, restored
from polymux.service.job_table import CANCELED, SUCCEEDED
from polymux.service.model import Upload, Work, heard_at_the_end
from polymux.service.service import is_job
from polymux.service.temporary_files import copied, written

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from polymux.mcp.executor import Call
    from polymux.mcp.files import Input
    from polymux.service.job_table import Job
    from polymux.service.media_store import StoredFile
    from polymux.service.model import Caller
    from polymux.service.service import Service

_JOBS_ON_A_PAGE = 50
_LARGEST_CURSOR = 1 << 62


class ServiceDesk:
    """Does calls by a service: with its checks, queues, estimates and store.

    Args:
        service: Gives it.
        answer_of: The answer of an operation whose job succeeded, as the interface has it.
        uri_of: By what a file of the store is read as a resource; its last part is the file's name.
    """

    def __init__(
        self,
        service: Callable[[], Service],
        answer_of: Callable[[Job], Any],
        uri_of: Callable[[StoredFile], str],
    ) -> None:
        """Nothing is done yet."""
        self._service = service
        self._answer_of = answer_of
        self._uri_of = uri_of

    async def call(self, call: Call) -> Outcome:
        """Does one; see `Desk.call`."""
        service = self._service()
        with ExitStack() as drafts:
            files = {}
            for name, one in call.files.items():
                files[name] = await _upload(one, service, drafts)
            request = await asyncio.to_thread(
                checked, call.arguments, files, call.longest_json_bytes
            )
            work = Work.of(request, call.caller, call.request_id)
            if is_job(work.operation):
                return await self._job(service, work, drafts, call)
            sink = heard_at_the_end(service.store.media.draft)
            product = await service.call(work, sink)
            return Outcome(product.output, (), (*work.warnings, *sink.lines))

    async def _job(self, service: Service, work: Work, drafts: ExitStack, call: Call) -> Outcome:
        jobs = service.jobs
        begun, _ = await service.begin(work)
        job = begun
        jobs.when_over(begun, drafts.pop_all().close)
        told = -1.0
        try:
            async for job in jobs.events(begun):
                if not job.ended and job.progress is not None and job.progress > told:
                    told = job.progress
                    await call.tell(told, job.logs[-1] if job.logs else None)
        except BaseException:
            await jobs.abandon(begun)
            raise
        if job.status == SUCCEEDED:
            files = await service.store.run(_files_of, job, service)
            made = [self._made(service, one) for one in files]
            answer = await service.store.run(self._answer_of, job)
            return Outcome(answer, made, work.warnings)
        raise restored(job.error or _canceled())

    def _made(self, service: Service, file: StoredFile) -> MadeFile:
        read = partial(_read, service, file)
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
        """Files of the caller's last jobs; see `Desk.made`."""
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
        """A file of the store; see `Desk.find`."""
        service = self._service()
        name = uri.rpartition("/")[2]
        file = await service.store.run(service.store.media.find, name)
        if file is None or file.owner != caller.id or self._uri_of(file) != uri:
            return None
        return self._made(service, file)


async def _upload(one: Input, service: Service, drafts: ExitStack) -> Upload:
    """A file of the user's as it is, another one as a draft of the store."""
    media = service.store.media
    if one.kept is not None:
        try:
            draft = await copied(media, one.kept, drafts)
        except FileNotFoundError:
            raise invalid(f"{one.file_name}: the file has just expired") from None
    elif one.path is not None:
        return Upload(one.path, one.file_name, one.content_type, one.size_bytes)
    else:
        draft = await written(media, one.data or b"", drafts)
    return Upload(draft.path, one.file_name, one.content_type, one.size_bytes)


def _files_of(job: Job, service: Service) -> list[StoredFile]:
    """The files that an output names, in its order."""
    names: list[str] = []
    job_table.linked(job.output, names.append)
    return [file for name in names if (file := service.store.media.find(name)) is not None]


async def _read(service: Service, file: StoredFile, most_bytes: int) -> bytes | None:
    if file.size_bytes > most_bytes:
        return None
    return await asyncio.to_thread(_whole, service, file)


def _whole(service: Service, file: StoredFile) -> bytes:
    try:
        with os.fdopen(service.store.media.open(file), "rb") as opened:
            return opened.read()
    except OSError:
        raise invalid("the file is gone", "uri") from None


def _number(cursor: str) -> int:
    if not cursor.isascii() or not cursor.isdigit() or len(cursor) > 19:
        raise invalid("cursor: is none that was given here", "cursor")
    return min(int(cursor), _LARGEST_CURSOR)


def _canceled() -> dict[str, Any]:
    return {"status": 409, "code": CANCELED, "message": "the prediction was canceled"}
