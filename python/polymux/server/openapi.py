"""The contract as OpenAPI 3.1, and as a page."""

from __future__ import annotations

import html
from functools import cache
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._version import __version__
from polymux.operations.results import JOBS, RESULTS

if TYPE_CHECKING:
    from polymux.contract import Field, ObjectType, Operation, Variant

_TYPES = {"integer", "number", "boolean", "string", "array", "object", "null"}
_ERRORS = {
    "400": "The request does not keep the contract.",
    "401": "No key, or a wrong one.",
    "403": "The key may not use this operation.",
    "413": "Too large.",
    "415": "Not a Content-Type, or not media, that is taken.",
    "422": "The media cannot be worked with.",
    "429": "Too many requests.",
    "500": "The server, or an engine, failed.",
    "501": "Nothing here can do it.",
    "503": "Too much to do.",
}


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
    paths = {one.path: {"post": _operation(one)} for one in contract.operations()}
    paths |= _prediction_paths()
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "polymux",
            "version": __version__,
            "description": "Fourteen AI and media tools behind one interface.",
        },
        "security": [{"key": []}],
        "paths": paths,
        "components": {
            "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
            "schemas": {"Error": _ERROR, "Prediction": {"type": "object", "required": ["status"]}},
        },
    }


_ERROR = {
    "type": "object",
    "required": ["error"],
    "properties": {
        "error": {"type": "string"},
        "code": {"type": "string"},
        "param": {"type": "string"},
        "request_id": {"type": "string"},
        "id": {"type": "string"},
    },
}


def _operation(one: Operation) -> dict[str, Any]:
    bodies: dict[str, list[dict[str, Any]]] = {}
    for variant in one.variants:
        for encoding in variant.accepts:
            kind = "application/json" if encoding == "json" else "multipart/form-data"
            bodies.setdefault(kind, []).append(_body(variant, form=encoding == "multipart"))
    content = {
        kind: {"schema": found[0] if len(found) == 1 else {"oneOf": found}}
        for kind, found in bodies.items()
    }
    responses: dict[str, Any] = {"200": _answer(one)}
    if one.name in JOBS:
        responses["202"] = _json("The job goes on.", {"$ref": "#/components/schemas/Prediction"})
    for status, words in _ERRORS.items():
        responses[status] = _json(words, {"$ref": "#/components/schemas/Error"})
    described: dict[str, Any] = {
        "operationId": one.name,
        "summary": one.title,
        "description": one.summary,
        "tags": [one.family],
        "requestBody": {"required": True, "content": content},
        "responses": responses,
    }
    models = [variant.model for variant in one.variants if variant.model]
    if models:
        described["parameters"] = [
            {
                "name": "model",
                "in": "query",
                "required": len(models) > 1,
                "schema": {"type": "string", "enum": models},
            }
        ]
        described["x-polymux-variants"] = [
            {"id": variant.id, "model": variant.model, "accepts": list(variant.accepts)}
            for variant in one.variants
        ]
    return described


def _json(words: str, schema: dict[str, Any]) -> dict[str, Any]:
    return {"description": words, "content": {"application/json": {"schema": schema}}}


def _answer(one: Operation) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object"}
    if RESULTS[one.name] == "Prediction":
        schema = {"$ref": "#/components/schemas/Prediction"}
    elif RESULTS[one.name] == "SongList":
        schema = {"type": "array", "items": {"type": "object"}}
    answer = _json("What came of it.", schema)
    if any(field.name == "stream" and field.type == "boolean" for field in one.variants[0].fields):
        answer["content"]["text/event-stream"] = {"schema": {"type": "string"}}
    return answer


def _body(variant: Variant, *, form: bool) -> dict[str, Any]:
    schema = _object(variant.fields, form=form)
    # What is not known is left out with a warning, or passed on.
    return schema | {"title": variant.model or variant.id or "body"}


def _object(known: tuple[Field, ...], *, form: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {one.name: _field(one, form=form) for one in known},
    }
    required = [one.name for one in known if one.required]
    return schema | ({"required": required} if required else {})


def _field(one: Field, *, form: bool) -> dict[str, Any]:
    types = one.type.split(" or ")
    if types == ["file"]:
        return {"type": "string", "format": "binary", "description": one.doc}
    found = [_typed(kind, one, form=form) for kind in types if kind in _TYPES]
    schema: dict[str, Any] = found[0] if len(found) == 1 else {"anyOf": found}
    schema["description"] = one.doc
    if one.default is not None:
        schema["default"] = one.default
    return schema


def _typed(kind: str, one: Field, *, form: bool) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": kind}
    if kind in ("integer", "number"):
        lower = "exclusiveMinimum" if one.exclusive_minimum else "minimum"
        upper = "exclusiveMaximum" if one.exclusive_maximum else "maximum"
        bounds = {lower: one.minimum, upper: one.maximum, "multipleOf": one.multiple_of}
        schema |= {name: value for name, value in bounds.items() if value is not None}
    if kind == "string":
        lengths = {"minLength": one.raw.get("min_length"), "maxLength": one.raw.get("max_length")}
        schema |= {name: value for name, value in lengths.items() if value is not None}
    if one.choices is not None and kind in ("string", "integer", "number"):
        schema["enum"] = list(one.choices)
    if kind == "array":
        schema["items"] = _items(one, form=form)
        counts = {"minItems": one.raw.get("min_items"), "maxItems": one.raw.get("max_items")}
        schema |= {name: value for name, value in counts.items() if value is not None}
    if kind == "object" and one.object is not None:
        schema = _nested(one.object, form=form)
    return schema


def _items(one: Field, *, form: bool) -> dict[str, Any]:
    if one.items_object is not None:
        return _nested(one.items_object, form=form)
    return {"type": one.items} if one.items in _TYPES else {}


def _nested(kind: ObjectType, *, form: bool) -> dict[str, Any]:
    return _object(kind.fields, form=form) | {"description": kind.doc}


def _prediction_paths() -> dict[str, Any]:
    found = {"200": _json("The prediction.", {"$ref": "#/components/schemas/Prediction"})}
    found["404"] = _json("There is none.", {"$ref": "#/components/schemas/Error"})
    parameters = [{"name": "id", "in": "path", "required": True, "schema": {"type": "string"}}]
    one = "/api/v1/predictions/{id}"
    shared: dict[str, Any] = {"tags": ["predictions"], "parameters": parameters}
    removed = {"204": {"description": "It is forgotten, with its files."}, "404": found["404"]}
    events = {"200": {"description": "Events.", "content": {"text/event-stream": {}}}}
    return {
        "/api/v1/predictions": {
            "get": {
                "operationId": "list_predictions",
                "tags": ["predictions"],
                "responses": {"200": _json("A page.", {"type": "object"})},
            }
        },
        one: {
            "get": {"operationId": "get_prediction", "responses": found, **shared},
            "delete": {"operationId": "delete_prediction", "responses": removed, **shared},
        },
        f"{one}/cancel": {
            "post": {"operationId": "cancel_prediction", "responses": found, **shared}
        },
        f"{one}/events": {
            "get": {
                "operationId": "watch_prediction",
                "responses": {**events, "404": found["404"]},
                **shared,
            }
        },
    }


_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #8884;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}code{font-size:.9em}"
)


@cache
def reference_page() -> bytes:
    """All operations and their fields on one page, with no script and nothing from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>polymux</title>",
        f"<style>{_STYLE}</style><h1>polymux {html.escape(__version__)}</h1>",
        "<p>All requests need <code>Authorization: Bearer KEY</code>. The same as OpenAPI: "
        "<a href=/openapi.json>openapi.json</a>.</p>",
    ]
    for one in contract.operations():
        parts.append(
            f"<h2 id={one.name}>{html.escape(one.title)}</h2><p>{html.escape(one.summary)}</p>"
            f"<p><code>POST {html.escape(one.path)}</code></p>"
        )
        for variant in one.variants:
            if variant.model:
                parts.append(f"<h3><code>?model={html.escape(variant.model)}</code></h3>")
            parts.append(_table(variant))
    return "".join(parts).encode()


def _table(variant: Variant) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(one.name)}</code>{' *' if one.required else ''}"
        f"<td>{html.escape(one.type)}"
        f"<td>{'' if one.default is None else html.escape(str(one.default))}"
        f"<td>{html.escape(one.doc)}"
        for one in variant.fields
    )
    return f"<table><tr><th>field<th>type<th>default<th>{rows}</table>"
