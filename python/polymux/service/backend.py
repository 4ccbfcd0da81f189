"""What can do work: an engine of this machine, or an upstream."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from polymux import errors
from polymux.service.errors import status_error
from polymux.service.model import Estimate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from contextlib import AbstractAsyncContextManager

    from polymux.service.chunks import Chunk
    from polymux.service.model import OperationRequest, OperationResult, ProgressSink
    from polymux.service.routes import Routes
    from polymux.service.store import Store


@dataclass(frozen=True, slots=True)
class Health:
    """How a backend is.

    Attributes:
        state: ``idle`` (nothing loaded), ``loading``, ``ready``, ``failed``.
        detail: What people should know; never a path or a key.
    """

    state: str
    detail: str = ""


class ServiceAccess(Protocol):
    """What backends may ask of the service that they belong to."""

    store: Store
    routes: Routes

    def backends_of(self, work: OperationRequest) -> list[Backend]: ...

    async def call(
        self, work: OperationRequest, sink: ProgressSink | None = None
    ) -> OperationResult: ...

    async def do_behind(
        self, backend: Backend, work: OperationRequest, sink: ProgressSink
    ) -> OperationResult | None: ...


class Backend(ABC):
    """Does the work of some operations. Lives on the service's event loop.

    A backend is cancelled by cancelling the task that runs it: it stops what it began before the
    `CancelledError` leaves it.

    Attributes:
        name: As configuration and logs call it.
        operations: What it can do.
        max_concurrency: How much of it can be done at once.
        models: What requests call its chat model; None where it takes any name.
        is_upstream: Whether others do the work: what goes wrong there is theirs (502), not ours.
    """

    name: str
    operations: frozenset[str]
    max_concurrency: int = 1
    models: tuple[str, ...] | None = None
    is_upstream: bool = False

    def bind(self, service: ServiceAccess) -> None:  # noqa: B027 - most ask nobody else
        """Tells it the service that it is of: for work that asks for other work."""

    def refuse(self, work: OperationRequest) -> None:  # noqa: B027 - most refuse nothing
        """Raises where this work is not for it.

        Raises:
            NoBackendError: It lacks a model, or a part of itself.
            BadRequestError: What is asked for is nothing that it can do.
            OverloadedError: It can do nothing for a while.
        """

    async def estimate(self, work: OperationRequest) -> Estimate:  # noqa: ARG002 - for those who know
        """What the work will take. Default: nobody knows."""
        return Estimate()

    def prepared(
        self,
        work: OperationRequest,  # noqa: ARG002 - most need nothing
        sink: ProgressSink,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        """What comes before a place at work, as it takes none: files are fetched from addresses.

        Returns:
            What gives the work that `run` gets; None where that is the same, the default.
        """
        return None

    def opened(
        self,
        work: OperationRequest,  # noqa: ARG002 - most need nothing
        sink: ProgressSink,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        """Opens the files of the work at its place, before `run` or `stream`.

        A waiting request costs no opened files, and a refused one no work.

        Returns:
            The context of the work that `run` or `stream` gets. Default: None, for the same work.
        """
        return None

    def window_tokens(self) -> int | None:
        """How much its chat model reads and writes in one chat. Default: nobody knows."""
        return None

    async def listed_models(self) -> tuple[str, ...]:
        """What chats may call its models, where it takes any name. Default: nobody knows."""
        return ()

    @abstractmethod
    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Does it whole."""

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[Chunk]:  # noqa: ARG002
        """Does it in pieces: chunks of a chat."""
        raise status_error(
            errors.NoBackendError,
            f"{self.name} gives no streams: ask without stream",
            param="stream",
        )

    def health(self) -> Health:
        """How it is. Default: ready."""
        return Health("ready")

    @property
    def is_loaded(self) -> bool:
        """Whether it holds something that `unload` would give back. Default: no."""
        return False

    async def unload(self) -> bool:
        """Gives back the memory of what it has loaded, unless it works; the next work loads again.

        Returns:
            Whether nothing is loaded now. Default: nothing ever is.
        """
        return True

    async def close(self) -> None:  # noqa: B027 - most hold nothing
        """Gives up what it holds; no work runs any more."""


class DelegatingBackend(Backend):
    """A backend that prepares work for another one; what it does not override, that one does."""

    def __init__(self, inner: Backend) -> None:
        self.name = inner.name
        self.operations = inner.operations
        self.max_concurrency = inner.max_concurrency
        self.models = inner.models
        self.is_upstream = inner.is_upstream
        self._inner = inner

    def bind(self, service: ServiceAccess) -> None:
        self._inner.bind(service)

    def refuse(self, work: OperationRequest) -> None:
        self._inner.refuse(work)

    async def estimate(self, work: OperationRequest) -> Estimate:
        return await self._inner.estimate(work)

    def prepared(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        return self._inner.prepared(work, sink)

    def opened(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        return self._inner.opened(work, sink)

    def window_tokens(self) -> int | None:
        return self._inner.window_tokens()

    async def listed_models(self) -> tuple[str, ...]:
        return await self._inner.listed_models()

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        return await self._inner.run(work, sink)

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[Chunk]:
        return self._inner.stream(work, sink)

    def health(self) -> Health:
        return self._inner.health()

    @property
    def is_loaded(self) -> bool:
        return self._inner.is_loaded

    async def unload(self) -> bool:
        return await self._inner.unload()

    async def close(self) -> None:
        await self._inner.close()
