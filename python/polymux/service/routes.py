"""Which backends do an operation, and in which order they are tried."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.service.errors import status_error, unknown_model

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest

    #: Operation, variant and values of a request to what would make it possible; empty if nothing.
    Remedy = Callable[[str, str, Mapping[str, Any] | None], str]

#: Why a backend refuses work that another may do.
NOT_FOR_IT = (errors.NoBackendError, errors.BadRequestError, errors.OverloadedError)
#: What a client asks for that was told no model (`contracts.md` G.2.5).
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
    """All backends, and which of them do an operation, in which order.

    Args:
        backends: All there are.
        routes: Operation to backends, in the order in which they are tried. Default, and for
            operations that it does not name: every backend for all that it can do, in the order
            given.
        remedy: Says what would make an operation possible here. Default: nothing is said.

    Raises:
        InvalidRequestError: A route names a backend that does not exist, or cannot do it; two
            backends have one name.
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
                f"two engines or upstreams have the name {twice}: call one of them otherwise"
            )
        self._routes = _all_routes(backends) | dict(routes or {})
        #: The operations that the configuration leads nowhere.
        self._closed = {name for name, wanted in (routes or {}).items() if not wanted}
        for operation, wanted in self._routes.items():
            for route in wanted:
                backend = self.backends.get(route.backend)
                if backend is None or operation not in backend.operations:
                    raise errors.InvalidRequestError(
                        f"routes.{operation}: no engine or upstream of the name {route.backend} "
                        "does that"
                    )

    def backends_of(self, work: OperationRequest) -> list[Backend]:
        """The backends that can do it, in the order in which they are tried.

        Raises:
            NoBackendError: There is none, or none that has what this needs.
            BadRequestError: No chat model has that name, or it cannot do what is asked.
            OverloadedError: What could do it is left alone for a while (code ``engine_broken``).
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
        if found:
            if work.operation == "free_chat" and work.values.get("shuffle") is True:
                random.shuffle(found)
            return found
        if reasons:
            # What only has to wait can do it, which is more than the others can.
            later = (one for one in reasons if isinstance(one, errors.OverloadedError))
            raise next(later, reasons[0])
        raise self._nothing_for(work.operation, work.variant, work.values)

    def _nothing_for(
        self, operation: str, variant: str = "", values: Mapping[str, Any] | None = None
    ) -> errors.APIStatusError:
        if operation in self._closed:
            return status_error(
                errors.NoBackendError,
                f"nothing here does {operation}: routes.{operation} of the configuration is empty",
            )
        steps = "" if self._remedy is None else self._remedy(operation, variant, values)
        return status_error(
            errors.NoBackendError,
            f"nothing here can do {operation}: {steps}{'; ' if steps else ''}`polymux doctor` "
            "tells which engines there are and what each of them needs",
        )

    def check_operation(self, operation: str) -> None:
        """Before work on an operation is even sent: whether anything here can do it.

        Raises:
            NoBackendError: Nothing can, whatever it were.
        """
        if not self._routes.get(operation):
            raise self._nothing_for(operation)

    def _meant(self, work: OperationRequest) -> list[Route]:
        """The routes that a request leads to: before those that take any chat, what names it."""
        found = [one for one in self._routes.get(work.operation, ()) if self._is_meant(one, work)]
        if work.operation == "chat" and _selector(work) != _FIRST_MODEL:
            found.sort(key=self._takes_any)
        return found

    def _takes_any(self, route: Route) -> bool:
        return not route.models and self.backends[route.backend].models is None

    def _is_meant(self, route: Route, work: OperationRequest) -> bool:
        """Whether a request's model, a selector or a chat model, leads here."""
        model = _selector(work)
        if work.operation == "chat" and model == _FIRST_MODEL:
            return True
        if route.models:
            return model in route.models
        own = self.backends[route.backend].models
        return work.operation != "chat" or own is None or model in own

    def chat_models(self) -> list[str]:
        """The names that chats can ask for, in the order of their backends."""
        found: dict[str, None] = {}
        for route in self._routes.get("chat", ()):
            found |= dict.fromkeys(route.models or self.backends[route.backend].models or ())
        return list(found)

    async def listed_chat_models(self) -> list[str]:
        """The same, with what the first backend lists that takes any name: no other gets these."""
        found = dict.fromkeys(self.chat_models())
        for route in self._routes.get("chat", ()):
            if self._takes_any(route):
                found |= dict.fromkeys(await self.backends[route.backend].listed_models())
                break
        return list(found)

    def behind(self, backend: Backend, work: OperationRequest) -> list[Backend]:
        """The backends that come after one, whether they would refuse the work or not."""
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
