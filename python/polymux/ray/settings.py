"""The ``[ray]`` table of the server settings."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from polymux._util.settings import TableReader, check, rule, rules_of
from polymux.ray.cluster import check_address

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_OWN = ("cpus", "gpus", "min_replicas", "max_replicas", "target_ongoing_requests", "queue")


@dataclass(frozen=True, slots=True)
class RaySettings:
    """The cluster of a server, and the resources of its engines.

    Attributes:
        address: Cluster to use: ``"auto"`` for the one of this machine, ``"local"`` to start one
            for this server, or ``"HOST:PORT"``. Default: ``"auto"``.
        name: Prefix of the deployments' names, different for each server on a cluster. Default:
            ``"polymux"``.
        cpus: Processors of each replica. Default: 1.
        gpus: GPUs of each replica; fractions are allowed. Default: none.
        min_replicas: Minimum number of replicas of each engine. Default: 1.
        max_replicas: Maximum number of replicas of each engine. Default: 1.
        target_ongoing_requests: Requests per replica above which Ray starts another replica.
            Default: the engine's `max_concurrency`.
        queue: Maximum number of requests that wait in Ray for one engine. Default: 32.
        here: Engines that run on the server's machine. Default: none.
        engines: Settings for single engines, such as ``[ray.engines.chat]``: ``cpus``, ``gpus``,
            ``min_replicas``, ``max_replicas``, ``target_ongoing_requests`` and ``queue``. Default:
            none.
    """

    address: str = field(default="auto", metadata=rule(parse=check_address))
    name: str = "polymux"
    cpus: float = 1.0
    gpus: float | None = None
    min_replicas: int = 1
    max_replicas: int = field(default=1, metadata=rule(min=1))
    target_ongoing_requests: float | None = None
    queue: int = 32
    here: tuple[str, ...] = ()
    engines: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        check(self)

    def problems(self) -> Iterator[str]:
        """Yield the problems between several settings."""
        if self.max_replicas < self.min_replicas:
            yield (
                f"max_replicas={self.max_replicas}: must be at least min_replicas "
                f"({self.min_replicas})"
            )
        for name in self.engines:
            self.of(name)

    def of(self, name: str) -> RaySettings:
        """Return the settings of one engine.

        Args:
            name: Name of the engine.

        Raises:
            InvalidRequestError: The engine's table is invalid.

        Example:
            >>> from polymux.ray.settings import RaySettings
            >>> settings = RaySettings(engines={"chat": {"gpus": 0.5, "max_replicas": 4}})
            >>> settings.of("chat").gpus, settings.of("speech").max_replicas
            (0.5, 1)
        """
        rules = {one: found for one, found in rules_of(RaySettings).items() if one in _OWN}
        reader = TableReader()
        found = reader.values(rules, self.engines.get(name, {}), f"engines.{name}.")
        reader.end()
        return replace(self, engines={}, **found)
