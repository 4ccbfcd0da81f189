"""Routes: which backends run an operation, and in which order."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import did_you_mean, sentences, shown
from polymux.service.errors import status_error, unknown_model
from polymux.service.model import ModelChoice

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest

    #: Maps operation, variant and values of a request to instructions that enable it, or empty.
    Remedy = Callable[[str, str, Mapping[str, Any] | None], str]

#: Errors of `Backend.refuse`, after which another backend is tried.
NOT_FOR_IT = (errors.NoBackendError, errors.BadRequestError, errors.OverloadedError)
#: Model name of clients that select no model (`contracts.md` G.2.5).
_FIRST_MODEL = "default"


@dataclass(frozen=True, slots=True)
class Route:
    """A backend for an operation.

    Attributes:
        backend: Name of an engine or upstream, or another backend.
        models: Chat models, or model variants, that this backend runs. Default: all.
    """

    backend: str
    models: tuple[str, ...] = ()


class Routes:
    """Selects the backends of a request.

    Args:
        routes: Operation to backends, in the order of trying. Default, also for missing
            operations: every backend that supports the operation, in the given order.
        remedy: Returns instructions that enable an operation. Default: none.

    Raises:
        InvalidRequestError: A route names an unknown backend or one that does not support the
            operation, or two backends have the same name.
    """

    def __init__(
        self,
        backends: Sequence[Backend],
        routes: Mapping[str, Sequence[Route]] | None = None,
        remedy: Remedy | None = None,
    ) -> None:
        self._remedy = remedy
        self.backends = {one.name: one for one in backends}
        if len(self.backends) < len(backends):
            names = [one.name for one in backends]
            twice = next(name for name in names if names.count(name) > 1)
            raise errors.InvalidRequestError(
                f"two engines or upstreams have the name {twice}. Rename one of them"
            )
        self._routes = _all_routes(backends) | dict(routes or {})
        #: Operations that the configuration disables by an empty route.
        self._closed = {name for name, wanted in (routes or {}).items() if not wanted}
        for operation, wanted in self._routes.items():
            for route in wanted:
                backend = self.backends.get(route.backend)
                if backend is None or operation not in backend.operations:
                    known = [one.name for one in backends if operation in one.operations]
                    raise errors.InvalidRequestError(
                        f"routes.{operation}: not an engine or upstream that supports {operation} "
                        f"(got {route.backend}, allowed: {', '.join(known) or 'none'})"
                    )

    def backends_of(self, work: OperationRequest) -> list[Backend]:
        """Return the backends that can run a request, in the order of trying.

        Fallbacks are left out if another backend supports the request, even if that backend is
        temporarily disabled.

        Raises:
            NoBackendError: No backend supports it, or a model or component is missing.
            BadRequestError: The chat model is unknown, or does not support the request.
            OverloadedError: The backend is temporarily disabled (code ``engine_broken``).
        """
        routes = self._routes.get(work.operation, ())
        named = self._meant(work)
        if routes and not named and work.operation == "chat":
            raise unknown_model(_selector(work), self.chat_models())
        found: list[Backend] = []
        reasons: list[errors.APIStatusError] = []
        for route in named:
            backend = self.backends[route.backend]
            try:
                backend.refuse(work)
            except NOT_FOR_IT as reason:
                reasons.append(reason)
            else:
                found.append(backend)
        # Prefer a temporary reason: that backend supports the request.
        temporary = [one for one in reasons if isinstance(one, errors.OverloadedError)]
        preferred = [one for one in found if not one.is_fallback(work)]
        if preferred or temporary:
            found = preferred
        if found:
            if work.operation == "free_chat" and work.values.get("shuffle") is True:
                random.shuffle(found)
            return found
        if reasons:
            raise (temporary or reasons)[0]
        raise self._nothing_for(work.operation, work.variant, work.values)

    def _nothing_for(
        self, operation: str, variant: str = "", values: Mapping[str, Any] | None = None
    ) -> errors.APIStatusError:
        if operation in self._closed:
            return status_error(
                errors.NoBackendError,
                f"{operation} is disabled: routes.{operation} in the configuration is empty",
            )
        steps = "" if self._remedy is None else self._remedy(operation, variant, values)
        return status_error(
            errors.NoBackendError,
            sentences(
                f"no engine or upstream is configured for {operation}",
                steps,
                "Run 'polymux doctor' to see what each engine needs",
            ),
        )

    def check_operation(self, operation: str) -> None:
        """Check whether any backend supports an operation, before a request body is read.

        Raises:
            NoBackendError: No backend supports it.
        """
        if not self._routes.get(operation):
            raise self._nothing_for(operation)

    def _meant(self, work: OperationRequest) -> list[Route]:
        """Return the routes of a request; explicit names before routes that accept any chat."""
        found = [one for one in self._routes.get(work.operation, ()) if self._is_meant(one, work)]
        if work.operation == "chat" and _selector(work) != _FIRST_MODEL:
            found.sort(key=self._takes_any)
        return found

    def _takes_any(self, route: Route) -> bool:
        return not route.models and self.backends[route.backend].models is None

    def _is_meant(self, route: Route, work: OperationRequest) -> bool:
        """Check whether the model of a request, a selector or a chat model, uses this route."""
        model = _selector(work)
        if work.operation == "chat" and model == _FIRST_MODEL:
            return True
        if work.engine_model:
            named = self.backends[route.backend].named_models(work.operation)
            if work.engine_model not in named:
                return False
        if route.models:
            return model in route.models
        own = self.backends[route.backend].models
        return work.operation != "chat" or own is None or model in own

    def named_models(self, operation: str) -> dict[str, ModelChoice]:
        """Return the installed models that requests of an operation can select by their names."""
        found: dict[str, ModelChoice] = {}
        for route in self._routes.get(operation, ()):
            for name, choice in self.backends[route.backend].named_models(operation).items():
                found.setdefault(name, choice)
        return found

    def choose_model(self, operation: str, model: str | None) -> ModelChoice:
        """Return the choice of a request's model: of the contract, or the name of an installed one.

        Raises:
            BadRequestError: The model is unknown (code ``model_not_found``).
        """
        known = [one.model for one in contract.operation(operation).variants if one.model]
        if model is None or not known or model.partition(":")[0] in known:
            return ModelChoice(model)
        named = self.named_models(operation)
        if model in named:
            return named[model]
        raise status_error(
            errors.BadRequestError,
            f"{operation}: unknown model {shown(model)} (known: {', '.join([*known, *named])})"
            f"{did_you_mean(model, [*named])}",
            code="model_not_found",
            param="model",
        )

    def chat_models(self) -> list[str]:
        """Return the names of chat models in the order of their backends."""
        found: dict[str, None] = {}
        for route in self._routes.get("chat", ()):
            found |= dict.fromkeys(route.models or self.backends[route.backend].models or ())
        return list(found)

    async def listed_chat_models(self) -> list[str]:
        """Like `chat_models`, plus the list of the first backend that accepts any name."""
        found = dict.fromkeys(self.chat_models())
        for route in self._routes.get("chat", ()):
            if self._takes_any(route):
                found |= dict.fromkeys(await self.backends[route.backend].listed_models())
                break
        return list(found)

    def behind(self, backend: Backend, work: OperationRequest) -> list[Backend]:
        """Return the backends after the given one, including those that would reject the work."""
        names = [route.backend for route in self._meant(work)]
        return [self.backends[name] for name in names[names.index(backend.name) + 1 :]]


def _selector(work: OperationRequest) -> str:
    if work.model:
        return work.model
    named = work.values.get("model")
    return named if isinstance(named, str) else ""


def _all_routes(backends: Sequence[Backend]) -> dict[str, Sequence[Route]]:
    routes: dict[str, list[Route]] = {}
    for backend in backends:
        for operation in sorted(backend.operations):
            routes.setdefault(operation, []).append(Route(backend.name))
    return dict(routes)
