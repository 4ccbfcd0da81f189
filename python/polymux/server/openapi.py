"""The OpenAPI document and the reference page: files that ``scripts/generate`` writes."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native.version import __version__
from polymux.server.auth.api_keys import LARGEST_QUOTA, known_scopes
from polymux.server.routes.api_keys import KEYS, MAX_NAME_CHARACTERS, QUOTAS

if TYPE_CHECKING:
    from polymux.service.routes import Routes

_FOLDER = Path(__file__).parent


def openapi(base_url: str, routes: Routes | None = None) -> dict[str, Any]:
    """The OpenAPI document of a server, with the installed models that requests can select.

    A body schema cannot depend on the query parameter ``model``. So a body matches any of the
    operation's schemas, and ``x-polymux-variants`` lists which belongs to which model.
    """
    document = _document() | {"servers": [{"url": base_url}]}
    paths = dict(document["paths"])
    for operation in contract.operations():
        named = [] if routes is None else list(routes.named_models(operation.name))
        if named:
            post = paths[operation.path]["post"]
            parameters = [_with_models(one, named) for one in post["parameters"]]
            paths[operation.path] = {"post": {**post, "parameters": parameters}}
    return document | {"paths": paths}


def _with_models(parameter: dict[str, Any], names: list[str]) -> dict[str, Any]:
    if parameter["name"] != "model":
        return parameter
    schema = parameter["schema"]
    return {**parameter, "schema": {**schema, "enum": [*schema["enum"], *names]}}


@cache
def _document() -> dict[str, Any]:
    document: dict[str, Any] = json.loads((_FOLDER / "openapi.json").read_bytes())
    document["info"]["version"] = __version__
    for path, method in ((KEYS, "post"), (f"{KEYS}/{{id}}", "patch")):
        body = document["paths"][path][method]["requestBody"]["content"]["application/json"]
        body["schema"]["properties"] = _key_properties()
    return document


def _key_properties() -> dict[str, Any]:
    """The fields of an API key with the limits that `routes.api_keys` checks."""
    scopes = {"type": "array", "minItems": 1, "items": {"enum": list(known_scopes())}}
    return {
        "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS},
        "scopes": {"anyOf": [scopes, {"type": "null"}], "description": "Null for all operations."},
    } | {
        name: {
            "type": ["integer" if bounds.is_whole else "number", "null"],
            "minimum": bounds.lowest,
            "maximum": LARGEST_QUOTA,
        }
        for name, bounds in QUOTAS.items()
    }


@cache
def reference_page() -> bytes:
    """Every operation and its fields as a page without scripts."""
    page = (_FOLDER / "reference.html").read_bytes()
    return page.replace(b"VERSION", __version__.encode(), 1)
