"""The addresses beside the operations, for the OpenAPI document: predictions, files, facts."""

from __future__ import annotations

from typing import Any

from polymux.server.openapi.components import (
    answer_of,
    events,
    fact_errors,
    json_answer,
    public_errors,
)
from polymux.server.openapi_administration import administration_paths

_PREDICTION = {"$ref": "#/components/schemas/Prediction"}
_STATE = {
    "type": "object",
    "required": ["status", "version", "backends"],
    "properties": {
        "status": {"type": "string", "enum": ["ready", "stopping"]},
        "version": {"type": "string"},
        "backends": {
            "type": "object",
            "additionalProperties": {
                "type": "object",
                "required": ["state"],
                "properties": {
                    "state": {"type": "string", "enum": ["idle", "loading", "ready", "failed"]},
                    "detail": {"type": "string"},
                },
            },
        },
    },
}
_PAGE = {
    "type": "object",
    "required": ["previous", "next", "results"],
    "properties": {
        "previous": {"type": ["string", "null"]},
        "next": {"type": ["string", "null"]},
        "results": {"type": "array", "items": _PREDICTION},
    },
}
#: From this machine, to a server on loopback, no key is wanted.
_KEY_OR_LOOPBACK: list[dict[str, list[str]]] = [{}, {"key": []}]


def fact_paths() -> dict[str, Any]:
    """All of them."""
    return _predictions() | _files() | _facts() | administration_paths()


def _predictions() -> dict[str, Any]:
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    shared: dict[str, Any] = {"tags": ["predictions"]}
    failed = fact_errors(s404="There is none, or it is another key's.")
    found = {"200": json_answer("The prediction.", _PREDICTION)} | failed
    cursor = {
        "name": "cursor",
        "in": "query",
        "description": "As `next` of the page before has it.",
        "schema": {"type": "string"},
    }
    one = "/api/v1/predictions/{id}"
    return {
        "/api/v1/predictions": {
            "get": {
                "operationId": "list_predictions",
                "summary": "The key's predictions, newest first",
                "parameters": [cursor],
                "responses": {"200": json_answer("A page.", _PAGE)} | fact_errors(),
                **shared,
            }
        },
        one: {
            "parameters": parameters,
            "get": {"operationId": "get_prediction", "responses": found, **shared},
            "delete": {
                "operationId": "delete_prediction",
                "responses": {"204": answer_of("It is forgotten, with its files.")} | failed,
                **shared,
            },
        },
        f"{one}/cancel": {
            "parameters": parameters,
            "post": {"operationId": "cancel_prediction", "responses": found, **shared},
        },
        f"{one}/events": {
            "parameters": parameters,
            "get": {
                "operationId": "watch_prediction",
                "responses": {
                    "200": answer_of(
                        "It now, whenever it changes, and at its end.",
                        events("Prediction"),
                    ),
                    **failed,
                },
                **shared,
            },
        },
    }


def _files() -> dict[str, Any]:
    def given(name: str, place: str) -> dict[str, Any]:
        required = {"required": True} if place == "path" else {}
        return {"name": name, "in": place, "schema": {"type": "string"}, **required}

    def shown(name: str, summary: str, kind: str) -> dict[str, Any]:
        content = {kind: {"schema": {"type": "string", "format": "binary"}}}
        missing = public_errors(s404="There is none, or the link has expired.")
        kept = {"304": {"description": "It is as it was."}} if kind.startswith("image/") else {}
        return {
            "parameters": [given("id", "path"), given("exp", "query"), given("sig", "query")],
            "get": {
                "operationId": name,
                "summary": f"{summary}, by its signed link",
                "tags": ["files"],
                "security": [],
                "responses": {"200": answer_of("It.", content), **kept, **missing},
            },
        }

    content = {"*/*": {"schema": {"type": "string", "format": "binary"}}}
    return {
        "/media/{name}": {
            "parameters": [given("name", "path"), given("exp", "query"), given("sig", "query")],
            "get": {
                "operationId": "read_file",
                "summary": "A file that was made, by its signed link",
                "tags": ["files"],
                "security": [],
                "parameters": [given("Range", "header")],
                "responses": {
                    "200": answer_of("All of it.", content),
                    "206": answer_of("The part that was asked for.", content),
                    "304": {"description": "It is as it was."},
                    **public_errors(
                        s404="There is none, or the link has expired.",
                        s416="The range lies beyond its end.",
                    ),
                },
            },
        },
        "/songs/{id}": shown("song_page", "What is known of a song", "text/html"),
        "/songs/{id}/cover": shown("song_cover", "The cover of a song", "image/*"),
    }


def _facts() -> dict[str, Any]:
    def fact(name: str, summary: str, responses: dict[str, Any], **more: Any) -> dict[str, Any]:
        return {
            "get": {
                "operationId": name,
                "summary": summary,
                "tags": ["facts"],
                "responses": responses,
                **more,
            }
        }

    def text(words: str, kind: str) -> dict[str, Any]:
        return {"200": answer_of(words, {kind: {"schema": {"type": "string"}}})}

    alive = {"200": json_answer("Yes.", {"type": "object", "required": ["status"]})}
    ready = {"200": json_answer("Yes.", _STATE)} | public_errors()
    # Where it takes no work, it tells why in the same form.
    ready["503"] = json_answer("No.", _STATE)
    contract = {"200": json_answer("The contract.", {"type": "array"})}
    document = {"200": json_answer("This document.", {"type": "object"})}
    glance = {"200": json_answer("Everything, as it is now.", {"type": "object"})}
    page = text("One page.", "text/html")
    public: dict[str, Any] = {"security": []}
    local: dict[str, Any] = {"security": _KEY_OR_LOOPBACK}
    return {
        "/healthz": fact("is_alive", "Whether it lives", alive | public_errors(), **public),
        "/readyz": fact("is_ready", "Whether it takes work", ready, **public),
        "/api/v1/readiness": fact("readiness", "Whether it takes work", ready, **public),
        "/api/v1/operations": fact("operations", "The contract", contract | fact_errors()),
        "/api/v1/administration": fact(
            "administration", "Engines, models, memory, keys, upstreams", glance | fact_errors()
        ),
        "/metrics": fact(
            "metrics", "Counters", text("For Prometheus.", "text/plain") | fact_errors(), **local
        ),
        "/openapi.json": fact("openapi", "This document", document | fact_errors(), **local),
        "/docs": fact("docs", "The contract as a page", page | fact_errors(), **local),
    }
