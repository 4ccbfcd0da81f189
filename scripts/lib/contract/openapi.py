"""The server's OpenAPI document, and an HTML page with the same content."""

from __future__ import annotations

import html
import json
import re
import tomllib
from typing import TYPE_CHECKING, Any

from contract.model import ENCODINGS, ROUTES, VALUE_TYPES
from contract.request_schemas import body_schema
from contract.result_schemas import PLACE, described, result_schemas

if TYPE_CHECKING:
    from contract.model import Contract, Operation, Variant

FOLDER = "python/polymux/server"
_MAX_LINE = 100
_JSON = "application/json"
_STRING: dict[str, Any] = {"schema": {"type": "string"}}
_CHATS = ("chat", "free_chat")
_TITLE = "Fourteen AI and media operations behind one API."
_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #8884;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}code{font-size:.9em}"
)


def files(contract: Contract) -> dict[str, str]:
    """Map paths, relative to the repository root, to contents."""
    return {
        f"{FOLDER}/openapi.json": as_json(_Document(contract).whole()) + "\n",
        f"{FOLDER}/reference.html": _page(contract),
    }


def as_json(value: Any, indent: str = "") -> str:
    """Return JSON with each value on one line if it fits."""
    flat = json.dumps(value, ensure_ascii=False)
    if not value or not isinstance(value, dict | list) or len(indent) + len(flat) <= _MAX_LINE:
        return flat
    deeper = f"{indent} "
    if isinstance(value, list):
        parts = [as_json(one, deeper) for one in value]
    else:
        parts = [f"{json.dumps(name)}: {as_json(one, deeper)}" for name, one in value.items()]
    lines = ",\n".join(f"{deeper}{part}" for part in parts)
    first, last = "[]" if isinstance(value, list) else "{}"
    return f"{first}\n{lines}\n{indent}{last}"


class _Document:
    def __init__(self, contract: Contract) -> None:
        self._contract = contract
        with (contract.folder / ROUTES).open("rb") as file:
            self._data: dict[str, Any] = tomllib.load(file)

    def whole(self) -> dict[str, Any]:
        """Return the document.

        The server adds its version, its URL, its installed models and the limits of keys.
        """
        paths = {
            f"/api/v1/{one.path}": {"post": self._operation(one)}
            for one in self._contract.operations
        }
        return {
            "openapi": "3.1.0",
            "info": {"title": "polymux", "description": _TITLE},
            "security": [{"key": []}],
            "paths": paths | self._routes(),
            "components": {
                "securitySchemes": {"key": {"type": "http", "scheme": "bearer"}},
                "responses": self._all_errors(),
                "schemas": {"Error": self._data["schema"]["Error"]} | self._results(),
            },
        }

    def _results(self) -> dict[str, Any]:
        schemas = result_schemas(self._contract)
        for name, members in self._data["choices"].items():
            for member, choices in members.items():
                schemas[name]["properties"][member] = {"type": "string", "enum": choices}
        for name, required in self._data["required"].items():
            schemas[name]["required"] = required
        return schemas

    def _operation(self, one: Operation) -> dict[str, Any]:
        errors = ["any", "auth", "operation", *(() if one.name in _CHATS else ("media",))]
        parameters = list(self._data["parameters"]["any"])
        if one.job:
            errors.append("job")
            parameters += self._data["parameters"]["job"]
        found: dict[str, Any] = {
            "operationId": one.name,
            "summary": one.title,
            "description": one.summary,
            "tags": [one.family],
            "parameters": parameters,
            "requestBody": {"required": True, "content": self._bodies(one)},
            "responses": self._results_of(one) | self._errors(*errors),
        }
        if one.selects_model:
            parameters.append(_selector(one))
            found["x-polymux-variants"] = [
                {"id": variant.id, "model": variant.model, "accepts": _accepted(variant)}
                for variant in one.variants
            ]
        return found

    def _bodies(self, one: Operation) -> dict[str, Any]:
        bodies: dict[str, list[dict[str, Any]]] = {}
        for variant in one.variants:
            for encoding in _accepted(variant):
                form = encoding == "multipart"
                schema = body_schema(self._contract, one, variant, form=form)
                bodies.setdefault("multipart/form-data" if form else _JSON, []).append(schema)
        return {
            # anyOf, because a body may be valid for several models.
            kind: {"schema": found[0] if len(found) == 1 else {"anyOf": found}}
            for kind, found in bodies.items()
        }

    def _results_of(self, one: Operation) -> dict[str, Any]:
        schema: dict[str, Any] = {"$ref": PLACE + one.result}
        if one.output is not None:
            output = {"properties": {"output": described(one.output)}, "required": ["output"]}
            schema = {"allOf": [schema, output]}
        content = {_JSON: {"schema": schema}}
        if one.stream_result:
            content |= _events(one.stream_result, last="[DONE]")
        kind = "job" if one.job else "operation"
        found = {"200": self._response("The result of the operation.", content, kind)}
        if one.job:
            job = {_JSON: {"schema": {"$ref": f"{PLACE}Prediction"}}}
            found["202"] = self._response("The job, which is still running.", job, "job", "202")
        return found

    def _routes(self) -> dict[str, Any]:
        return {
            path: _path_parameters(path, methods)
            | {name: self._method(one, tag) for name, one in methods.items()}
            for tag, paths in self._data["route"].items()
            for path, methods in paths.items()
        }

    def _method(self, one: dict[str, Any], tag: str) -> dict[str, Any]:
        key = one.get("key", "needed")
        public = key in ("none", "signed link")
        found = {"operationId": one["id"], "tags": [tag]}
        found |= {name: one[name] for name in ("summary",) if name in one}
        if "parameters" in one:
            found["parameters"] = [given | _STRING for given in one["parameters"]]
        if key != "needed":
            found["security"] = [] if public else [{}, {"key": []}]
        if "body" in one:
            content = {_JSON: {"schema": self._data["schema"][one["body"]]}}
            found["requestBody"] = {"required": True, "content": content}
        responses = self._errors("any", "public" if public else "auth", *one.get("errors", ()))
        for status, words in one["responses"].items():
            responses[status] = {"description": words}
            if status != "304":
                responses[status] = self._response(words, self._content(one))
        return found | {"responses": responses}

    def _content(self, one: dict[str, Any]) -> dict[str, Any]:
        if "events" in one:
            return _events(one["events"])
        if "schema" not in one:
            return {}
        return {one.get("type", _JSON): {"schema": self._schema(one["schema"])}}

    def _schema(self, name: str) -> dict[str, Any]:
        """Return a schema of the routes, or a reference to a component."""
        found: dict[str, Any] = self._data["schema"].get(name, {"$ref": PLACE + name})
        results = found.get("properties", {}).get("results")
        if results is None:
            return found
        items = self._schema(results["items"])
        return found | {"properties": found["properties"] | {"results": results | {"items": items}}}

    def _errors(self, *groups: str) -> dict[str, Any]:
        """Return references to the errors of some groups; later groups override earlier ones."""
        found = {
            status: {"$ref": f"#/components/responses/{_error_name(group, status)}"}
            for group in groups
            for status in self._data["errors"][group]
        }
        return dict(sorted(found.items()))

    def _all_errors(self) -> dict[str, Any]:
        content = {_JSON: {"schema": {"$ref": f"{PLACE}Error"}}}
        return {
            _error_name(group, status): self._response(words, content, status)
            for group, errors in self._data["errors"].items()
            for status, words in errors.items()
        }

    def _response(self, words: str, content: dict[str, Any], *groups: str) -> dict[str, Any]:
        """Return a response with its content and the header fields of its status and kind."""
        fields = dict(self._data["headers"]["any"])
        for group in groups:
            fields |= self._data["headers"].get(group, {})
        headers = {name: _header(**field) for name, field in fields.items()}
        found = {"description": words, "headers": headers}
        return found | ({"content": content} if content else {})


def _error_name(group: str, status: str) -> str:
    words = "" if group == "any" else group.title().replace("_", "")
    return f"{words}Error{status}"


def _header(description: str, *, required: bool = False, **schema: Any) -> dict[str, Any]:
    return {
        "description": description,
        "required": required,
        "schema": {"type": "string", **schema},
    }


def _path_parameters(path: str, methods: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters in the path, and the query parameters of a signed URL."""
    place = {"in": "path", "required": True}
    found = [{"name": name, **place, **_STRING} for name in re.findall(r"{(\w+)}", path)]
    if any(one.get("key") == "signed link" for one in methods.values()):
        found += [{"name": name, "in": "query", **_STRING} for name in ("exp", "sig")]
    return {"parameters": found} if found else {}


def _events(name: str, last: str | None = None) -> dict[str, Any]:
    """Return a stream of server-sent events; `last` is the last event's data if it is not JSON."""
    failed = {"type": "object", "required": ["error"]}
    data: dict[str, Any] = {
        "type": "string",
        "contentMediaType": _JSON,
        "contentSchema": {"anyOf": [{"$ref": PLACE + name}, failed]},
    }
    if last is not None:
        data = {"anyOf": [{"const": last}, data]}
    # OpenAPI 3.1 cannot describe a stream: this schema describes each event.
    schema = {
        "type": "object",
        "required": ["data"],
        "properties": {"data": data, "event": {"type": "string"}},
    }
    return {"text/event-stream": {"schema": schema}}


def _selector(one: Operation) -> dict[str, Any]:
    counts = [
        sum(encoding in variant.accepts for variant in one.variants)
        for encoding in ("json", "multipart")
    ]
    return {
        "name": "model",
        "in": "query",
        # If only one variant accepts an encoding, the encoding selects it.
        "required": 1 not in counts,
        "description": "Model to use. It determines the schema of the body.",
        "schema": {"type": "string", "enum": [variant.model for variant in one.variants]},
    }


def _accepted(variant: Variant) -> list[str]:
    return [one for one in ENCODINGS if one in variant.accepts]


def _page(contract: Contract) -> str:
    """Return a page of all operations and fields; the server replaces VERSION."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>polymux</title>\n",
        f"<style>{_STYLE}</style><h1>polymux VERSION</h1>\n",
        "<p>All requests require the header <code>Authorization: Bearer KEY</code>. "
        "* marks required fields. OpenAPI document: <a href=/openapi.json>openapi.json</a>.</p>\n",
    ]
    for one in contract.operations:
        parts.append(
            f"<h2 id={one.name}>{html.escape(one.title)}</h2><p>{_inline(one.summary)}</p>\n"
            f"<p><code>POST /api/v1/{html.escape(one.path)}</code></p>\n"
        )
        for variant in one.variants:
            if variant.model:
                parts.append(f"<h3><code>?model={html.escape(variant.model)}</code></h3>\n")
            parts.append(_table(variant))
    return "".join(parts)


def _inline(text: str) -> str:
    """Return a text as HTML, with Markdown code spans as `<code>`."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text))


def _table(variant: Variant) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(one.name)}</code>{' *' if one.required else ''}"
        f"<td>{' or '.join(sorted(one.type, key=VALUE_TYPES.index))}"
        f"<td>{html.escape(str(one.default)) if one.has_default else ''}"
        f"<td>{_inline(one.doc)}\n"
        for one in variant.fields
    )
    return f"<table><tr><th>field<th>type<th>default<th>description\n{rows}</table>\n"
