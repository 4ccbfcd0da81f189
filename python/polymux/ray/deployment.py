"""The engines of a server as deployments of Ray Serve, and how its service asks them.

No proxy of Ray's is started: a replica is asked by handle.
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
from polymux.ray.messages import PIECE_BYTES, Done, MadeFile, Piece, Refused, Sent, Told
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
#: How long a replica that is no longer wanted may go on with what it does.
_GRACE_S = 10.0


class Cluster:
    """The cluster of a server.

    Args:
        settings: Which, and what engines take of it.

    Raises:
        ConnectError: There is no such cluster.
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
        """Whether an engine is for the cluster."""
        return name not in self._settings.here

    def deploy(self, plan: Plan, *, media: bool = False) -> Backend:
        """Deploys an engine; its replicas come in their time, and requests wait for them.

        Args:
            plan: The engine.
            media: Whether it is the one that opens strangers' files. Default: False.
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
        """What an engine is asked by; its answers come as generators."""
        return self._handles[name]

    def _application(self, name: str) -> str:
        return f"{self._settings.name}-{name}"

    def give_up(self, name: str) -> None:
        """Ends the replicas of an engine; with the last, the server leaves the cluster."""
        with self._lock:
            handle = self._handles.pop(name, None)
            if handle is None:
                return
            with suppress(Exception):  # The cluster may be gone before us.
                # Its threads would go on, and ask a cluster that this process has left.
                handle.shutdown()
                self._serve.delete(self._application(name))
            if not self._handles and self._is_own:
                cluster.disconnect()


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
                _log.error("a replica of the engine %s is gone: %s", self.name, error)
                if begun or last:
                    self._health = Health("failed", "its replica has ended")
                    raise engine_failed(f"the engine {self.name} ended at this") from None
            else:
                return
            finally:
                for draft in drafts.values():
                    draft.discard()

    async def _events(self, asked: OperationRequest) -> AsyncGenerator[Event]:
        """What a replica tells; whoever stops to listen has it stop."""
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


def _packed(work: OperationRequest) -> OperationRequest:
    """Work as it travels: its files as `Sent`, and nothing that only this process can use."""
    values: dict[str, Any] = {}
    for name, value in work.values.items():
        if isinstance(value, Upload):
            pieces = _stored(value.path)
            value = Sent(pieces, value.file_name, value.content_type, value.size_bytes)
        values[name] = value
    return replace(work, values=values, caller=LOCAL, asked=None, prepare=None)


def _stored(path: Path) -> list[Any]:
    """A file's pieces: the only one as it is, of several references into Ray's store."""
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
    """What an event says."""
    match event:
        case Told(method, arguments):
            getattr(sink, method)(*arguments)
        case Piece(number, data):
            await _write(number, data, sink, drafts)
        case Done(output, version, metrics):
            return OperationResult(_made(output, drafts), version, dict(metrics))
        case Refused(told):
            raise restored(told)
        case _:
            return event
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
