"""An engine on a cluster, as a server's service asks it."""

from __future__ import annotations

import asyncio
import logging
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.media.backend import MediaBackendBase
from polymux.ray.cluster import ray_module
from polymux.ray.messages import (
    PIECE_BYTES,
    Asked,
    Chunk,
    Done,
    Log,
    MadeFile,
    Piece,
    Preview,
    Progress,
    Refused,
    Sent,
)
from polymux.service.backend import Backend, Health
from polymux.service.errors import engine_failed, restored, status_error
from polymux.service.model import OperationResult, OutputFile, Upload

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from pathlib import Path

    from polymux.ray.deployment import Cluster
    from polymux.ray.messages import Event
    from polymux.service.chunks import Chunk as ChatPiece
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.service.temporary_files import TempFile

_log = logging.getLogger("polymux.ray")
_RETRY_AFTER_S = 5.0


class ClusterBackend(Backend):
    """An engine whose replicas are on a cluster.

    Args:
        cluster: Which.
        name: As configuration and logs call it.
        operations: What it can do.
        max_concurrency: How much of it all its replicas together can do at once.
    """

    def __init__(
        self, cluster: Cluster, name: str, operations: Sequence[str], *, max_concurrency: int
    ) -> None:
        self.name = name
        self.operations = frozenset(operations)
        self.max_concurrency = max_concurrency
        self._cluster = cluster
        self._health = Health("idle")

    def health(self) -> Health:
        """What became of the last request."""
        return self._health

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Has a replica do it."""
        results: list[OperationResult] = []
        async with aclosing(self._chunks(work, sink, results)) as chunks:
            async for _ in chunks:
                pass
        if not results:
            raise engine_failed(f"the engine {self.name} gave no answer")
        return results[0]

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[ChatPiece]:
        """Has a replica do it, and gives the pieces as they come."""
        return self._chunks(work, sink, [])

    async def _chunks(
        self, work: OperationRequest, sink: ProgressSink, results: list[OperationResult]
    ) -> AsyncGenerator[ChatPiece]:
        """Its pieces; the result is appended. If a replica ends before, it has a successor."""
        asked, files = await asyncio.to_thread(_packed, work)
        for last in (False, True):
            drafts: dict[int, TempFile] = {}
            begun = False
            try:
                async for event in self._events(asked, files):
                    found = await _taken(event, sink, drafts)
                    if found is None:
                        continue
                    begun = True
                    self._health = Health("ready")
                    if isinstance(found, OperationResult):
                        drafts.clear()
                        results.append(found)
                    else:
                        yield found
            except _ReplicaLostError as error:
                _log.error("a replica of the engine %s is gone: %s", self.name, error)
                if begun or last:
                    self._health = Health("failed", "its replica has ended")
                    raise engine_failed(f"the engine {self.name} ended at this") from None
            else:
                return
            finally:
                for draft in drafts.values():
                    draft.discard()

    async def _events(self, asked: Asked, files: dict[str, Sent]) -> AsyncGenerator[Event]:
        """What a replica tells; whoever stops to listen has it stop."""
        ray, refusals = ray_module(), ray_module("ray.serve.exceptions")
        answer = self._cluster.handle(self.name).work.remote(asked, files)
        ended = False
        try:
            async for event in answer:
                ended = isinstance(event, (Done, Refused))
                yield event
            ended = True
        except refusals.BackPressureError:
            ended = True
            raise status_error(
                errors.OverloadedError,
                f"too many requests wait for the engine {self.name}: ask again later",
                retry_after_s=_RETRY_AFTER_S,
            ) from None
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            ended = True
            raise _ReplicaLostError(type(error).__name__) from error
        except (refusals.DeploymentUnavailableError, refusals.ReplicaUnavailableError) as error:
            ended = True
            raise status_error(
                errors.OverloadedError,
                f"the cluster cannot start the engine {self.name} now; its log tells more",
                code="engine_broken",
                retry_after_s=_RETRY_AFTER_S,
            ) from error
        finally:
            if not ended:
                with suppress(Exception):
                    answer.cancel()

    async def close(self) -> None:
        """Ends its replicas."""
        await asyncio.to_thread(self._cluster.give_up, self.name)


class _ReplicaLostError(Exception):
    """The process of a replica, or its machine, is gone."""


def _packed(work: OperationRequest) -> tuple[Asked, dict[str, Sent]]:
    """Work as it travels."""
    values: dict[str, Any] = {}
    files: dict[str, Sent] = {}
    for name, value in work.values.items():
        if isinstance(value, Upload):
            pieces = _stored(value.path)
            files[name] = Sent(pieces, value.file_name, value.content_type, value.size_bytes)
        else:
            values[name] = value
    asked = Asked(work.operation, work.variant, work.model, values, work.given, work.request_id)
    return asked, files


def _stored(path: Path) -> list[Any]:
    """A file's pieces: the only one as it is, of several references into Ray's store."""
    ray = ray_module()
    with path.open("rb") as file:
        pieces: list[Any] = [file.read(PIECE_BYTES)]
        while data := file.read(PIECE_BYTES):
            if isinstance(pieces[0], bytes):
                pieces[0] = ray.put(pieces[0])
            pieces.append(ray.put(data))
    return pieces


async def _taken(
    event: Event, sink: ProgressSink, drafts: dict[int, TempFile]
) -> dict[str, Any] | OperationResult | None:
    """What an event says."""
    match event:
        case Log(line):
            sink.log(line)
        case Progress(progress):
            sink.report(progress)
        case Preview(data, content_type):
            sink.preview(data, content_type)
        case Piece(number, data):
            await _write(number, data, sink, drafts)
        case Chunk(data):
            return data
        case Done(output, version, metrics):
            return OperationResult(_made(output, drafts), version, dict(metrics))
        case Refused(told):
            raise restored(told)
    return None


async def _write(number: int, data: bytes, sink: ProgressSink, drafts: dict[int, TempFile]) -> None:
    """The next piece of a file that was made; there must be room for it here."""
    draft = drafts.get(number)
    if draft is None:
        draft = drafts[number] = sink.draft(len(data))

    def write() -> None:
        with draft.path.open("ab") as file:
            file.write(data)
            draft.reserve(file.tell())

    await asyncio.to_thread(write)


def _made(value: Any, drafts: dict[int, TempFile]) -> Any:
    """An output with files in the place of their numbers."""
    if isinstance(value, MadeFile):
        return OutputFile(drafts[value.number], value.content_type, value.file_name)
    if isinstance(value, list):
        return [_made(one, drafts) for one in value]
    if isinstance(value, dict):
        return {name: _made(one, drafts) for name, one in value.items()}
    return value


class ClusterMedia(MediaBackendBase, ClusterBackend):
    """Opens strangers' files on whatever machine has room: they travel there and back."""
