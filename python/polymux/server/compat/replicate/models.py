"""Operations as Replicate models: names, versions and availability."""

from __future__ import annotations

import hashlib
import json
import os
import re
import time
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract, errors
from polymux._util.text import shown
from polymux.server.compat.replicate.errors import BASE, ReplicateEndpoint
from polymux.service.errors import status_error
from polymux.service.job_table import moment
from polymux.service.model import OperationRequest, Upload
from polymux.upstreams.model_names import CHATS, FREE_NAMES

if TYPE_CHECKING:
    from polymux.contract import Variant
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job
    from polymux.service.service import Service

OWNER = "polymux"
_VERSION = re.compile(r"[0-9a-f]{64}", re.ASCII)
#: Chat models whose names are valid in a path.
_CHAT_NAME = re.compile(r"(?:[\w.-]{1,100}/)?[\w.-]{1,100}", re.ASCII)
_ANY_FILE = Upload(Path(os.devnull), "", "", 0)


@dataclass(frozen=True, slots=True)
class Model:
    """An operation, or one variant of it, as a model.

    Attributes:
        owner: First part of the name; ``"polymux"`` if the operation has no selector.
        name: Second part of the name.
        operation: Name of the operation.
        variant: Id of the variant.
        selector: The query parameter ``model``; empty for operations without it.
        chat: The chat model; None if the input names it, and for other operations.

    Example:
        >>> model = models()["polymux/convert-to-mp3"]
        >>> model.operation, len(model.version)
        ('convert_to_mp3', 64)
    """

    owner: str
    name: str
    operation: str
    variant: str
    selector: str
    chat: str | None = None

    @property
    def full_name(self) -> str:
        return f"{self.owner}/{self.name}"

    @property
    def iterates(self) -> bool:
        """Whether its output is a list of pieces."""
        return self.operation in CHATS

    @property
    def shape(self) -> Variant:
        variants = contract.operation(self.operation).variants
        return next(one for one in variants if one.id == self.variant)

    @property
    def summary(self) -> str:
        return self.shape.summary or contract.operation(self.operation).summary

    @property
    def schema(self) -> dict[str, Any]:
        """The OpenAPI document of its input and output."""
        return _described(self)[0]

    @property
    def version(self) -> str:
        """64 hexadecimal digits: a hash of the name and the schema."""
        return _described(self)[1]


@cache
def documents() -> dict[str, dict[str, Any]]:
    """Return OpenAPI documents by model name; ``chat`` is that of the service's chat models."""
    found: dict[str, dict[str, Any]] = json.loads(
        Path(__file__).with_name("models.json").read_bytes()
    )
    return found


@cache
def _described(model: Model) -> tuple[dict[str, Any], str]:
    schema = documents()[model.full_name if model.chat is None else "chat"]
    plain = json.dumps([model.full_name, schema], sort_keys=True, separators=(",", ":"))
    return schema, hashlib.sha256(plain.encode()).hexdigest()


@cache
def models() -> dict[str, Model]:
    found = []
    for operation in contract.operations():
        for variant in operation.variants:
            owner, _, name = (variant.model or "").partition("/")
            if not name:
                owner, name = OWNER, operation.name.replace("_", "-")
            found.append(Model(owner, name, operation.name, variant.id, variant.model or ""))
    return {one.full_name: one for one in found}


def all_models(service: Service) -> dict[str, Model]:
    """Return the models of `models`, and each chat model of the service as a model.

    Args:
        service: A chat model whose name is not valid in a URL, or already used, is available only
            through the input of ``polymux/chat``.
    """
    found = dict(models())
    for chat in service.routes.chat_models():
        if _CHAT_NAME.fullmatch(chat) and not set(chat.split("/")) & {".", ".."}:
            owner, _, name = chat.rpartition("/")
            one = Model(owner or OWNER, name, "chat", "", "", chat)
            found.setdefault(one.full_name, one)
    return found


def is_there(service: Service, model: Model) -> bool:
    """Check whether a backend can run the model now."""
    values: dict[str, Any] = {
        one.name: _ANY_FILE if "file" in one.type else ""
        for one in model.shape.fields
        if one.required or one.type == "file"
    }
    if model.iterates:
        first = "default" if model.operation == "chat" else FREE_NAMES[0]
        values |= {"model": model.chat or first, "messages": []}
    work = OperationRequest(model.operation, model.variant, model.selector, values, frozenset())
    try:
        return bool(service.backends_of(work))
    except errors.OverloadedError:
        return True  # Available, but busy.
    except errors.NoBackendError:
        return False
    except errors.BadRequestError as refused:
        # A backend may reject the empty text above although it would accept a real one.
        return refused.code != "model_not_found"


def named(service: Service, owner: str, name: str) -> Model:
    found = all_models(service).get(f"{owner}/{name}")
    if found is None:
        full = shown(f"{owner}/{name}")
        raise status_error(
            errors.NotFoundError,
            f"model={full}: unknown model. GET {BASE}/models lists the models",
        )
    return found


def of_version(service: Service, version: object) -> Model:
    """Return the model for a request's ``version``.

    Args:
        service: Provides the chat models.
        version: 64 hexadecimal digits, ``owner/name``, or ``owner/name:`` and the digits.

    Example:
        >>> from types import SimpleNamespace
        >>> service = SimpleNamespace(routes=SimpleNamespace(chat_models=list))
        >>> of_version(service, models()["riffusion/riffusion"].version).operation
        'generate_music'
    """
    there = all_models(service)
    if isinstance(version, str):
        full, _, digits = version.rpartition(":") if ":" in version else (version, "", "")
        if _VERSION.fullmatch(version):
            for model in there.values():
                if model.version == version:
                    return model
        elif full in there and (":" not in version or there[full].version == digits):
            return there[full]
    raise status_error(
        errors.UnprocessableEntityError,
        f"version={shown(version)}: unknown version (allowed: OWNER/NAME, "
        "OWNER/NAME:VERSION, or VERSION alone). VERSION is the 64 hexadecimal digits that GET "
        f"{BASE}/models/OWNER/NAME/versions shows",
        code="invalid_version",
        param="version",
    )


def of_job(job: Job) -> Model:
    """Return the model for a job that was created through another API."""
    return next(
        one
        for one in models().values()
        if one.operation == job.operation and one.selector in ("", job.model)
    )


#: Tells client packages how to read schemas; from this version on a schema is complete.
_SCHEMAS_AS_OF = "0.9.0"


class ModelEndpoint(ReplicateEndpoint):
    """Models of the operations that the API key allows."""

    name = "models"

    def __init__(self, state: ServerState) -> None:
        super().__init__(state)
        # The creation date of models is unknown: use the start of the server.
        self._created_at = moment(time.time())

    def version_of(self, model: Model) -> dict[str, Any]:
        return {
            "id": model.version,
            "created_at": self._created_at,
            "cog_version": _SCHEMAS_AS_OF,
            "openapi_schema": model.schema,
        }

    def described_model(self, model: Model) -> dict[str, Any]:
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
        """Return the model in the path."""
        names = asked.scope["path_params"]
        model = named(self.state.service, names["owner"], names["name"])
        self.require(asked.access, model.operation)
        return model


class ModelList(ModelEndpoint):
    """``GET models``."""

    async def handle(self, asked: RequestContext) -> Any:
        """List all available models."""
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
        """Describe one model, available or not."""
        return self.described_model(self.wanted(asked))


class VersionList(ModelEndpoint):
    """``GET models/{owner}/{name}/versions``."""

    async def handle(self, asked: RequestContext) -> Any:
        found = [self.version_of(self.wanted(asked))]
        return {"previous": None, "next": None, "results": found}


class VersionItem(ModelEndpoint):
    """``GET models/{owner}/{name}/versions/{id}``."""

    async def handle(self, asked: RequestContext) -> Any:
        model = self.wanted(asked)
        wanted = asked.scope["path_params"]["id"]
        if wanted != model.version:
            raise status_error(
                errors.NotFoundError,
                f"{model.full_name}: unknown version (got {shown(wanted)}, allowed "
                f"{model.version})",
            )
        return self.version_of(model)
