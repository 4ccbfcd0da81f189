"""An engine that does nothing: what is measured is the way to it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token

FAMILY = "benchmarks.ray.echo:EchoEngine"


class EchoEngine(Engine):
    """Answers at once."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads nothing."""
        self.max_concurrency = int(options["max_concurrency"])
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:  # noqa: ARG002
        """The same answer always."""
        return Output({"response": "yes"})
