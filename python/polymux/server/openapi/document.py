"""The whole interface as OpenAPI 3.1, out of the contract."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native.version import __version__
from polymux.client.methods.result_schemas import OUTPUTS, SCHEMAS, STREAMS
from polymux.client.methods.results import JOBS, RESULTS
from polymux.server.openapi.components import (
    CREATED,
    ERROR,
    PARAMETERS,
    answered,
    error_answers,
    events,
    json_answer,
)
from polymux.server.openapi.schemas import body_schema
from polymux.server.openapi_facts import fact_paths

if TYPE_CHECKING:
    from polymux.contract import Operation

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
