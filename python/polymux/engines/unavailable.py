"""The place of an engine that was asked for and has no model: it says what to do."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

from polymux import errors
from polymux.models.roles import ROLES, needed_roles, why_missing
from polymux.service.backend import Backend, Health
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.service.model import OperationRequest, OperationResult, ProgressSink


class UnavailableBackend(Backend):
    """Refuses all work.

    Args:
        name: As configuration and logs call it.
        operations: What it could do.
        problem: Why it cannot, and what to do.
        models: What requests would call its model; None for whatever they say.
    """

    def __init__(
        self,
        name: str,
        operations: Sequence[str],
        problem: str,
        models: Sequence[str] | None = None,
    ) -> None:
        self.name = name
        self.operations = frozenset(operations)
        self.models = None if models is None else tuple(models)
        self._problem = problem

    def refuse(self, work: OperationRequest) -> NoReturn:
        """All of it.

        Raises:
            NoBackendError: Always; it names the model that this very request needs, where that
                follows from it.
        """
        roles = needed_roles(work.operation, work.variant, work.values)
        known = [why_missing(role) for role in roles if role in ROLES]
        raise status_error(errors.NoBackendError, "; ".join(known) or self._problem)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:  # noqa: ARG002
        """Raises, as `refuse`."""
        self.refuse(work)

    def health(self) -> Health:
        """That it has failed, and why."""
        return Health("failed", self._problem)
