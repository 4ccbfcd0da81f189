"""Calls that a server does, for a client on this machine."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.cli.answers import files_of
from polymux.mcp.answers import MadeFile, Outcome
from polymux.mcp.tools import CHATS
from polymux.service.errors import refusal

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Sequence

    from polymux.client.async_client import AsyncClient
    from polymux.client.responses import Prediction
    from polymux.mcp.executor import Call, Desk
    from polymux.mcp.files import Input
    from polymux.media.media_file import MediaFile
    from polymux.service.model import Caller

#: Files whose addresses are remembered; of more, the oldest are forgotten.
_MOST_FILES = 1000


class ServerDesk:
    """Does calls by a server of the interface.

    Args:
        client: Asks it; files are sent as they are read.
    """

    def __init__(self, client: AsyncClient) -> None:
        """Nothing is done yet."""
        self._client = client
        self._made: dict[str, MadeFile] = {}

    async def call(self, call: Call) -> Outcome:
        """Does one; see `Desk.call`."""
        given = call.arguments
        values: dict[str, Any] = dict(given.values)
        extra = None
        if given.operation.name in CHATS:
            # Those pass on what the contract does not know.
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
                on_progress=progress.told,
            )
        except (errors.APIStatusError, errors.InvalidRequestError):
            raise
        except errors.PolymuxError as error:
            # Of the way to the server: the words are for whoever runs this.
            raise refusal(errors.InternalServerError, str(error), code=error.code) from None
        files = [self._kept(file) for _, file in files_of(result)]
        return Outcome(_value(result), files)

    def _kept(self, file: MediaFile) -> MadeFile:
        uri = str(file)
        name = uri.partition("?")[0].rpartition("/")[2]
        made = MadeFile(uri, name, file.content_type, None, partial(_read, file))
        self._made[uri] = made
        while len(self._made) > _MOST_FILES:
            self._made.pop(next(iter(self._made)))
        return made

    async def made(
        self, caller: Caller, cursor: str | None
    ) -> tuple[Sequence[MadeFile], str | None]:
        """What was made since this began, newest first; see `Desk.made`."""
        del caller, cursor  # There is one of both.
        return list(reversed(self._made.values())), None

    async def find(self, caller: Caller, uri: str) -> MadeFile | None:
        """What was made since this began, and nothing else of the server; see `Desk.find`."""
        del caller
        return self._made.get(uri)


@asynccontextmanager
async def server_desk(client: AsyncClient) -> AsyncIterator[Desk]:
    """Calls by a server; at the end the client is closed."""
    async with client:
        yield ServerDesk(client)


class _Progress:
    """Hands on how much of a job is done."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._told = -1.0
        self._tasks: set[asyncio.Task[None]] = set()

    def told(self, job: Prediction) -> None:
        """Of a job that goes on. Called on the event loop, and waits for nothing."""
        progress = job.extra.get("progress")
        if not isinstance(progress, (int, float)) or not progress > self._told:
            return
        self._told = float(progress)
        lines = job.logs.splitlines()
        task = asyncio.ensure_future(self._tell(self._told, lines[-1] if lines else None))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _tell(self, progress: float, message: str | None) -> None:
        await self._call.tell(progress, message)


def _content(one: Input) -> Any:
    if one.path is not None:
        return one.path
    return one.file_name, one.data, one.content_type or None


def _value(result: Any) -> Any:
    from polymux.media.media_file import MediaFile

    return {"response": str(result)} if isinstance(result, MediaFile) else result.json()


async def _read(file: Any, most_bytes: int) -> bytes | None:
    try:
        data: bytes = await file.aread(limit_bytes=most_bytes)
    except errors.AnswerTooLargeError:
        return None
    return data
