"""The interface of backends, which run operations: engines of this machine, or upstreams."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from polymux import errors
from polymux.service.errors import status_error
from polymux.service.model import Estimate

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import AbstractAsyncContextManager

    from polymux.service.chunks import Chunk
    from polymux.service.model import (
        ModelChoice,
        OperationRequest,
        OperationResult,
        ProgressSink,
    )
    from polymux.service.routes import Routes
    from polymux.service.store import Store


@dataclass(frozen=True, slots=True)
class Health:
    """The state of a backend.

    Attributes:
        state: ``idle`` (nothing loaded), ``loading``, ``ready``, ``failed``.
        detail: For people; never contains a path or a key.
    """

    state: str
    detail: str = ""


class ServiceAccess(Protocol):
    """The part of the service that its backends may use."""

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
    """Runs some operations. Lives on the service's event loop.

    To cancel a backend, cancel the task that runs it. The backend must stop everything it started
    before the `CancelledError` propagates.

    Attributes:
        name: Its name in configuration and logs.
        operations: Operations that it supports.
        max_concurrency: Maximum number of concurrent requests.
        models: Names of its chat models; None if it accepts any name.
        is_upstream: Whether another server does the work. Its failures return 502 instead of 500.
    """

    name: str
    operations: frozenset[str]
    max_concurrency: int = 1
    models: tuple[str, ...] | None = None
    is_upstream: bool = False

    def bind(self, service: ServiceAccess) -> None:  # noqa: B027 - most backends do not need it
        """Set the service of this backend, for work that needs other operations."""

    def refuse(self, work: OperationRequest) -> None:  # noqa: B027 - most accept all requests
        """Reject a request that this backend cannot run.

        Raises:
            NoBackendError: A model or a component is missing.
            BadRequestError: The request is not supported by this backend.
            OverloadedError: The backend is temporarily unavailable.
        """

    def is_fallback(self, work: OperationRequest) -> bool:  # noqa: ARG002 - for subclasses
        """Whether this backend may only run the request if no other backend can. Default: no."""
        return False

    async def estimate(self, work: OperationRequest) -> Estimate:  # noqa: ARG002 - for subclasses
        """Estimate time and memory of a request. Default: unknown."""
        return Estimate()

    def prepared(
        self,
        work: OperationRequest,  # noqa: ARG002 - most need nothing
        sink: ProgressSink,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        """Prepare a request before it takes a place, such as by downloading URL inputs.

        Returns:
            The context of the request that `run` gets. Default: None, for the same request.
        """
        return None

    def opened(
        self,
        work: OperationRequest,  # noqa: ARG002 - most need nothing
        sink: ProgressSink,  # noqa: ARG002
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        """Open the files of a request when it has its place, before `run` or `stream`.

        So waiting and rejected requests need no open files.

        Returns:
            The context of the request that `run` or `stream` gets. Default: None, for the same one.
        """
        return None

    def window_tokens(self) -> int | None:
        """Return the context window of its chat model. Default: unknown."""
        return None

    async def listed_models(self) -> tuple[str, ...]:
        """Return names of chat models if `models` is None. Default: unknown."""
        return ()

    def named_models(self, operation: str) -> Mapping[str, ModelChoice]:  # noqa: ARG002 - optional
        """Return the models by whose names requests select this backend. Default: none.

        Chats use `models` instead.
        """
        return {}

    @abstractmethod
    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        """Run the whole request."""

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[Chunk]:  # noqa: ARG002
        """Run a chat and yield its chunks."""
        raise status_error(
            errors.NoBackendError,
            f"stream: not supported by {self.name}. Omit this field",
            param="stream",
        )

    def health(self) -> Health:
        """Return the state. Default: ready."""
        return Health("ready")

    @property
    def is_loaded(self) -> bool:
        """Whether `unload` would free something. Default: no."""
        return False

    @property
    def resident_bytes(self) -> int | None:
        """Memory of its process. Default: None, for a backend without a process."""
        return None

    async def unload(self) -> bool:
        """Free the memory of loaded models, unless busy; the next request loads them again.

        Returns:
            Whether nothing is loaded now. Default: True.
        """
        return True

    async def close(self) -> None:  # noqa: B027 - most backends hold no resources
        """Release all resources; no work is running anymore."""


class DelegatingBackend(Backend):
    """A backend that prepares requests for another backend and delegates everything else."""

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

    def is_fallback(self, work: OperationRequest) -> bool:
        return self._inner.is_fallback(work)

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

    def named_models(self, operation: str) -> Mapping[str, ModelChoice]:
        return self._inner.named_models(operation)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        return await self._inner.run(work, sink)

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[Chunk]:
        return self._inner.stream(work, sink)

    def health(self) -> Health:
        return self._inner.health()

    @property
    def is_loaded(self) -> bool:
        return self._inner.is_loaded

    @property
    def resident_bytes(self) -> int | None:
        return self._inner.resident_bytes

    async def unload(self) -> bool:
        return await self._inner.unload()

    async def close(self) -> None:
        await self._inner.close()
