"""``GET /v1/models``: what requests in OpenAI's shape may call a model."""

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

#: Operations whose models have selectors, and the field that says where their files come from.
_SELECTED = {"transcribe": "audio", "generate_image": "prompt"}


class ModelEndpoint(OpenAiEndpoint):
    """Models that can be asked for now; of a key with scopes, those of its operations."""

    name = "models"
    every_key = True

    def __init__(self, state: ServerState) -> None:
        super().__init__(state)
        # Nobody keeps when a model was made: since then it can be asked for here.
        self._created = int(time.time())

    async def models(self, asked: RequestContext) -> list[dict[str, Any]]:
        key = asked.access.key
        found: dict[str, None] = {}
        for operation in ("chat", *_SELECTED):
            if key is None or key.allows(operation):
                found |= dict.fromkeys(await there(self.state.service, operation))
        return [
            {"id": name, "object": "model", "created": self._created, "owned_by": "polymux"}
            for name in found
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
            if one["id"] == wanted:
                return one
        raise status_error(
            errors.NotFoundError,
            f"{shown(wanted)}: there is no such model here; /v1/models has those that there are",
            code="model_not_found",
            param="model",
        )


async def there(service: Service, operation: str) -> list[str]:
    """The names of an operation's models that something here can do now, without repeats."""
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
        return True  # It is there, and has to wait.
    except (errors.NoBackendError, errors.BadRequestError):
        return False
