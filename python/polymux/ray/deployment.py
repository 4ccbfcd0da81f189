"""Engines of a server as Ray Serve deployments, and the backend that calls them.

Ray's HTTP proxy is not started: the server calls replicas through handles.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.media.backend import MediaBackendBase
from polymux.ray import cluster
from polymux.ray.messages import PIECE_BYTES, Done, MadeFile, Piece, Refused, Sent, SinkCall
from polymux.ray.replica import EngineReplica
from polymux.service.backend import Backend, Health
from polymux.service.errors import engine_failed, restored, status_error
from polymux.service.model import LOCAL, OperationResult, OutputFile, Upload

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Sequence
    from pathlib import Path

    from polymux.ray.messages import Event, Plan
    from polymux.ray.settings import RaySettings
    from polymux.service.chunks import Chunk as ChatPiece
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.service.temporary_files import TempFile

_log = logging.getLogger("polymux.ray")
_RETRY_AFTER_S = 5.0
#: Time that a replica has to finish its requests when it is stopped.
_GRACE_S = 10.0


class Cluster:
    """The Ray cluster of a server.

    Args:
        settings: Address of the cluster, and the resources of the engines.

    Raises:
        ConnectError: The cluster cannot be reached.
        MissingDependencyError: Ray is not installed.
    """

    def __init__(self, settings: RaySettings) -> None:
        self._settings = settings
        self._serve = cluster.ray_module("ray.serve")
        logging.getLogger("ray.serve").setLevel(logging.WARNING)
        self._is_own = cluster.connect(settings.address)
        self._serve.start(proxy_location="Disabled")
        self._lock = threading.Lock()
        self._handles: dict[str, Any] = {}

    def has(self, name: str) -> bool:
        """Whether an engine runs on the cluster rather than on this machine."""
        return name not in self._settings.here

    def deploy(self, plan: Plan, *, media: bool = False) -> Backend:
        """Deploy an engine without waiting for its replicas; requests wait until they run.

        Args:
            plan: The engine.
            media: Whether this engine opens untrusted media files. Default: False.
        """
        own = self._settings.of(plan.name)
        deployment = self._serve.deployment(
            name=plan.name,
            ray_actor_options={"num_cpus": own.cpus, "num_gpus": own.gpus or 0},
            max_ongoing_requests=plan.max_concurrency,
            max_queued_requests=own.queue,
            graceful_shutdown_timeout_s=_GRACE_S,
            autoscaling_config={
                "min_replicas": own.min_replicas,
                "max_replicas": own.max_replicas,
                "initial_replicas": own.min_replicas,
                "target_ongoing_requests": own.target_ongoing_requests or plan.max_concurrency,
            },
        )(EngineReplica)
        target = self._serve.RunTarget(
            deployment.bind(plan), name=self._application(plan.name), route_prefix=None
        )
        [handle] = self._serve.run_many([target], wait_for_applications_running=False)
        self._handles[plan.name] = handle.options(stream=True)
        kind = ClusterMedia if media else ClusterBackend
        max_concurrency = plan.max_concurrency * own.max_replicas
        return kind(self, plan.name, plan.operations, max_concurrency=max_concurrency)

    def handle(self, name: str) -> Any:
        """Return the Ray Serve handle of an engine; its responses are generators."""
        return self._handles[name]

    def _application(self, name: str) -> str:
        return f"{self._settings.name}-{name}"

    def give_up(self, name: str) -> None:
        """Stop the replicas of an engine. After the last engine, disconnect from the cluster."""
        with self._lock:
            handle = self._handles.pop(name, None)
            if handle is None:
                return
            with suppress(Exception):  # The cluster may already have ended.
                # Otherwise the handle's threads would keep calling a cluster that we have left.
                handle.shutdown()
                self._serve.delete(self._application(name))
            if not self._handles and self._is_own:
                cluster.disconnect()


class ClusterBackend(Backend):
    """An engine whose replicas run on a cluster.

    Args:
        cluster: The cluster.
        name: Name of the engine in settings and logs.
        operations: Operations that the engine supports.
        max_concurrency: Maximum concurrent operations of all replicas together.
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
        """Return the health according to the last request."""
        return self._health

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        results: list[OperationResult] = []
        async with aclosing(self._chunks(work, sink, results)) as chunks:
            async for _ in chunks:
                pass
        if not results:
            raise engine_failed(f"engine {self.name} returned no result")
        return results[0]

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[ChatPiece]:
        return self._chunks(work, sink, [])

    async def _chunks(
        self, work: OperationRequest, sink: ProgressSink, results: list[OperationResult]
    ) -> AsyncGenerator[ChatPiece]:
        """Yield chunks, and append the result to `results`.

        If a replica dies before the first event, the request is sent once more.
        """
        asked = await asyncio.to_thread(_packed, work)
        for last in (False, True):
            drafts: dict[int, TempFile] = {}
            begun = False
            try:
                async for event in self._events(asked):
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
                _log.error("lost a replica of engine %s: %s", self.name, error)
                if begun or last:
                    self._health = Health("failed", "its replica crashed")
                    raise engine_failed(f"engine {self.name} crashed during this request") from None
            else:
                return
            finally:
                for draft in drafts.values():
                    draft.discard()

    async def _events(self, asked: OperationRequest) -> AsyncGenerator[Event]:
        """Yield the events of a replica. Closing the generator cancels the request."""
        ray, refusals = cluster.ray_module(), cluster.ray_module("ray.serve.exceptions")
        answer = self._cluster.handle(self.name).work.remote(asked)
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
                f"engine {self.name} is overloaded: too many waiting requests. Try again later",
                retry_after_s=_RETRY_AFTER_S,
            ) from None
        except (ray.exceptions.RayActorError, ray.exceptions.ObjectLostError) as error:
            ended = True
            raise _ReplicaLostError(type(error).__name__) from error
        except (refusals.DeploymentUnavailableError, refusals.ReplicaUnavailableError) as error:
            ended = True
            raise status_error(
                errors.OverloadedError,
                f"the Ray cluster cannot start engine {self.name}. See Ray's logs",
                code="engine_broken",
                retry_after_s=_RETRY_AFTER_S,
            ) from error
        finally:
            if not ended:
                with suppress(Exception):
                    answer.cancel()

    async def close(self) -> None:
        """Stop the replicas."""
        await asyncio.to_thread(self._cluster.give_up, self.name)


class _ReplicaLostError(Exception):
    """The process or the machine of a replica has died."""


def _packed(work: OperationRequest) -> OperationRequest:
    """Prepare a request for sending: files become `Sent`, objects of this process are dropped."""
    values: dict[str, Any] = {}
    for name, value in work.values.items():
        if isinstance(value, Upload):
            pieces = _stored(value.path)
            value = Sent(pieces, value.file_name, value.content_type, value.size_bytes)
        values[name] = value
    return replace(work, values=values, caller=LOCAL, asked=None, prepare=None)


def _stored(path: Path) -> list[Any]:
    """A file's chunks: a single one as bytes, several as references to Ray's object store."""
    ray = cluster.ray_module()
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
    """Handle an event of a replica; return a chunk or the result, else None."""
    match event:
        case SinkCall(method, arguments):
            getattr(sink, method)(*arguments)
        case Piece(number, data):
            await _write(number, data, sink, drafts)
        case Done(output, version, metrics, engine_model):
            return OperationResult(_made(output, drafts), version, dict(metrics), engine_model)
        case Refused(error):
            raise restored(error)
        case _:
            return event
    return None


async def _write(number: int, data: bytes, sink: ProgressSink, drafts: dict[int, TempFile]) -> None:
    """Append a chunk to an output file, and reserve space for it."""
    draft = drafts.get(number)
    if draft is None:
        draft = drafts[number] = sink.draft(len(data))

    def write() -> None:
        with draft.path.open("ab") as file:
            file.write(data)
            draft.reserve(file.tell())

    await asyncio.to_thread(write)


def _made(value: Any, drafts: dict[int, TempFile]) -> Any:
    """Replace file numbers in an output with the files."""
    if isinstance(value, MadeFile):
        return OutputFile(drafts[value.number], value.content_type, value.file_name)
    if isinstance(value, list):
        return [_made(one, drafts) for one in value]
    if isinstance(value, dict):
        return {name: _made(one, drafts) for name, one in value.items()}
    return value


class ClusterMedia(MediaBackendBase, ClusterBackend):
    """The media engine on a cluster: untrusted files are sent to a replica and back."""
