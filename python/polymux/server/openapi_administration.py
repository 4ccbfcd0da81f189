"""What is done to a server itself, for the OpenAPI document: engines unloaded, keys kept."""

from __future__ import annotations

from typing import Any

from polymux.server.auth.api_keys import LARGEST_QUOTA, known_scopes
from polymux.server.openapi.components import answer_of, fact_errors, json_answer
from polymux.server.routes.admin import PATH
from polymux.server.routes.api_keys import KEYS, LONGEST_NAME, QUOTAS

_BODY_ERRORS = {
    "s408": "The body came too slowly.",
    "s413": "The body is too large.",
    "s415": "The body is not of application/json.",
}
_NO_KEY = {"s404": "There is no such key."}
_OWN_KEY = {"s409": "It is the key that asks."}


def administration_paths() -> dict[str, Any]:
    """All of them, beside the one that only looks."""
    shared: dict[str, Any] = {"tags": ["administration"]}
    item = f"{KEYS}/{{id}}"
    return {
        f"{PATH}/engines/{{name}}/unload": {
            "parameters": [_in_path("name", "The engine's.")],
            "post": {
                "operationId": "unload_engine",
                "summary": "Ends an engine's process, so that its models' memory is free",
                "responses": {
                    "200": json_answer("The engine as it is now.", _object("name", "state")),
                    **fact_errors(s404="There is no such engine.", s409="It is at work."),
                },
                **shared,
            },
        },
        KEYS: {
            "get": {
                "operationId": "list_keys",
                "summary": "All keys, without themselves",
                "responses": {"200": json_answer("All.", _list_schema()), **fact_errors()},
                **shared,
            },
            "post": {
                "operationId": "make_key",
                "summary": "Makes a key, which is told in this answer and nowhere else",
                "requestBody": _body({"required": ["name"]}),
                "responses": {"201": _made("The key."), **fact_errors(**_BODY_ERRORS)},
                **shared,
            },
        },
        item: {"parameters": [_in_path("id", "The key's.")], **_item(shared)},
        f"{item}/rotate": {
            "parameters": [_in_path("id", "The key's.")],
            "post": {
                "operationId": "rotate_key",
                "summary": "Puts a new key in the place of one, which opens nothing any more",
                "responses": {"200": _made("The new key."), **fact_errors(**_NO_KEY)},
                **shared,
            },
        },
    }


def _item(shared: dict[str, Any]) -> dict[str, Any]:
    return {
        "patch": {
            "operationId": "change_key",
            "summary": "Changes what is given, and leaves the rest",
            "requestBody": _body({"minProperties": 1}),
            "responses": {
                "200": json_answer("The key as it is now.", _key_schema()),
                **fact_errors(**_BODY_ERRORS, **_NO_KEY, **_OWN_KEY),
            },
            **shared,
        },
        "delete": {
            "operationId": "remove_key",
            "summary": "Takes a key away",
            "responses": {
                "204": answer_of("It opens nothing any more."),
                **fact_errors(**_NO_KEY, **_OWN_KEY),
            },
            **shared,
        },
    }


def _in_path(name: str, words: str) -> dict[str, Any]:
    schema = {"type": "string"}
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _object(*required: str) -> dict[str, Any]:
    return {"type": "object", "required": list(required)}


def _body(more: dict[str, Any]) -> dict[str, Any]:
    numbers = {
        name: {
            "type": ["integer" if bounds.is_whole else "number", "null"],
            "minimum": bounds.lowest,
            "maximum": LARGEST_QUOTA,
        }
        for name, bounds in QUOTAS.items()
    }
    scopes = {"type": "array", "minItems": 1, "items": {"enum": list(known_scopes())}}
    properties = {
        "name": {"type": "string", "minLength": 1, "maxLength": LONGEST_NAME},
        "scopes": {"anyOf": [scopes, {"type": "null"}], "description": "Null for all."},
        **numbers,
    }
    schema = {"type": "object", "properties": properties, "additionalProperties": False, **more}
    return {"required": True, "content": {"application/json": {"schema": schema}}}


def _key_schema() -> dict[str, Any]:
    return _object("id", "name", "own", "created_at", "expires_at", "scopes", "requests")


def _list_schema() -> dict[str, Any]:
    results = {"type": "array", "items": _key_schema()}
    return _object("results") | {"properties": {"results": results}}


def _made(words: str) -> dict[str, Any]:
    """A key that was just made, which no cache may keep."""
    schema = _key_schema()
    schema["required"].append("key")
    schema["properties"] = {"key": {"type": "string", "pattern": "^pmx_[A-Za-z0-9_-]{43}$"}}
    return json_answer(words, schema)
