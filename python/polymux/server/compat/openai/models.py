"""``GET /v1/models``: model names for the OpenAI compatibility API."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import shown
from polymux.server.compat.openai.errors import FIRST_MODEL, OpenAiEndpoint, model_names
from polymux.service.errors import status_error
from polymux.service.model import OperationRequest

if TYPE_CHECKING:
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.service import Service

#: Operations whose models have selectors, and a required field of each operation.
_SELECTED = {"transcribe": "audio", "generate_image": "prompt"}


class ModelEndpoint(OpenAiEndpoint):
    """Available models; for an API key with scopes, only those of its operations."""

    name = "models"
    every_key = True

    def __init__(self, state: ServerState) -> None:
        super().__init__(state)
        # The creation date of models is unknown: use the start of the server.
        self._created = int(time.time())

    async def models(self, asked: RequestContext) -> list[dict[str, Any]]:
        key = asked.access.key
        found: dict[str, str] = {}
        for operation in ("chat", *_SELECTED):
            if key is None or key.allows(operation):
                for name in await there(self.state.service, operation):
                    found.setdefault(name, operation)
        return [
            {
                "id": name,
                "object": "model",
                "created": self._created,
                "owned_by": "polymux",
                "operation": operation,
            }
            for name, operation in found.items()
        ]


class ModelList(ModelEndpoint):
    """``GET /v1/models``."""

    async def handle(self, asked: RequestContext) -> Any:
        return {"object": "list", "data": await self.models(asked)}


class ModelItem(ModelEndpoint):
    """``GET /v1/models/{model}``."""

    async def handle(self, asked: RequestContext) -> Any:
        wanted = asked.scope["path_params"]["model"]
        for one in await self.models(asked):
            if wanted in (one["id"], FIRST_MODEL):
                return one
        raise status_error(
            errors.NotFoundError,
            f"model={shown(wanted)}: unknown model. GET /v1/models lists the models",
            code="model_not_found",
            param="model",
        )


async def there(service: Service, operation: str) -> list[str]:
    """Return the names of an operation's models that are available now, without duplicates."""
    if operation == "chat":
        names = await service.routes.listed_chat_models() or [FIRST_MODEL]
        return [
            one
            for one in names
            if _is_done(service, OperationRequest("chat", "", "", {"model": one}, frozenset()))
        ]
    variants = {one.model: one.id for one in contract.operation(operation).variants}
    field = _SELECTED[operation]
    return [
        name
        for name, model in model_names(operation).items()
        if _is_done(
            service, OperationRequest(operation, variants[model], model, {field: ""}, frozenset())
        )
    ]


def _is_done(service: Service, work: OperationRequest) -> bool:
    try:
        return bool(service.backends_of(work))
    except errors.OverloadedError:
        return True  # Available, but busy.
    except (errors.NoBackendError, errors.BadRequestError):
        return False
