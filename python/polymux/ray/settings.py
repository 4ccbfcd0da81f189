"""What a server is told of its cluster: the table ``[ray]`` of its settings."""

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
    """The cluster of a server, and what its engines take of it.

    Attributes:
        address: ``"local"`` for a Ray of the server's own, ``"auto"`` for the cluster that its
            machine is part of, ``"HOST:PORT"``. Default: ``"auto"``.
        name: What the deployments' names begin with; two servers on one cluster have two. Default:
            ``"polymux"``.
        cpus: Processors of each replica. Default: 1.
        gpus: GPUs of each replica, or a part of one. Default: none.
        min_replicas: As many of each engine at least. Default: 1.
        max_replicas: As many at most. Default: 1.
        target_ongoing_requests: How many requests each replica shall have; with more, another one
            is started. Default: the engine's slots.
        queue: How many requests may wait for one engine's replicas before 503. Default: 32.
        here: Names of engines that stay on the server's own machine. Default: none.
        engines: Name of an engine to what is otherwise for it: a table of ``cpus``, ``gpus``,
            ``min_replicas``, ``max_replicas``, ``target_ongoing_requests`` and ``queue``.
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

    __post_init__ = check

    def problems(self) -> Iterator[str]:
        """What is wrong with the values together."""
        if self.max_replicas < self.min_replicas:
            yield (
                f"max_replicas={self.max_replicas}: must be min_replicas={self.min_replicas} or "
                "more"
            )
        for name in self.engines:
            self.of(name)

    def of(self, name: str) -> RaySettings:
        """The same as it is for one engine.

        Args:
            name: The engine's.

        Raises:
            InvalidRequestError: What is said for it is wrong.

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
