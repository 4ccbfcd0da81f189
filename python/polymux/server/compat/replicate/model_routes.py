"""``/replicate/v1/models``: which models there are, and what each takes and gives."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import shown
from polymux.server.compat.replicate.errors import BASE, ReplicateEndpoint
from polymux.server.compat.replicate.models import all_models, is_there, named
from polymux.service.errors import status_error
from polymux.service.job_table import moment

if TYPE_CHECKING:
    from polymux.server.compat.replicate.models import Model
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState

#: By which packages tell how a schema is to be read; of this one and later all is in it.
_SCHEMAS_AS_OF = "0.9.0"


class ModelEndpoint(ReplicateEndpoint):
    """Models of those operations that the key may use."""

    name = "models"

    def __init__(self, state: ServerState) -> None:
        super().__init__(state)
        # Nobody keeps when a model was made: since then it can be asked for here.
        self._created_at = moment(time.time())

    def version_of(self, model: Model) -> dict[str, Any]:
        """A model's version, as the interface has it."""
        return {
            "id": model.version,
            "created_at": self._created_at,
            "cog_version": _SCHEMAS_AS_OF,
            "openapi_schema": model.schema,
        }

    def described_model(self, model: Model) -> dict[str, Any]:
        """A model, as the interface has it."""
        nothing = ("github_url", "paper_url", "license_url", "cover_image_url", "default_example")
        return {
            "url": f"{self.state.settings.base_url}{BASE}/models/{model.full_name}",
            "owner": model.owner,
            "name": model.name,
            "description": model.summary,
            "visibility": "public",
            "run_count": 0,
            "latest_version": self.version_of(model),
        } | dict.fromkeys(nothing)

    def wanted(self, asked: RequestContext) -> Model:
        """The model that the address names.

        Raises:
            NotFoundError: There is none.
            PermissionDeniedError: The key may not use its operation.
        """
        names = asked.scope["path_params"]
        model = named(self.state.service, names["owner"], names["name"])
        self.require(asked.access, model.operation)
        return model


class ModelList(ModelEndpoint):
    """``GET models``."""

    async def handle(self, asked: RequestContext) -> Any:
        """All that can be asked for now."""
        key, service = asked.access.key, self.state.service
        found = [
            self.described_model(one)
            for one in all_models(service).values()
            if (key is None or key.allows(one.operation)) and is_there(service, one)
        ]
        return {"previous": None, "next": None, "results": found}


class ModelItem(ModelEndpoint):
    """``GET models/{owner}/{name}``."""

    async def handle(self, asked: RequestContext) -> Any:
        """One, whether anything here can do it or not."""
        return self.described_model(self.wanted(asked))


class VersionList(ModelEndpoint):
    """``GET models/{owner}/{name}/versions``."""

    async def handle(self, asked: RequestContext) -> Any:
        """The one that there is."""
        found = [self.version_of(self.wanted(asked))]
        return {"previous": None, "next": None, "results": found}


class VersionItem(ModelEndpoint):
    """``GET models/{owner}/{name}/versions/{id}``."""

    async def handle(self, asked: RequestContext) -> Any:
        """It, where it is that one.

        Raises:
            NotFoundError: The model has another by now.
        """
        model = self.wanted(asked)
        wanted = asked.scope["path_params"]["id"]
        if wanted != model.version:
            raise status_error(
                errors.NotFoundError,
                f"{model.full_name} has no version {shown(wanted)}: GET its versions tells which",
            )
        return self.version_of(model)
