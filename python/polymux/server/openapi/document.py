"""The whole interface as OpenAPI 3.1, out of the contract."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native.version import __version__
from polymux.client.methods.result_schemas import OUTPUTS, SCHEMAS, STREAMS
from polymux.client.methods.results import JOBS, RESULTS
from polymux.server.auth.api_keys import LARGEST_QUOTA, known_scopes
from polymux.server.openapi.components import (
    CREATED,
    ERROR,
    PARAMETERS,
    answer_of,
    answered,
    error_answers,
    events,
    fact_errors,
    json_answer,
    public_errors,
)
from polymux.server.openapi.schemas import body_schema
from polymux.server.routes.admin import PATH
from polymux.server.routes.api_keys import KEYS, MAX_NAME_CHARACTERS, QUOTAS

if TYPE_CHECKING:
    from polymux.contract import Operation

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
        "name": {"type": "string", "minLength": 1, "maxLength": MAX_NAME_CHARACTERS},
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


#: What this server always gives; that of others may be missing.
_ALWAYS = {
    "AnswerMessage": ("role", "content"),
    "ChatChunk": ("object", "model", "choices"),
    "ChatCompletion": ("id", "object", "created", "model", "choices", "usage"),
    "Choice": ("index", "message", "finish_reason"),
    "MediaFile": ("response",),
    "OcrText": ("text",),
    "Prediction": ("id", "status", "model", "version", "input", "logs", "metrics", "created_at"),
    "Song": ("song_name", "songid_url", "song_image"),
    "TextChunk": ("response",),
    "TextResponse": ("response",),
    "Transcript": ("text", "chunks"),
}
_STATUSES = ("starting", "processing", "succeeded", "failed", "canceled", "aborted")


def openapi(base_url: str) -> dict[str, Any]:
    """The whole interface.

    A variant's body cannot be tied to the query's ``model`` there: so a body is one of all, and
    ``x-polymux-variants`` tells which belongs to which.

    Args:
        base_url: The server's address.
    """
    return _described() | {"servers": [{"url": base_url}]}


@cache
def _described() -> dict[str, Any]:
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "polymux",
            "version": __version__,
            "description": "Fourteen AI and media tools behind one interface.",
        },
        "security": [{"key": []}],
        "paths": {one.path: {"post": _operation(one)} for one in contract.operations()}
        | fact_paths(),
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": ERROR} | {name: _result(name) for name in SCHEMAS},
        },
    }


def _result(name: str) -> dict[str, Any]:
    schema = SCHEMAS[name]
    if name == "Prediction":
        known = {"status": {"type": "string", "enum": list(_STATUSES)}}
        schema = schema | {"properties": schema["properties"] | known}
    return schema | ({"required": list(_ALWAYS[name])} if name in _ALWAYS else {})


def _operation(one: Operation) -> dict[str, Any]:
    job = one.name in JOBS
    described: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.title,
        "description": one.summary,
        "tags": [one.family],
        "parameters": [PARAMETERS["request_id"]],
        "requestBody": {"required": True, "content": _bodies(one)},
        "responses": {"200": _answer(one)} | _unfinished(one) | error_answers(one.name, job=job),
    }
    if job:
        described["parameters"] += [PARAMETERS["prefer"], PARAMETERS["idempotency_key"]]
    models = [variant.model for variant in one.variants if variant.model]
    if models:
        described["parameters"].append(_selector(one, models))
        described["x-polymux-variants"] = [
            {"id": variant.id, "model": variant.model, "accepts": list(variant.accepts)}
            for variant in one.variants
        ]
    return described


def _selector(one: Operation, models: list[str]) -> dict[str, Any]:
    counts = [
        sum(encoding in variant.accepts for variant in one.variants)
        for encoding in ("json", "multipart")
    ]
    return {
        "name": "model",
        "in": "query",
        # Where one variant takes the body's encoding, it is the one that is meant.
        "required": 1 not in counts,
        "description": "Which model, and so which variant of the body.",
        "schema": {"type": "string", "enum": models},
    }


def _bodies(one: Operation) -> dict[str, Any]:
    refused = contract.describe(one.name)[0].get("refused_fields", ())
    bodies: dict[str, list[dict[str, Any]]] = {}
    for variant in one.variants:
        for encoding in variant.accepts:
            kind = "application/json" if encoding == "json" else "multipart/form-data"
            schema = body_schema(variant, refused, form=encoding == "multipart")
            bodies.setdefault(kind, []).append(schema)
    return {
        # What one model takes may be right for another as well.
        kind: {"schema": found[0] if len(found) == 1 else {"anyOf": found}}
        for kind, found in bodies.items()
    }


def _answer(one: Operation) -> dict[str, Any]:
    schema = {"$ref": f"#/components/schemas/{RESULTS[one.name]}"}
    if one.name in OUTPUTS:
        output = {"properties": {"output": OUTPUTS[one.name]}, "required": ["output"]}
        schema = {"allOf": [schema, output]}  # type: ignore[dict-item]
    answer = json_answer("What came of it.", schema)
    if one.name in STREAMS:
        answer["content"] |= events(STREAMS[one.name], "[DONE]")
    return answer


def _unfinished(one: Operation) -> dict[str, Any]:
    if one.name not in JOBS:
        return {}
    answer = json_answer("The job goes on.", {"$ref": "#/components/schemas/Prediction"})
    return {"202": answered(answer, CREATED)}
