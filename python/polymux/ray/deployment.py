"""The engines of a server as deployments of Ray Serve, without a proxy of Ray's."""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from polymux.ray import cluster
from polymux.ray.backend import ClusterBackend, ClusterMedia
from polymux.ray.replica import EngineReplica

if TYPE_CHECKING:
    from polymux.ray.messages import Plan
    from polymux.ray.settings import RaySettings
    from polymux.service.backend import Backend

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
