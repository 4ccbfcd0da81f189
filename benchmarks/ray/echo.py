"""An engine that does nothing, for measuring the overhead of calling it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token

FAMILY = "benchmarks.ray.echo:EchoEngine"


class EchoEngine(Engine):
    """An engine that answers immediately."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads nothing."""
        self.max_concurrency = int(options["max_concurrency"])
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:  # noqa: ARG002
        return Output({"response": "yes"})
