"""Schemas of the MCP tools and of the models of the Replicate API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from contract import docstrings
from contract.model import derived_title
from contract.openapi import FOLDER, as_json
from contract.request_schemas import body_schema
from contract.result_schemas import PLACE, described, result_schemas

if TYPE_CHECKING:
    from contract.model import Contract, Operation, Variant

_CHATS = ("chat", "free_chat")
#: Fields of chats that tools omit, because their answers are never streamed.
_STREAMING = ("stream", "stream_options")
_TEXT = {"type": "string"}
_FILE = {"type": "string", "format": "uri"}
#: Outputs of operations whose result is one file or one text.
_PLAIN: dict[str, dict[str, Any]] = {"MediaFile": _FILE, "TextResponse": _TEXT}
#: Outputs of (operation, variant) that are a list of files or one file.
_FILES: dict[tuple[str, str], dict[str, Any]] = {
    ("generate_image", "A"): {"type": "array", "items": _FILE},
    ("generate_image", "B"): {"type": "array", "items": _FILE},
    ("generate_image", "C"): {"type": "array", "items": _FILE},
    ("generate_video", ""): {"type": "array", "items": _FILE},
    ("upscale_image", "A"): {"type": "array", "items": _FILE},
    ("upscale_image", "B"): _FILE,
}
#: A text that Replicate's clients can stream.
_PIECES = {
    "type": "array",
    "items": _TEXT,
    "x-cog-array-type": "iterator",
    "x-cog-array-display": "concatenate",
}
#: Inputs of chats that the operations do not have.
_PROMPTS: dict[str, dict[str, Any]] = {
    "prompt": {**_TEXT, "description": "The user's message."},
    "system_prompt": {**_TEXT, "description": "Instructions for the model."},
    "messages": {
        "type": "array",
        "items": {"type": "object"},
        "description": "The whole conversation, instead of the prompts.",
    },
}
_LIMITS: dict[str, dict[str, Any]] = {
    "max_tokens": {
        "type": "integer",
        "minimum": 1,
        "description": "Maximum number of tokens to generate.",
    },
    "stop_sequences": {
        **_TEXT,
        "description": "Sequences at which generation stops, separated by commas.",
    },
}
#: Fields of the chats that models of the Replicate API also have.
_SHARED = {
    "chat": (
        "model", "temperature", "top_p", "seed", "stop", "frequency_penalty", "presence_penalty",
        "response_format", "reasoning_effort", "logit_bias", "user",
    ),
    "free_chat": ("model", "timeout", "shuffle", "image_url"),
}  # fmt: skip


def files(contract: Contract) -> dict[str, str]:
    """Map paths, relative to the repository root, to contents."""
    tools = [_tool(contract, one) for one in contract.operations]
    return {
        "python/polymux/mcp/tools.json": as_json(tools) + "\n",
        f"{FOLDER}/compat/replicate/models.json": as_json(_models(contract)) + "\n",
    }


def _tool(contract: Contract, one: Operation) -> dict[str, Any]:
    # The same as for a form: flat and without null. Many clients cannot read keywords such as
    # `oneOf` at the root, so the description states these rules, and the server checks them.
    # Titles of fields are omitted, because they would only use tokens of the models.
    shapes = [
        body_schema(contract, one, variant, form=True, titles=False, rules=False)
        for variant in one.variants
    ]
    names = dict.fromkeys(name for shape in shapes for name in shape["properties"])
    left_out = _STREAMING if one.name in _CHATS else ()
    properties = {name: _property(one, shapes, name) for name in names if name not in left_out}
    if one.selects_model:
        models = [variant.model for variant in one.variants]
        properties["model"] = _TEXT | {"enum": models, "description": "Model to use."}
    required = [name for name in names if all(name in part.get("required", ()) for part in shapes)]
    words = dict.fromkeys(shape["description"] for shape in shapes if "description" in shape)
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    schema |= {"required": required} if required else {}
    schema |= {"description": " ".join(words)} if words else {}
    return {"name": one.name, "title": one.title, "description": one.summary, "schema": schema}


def _property(one: Operation, shapes: list[dict[str, Any]], name: str) -> dict[str, Any]:
    """Return the schema of a field. Its bounds may differ between variants."""
    having: list[tuple[str, dict[str, Any]]] = [
        (variant.model, shape["properties"][name])
        for variant, shape in zip(one.variants, shapes, strict=True)
        if name in shape["properties"]
    ]
    _, first = having[0]
    if any(schema != first for _, schema in having):
        different = [schema | {"title": f"with {model}"} for model, schema in having]
        purpose = docstrings.common_purpose([schema["description"] for _, schema in having])
        return {"anyOf": different, "description": purpose}
    if len(having) == len(one.variants):
        return first
    models = " and ".join(model for model, _ in having)
    return first | {"description": f"{first['description']} Only with {models}."}


def _models(contract: Contract) -> dict[str, Any]:
    """Map model names to OpenAPI documents; `chat` is for all configured chat models."""
    found = {}
    for one in contract.operations:
        for variant in one.variants:
            name = variant.model if "/" in variant.model else f"polymux/{one.command}"
            if one.name in _CHATS:
                found[name] = _document(contract, _chat_input(contract, one), _PIECES)
            else:
                output = _output(one, variant)
                found[name] = _document(contract, _input(contract, one, variant), output)
            if one.name == "chat":
                fixed = _chat_input(contract, one, fixed=True)
                found["chat"] = _document(contract, fixed, _PIECES)
    return found


def _document(contract: Contract, input_: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    results = result_schemas(contract)
    schemas = {"Input": input_, "Output": output | {"title": "Output"}}
    waiting = _referred(output)
    while waiting:
        name = waiting.pop(0)
        if name not in schemas:
            schemas[name] = results[name]
            waiting += _referred(results[name])
    return {
        "openapi": "3.0.2",
        "info": {"title": "polymux", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }


def _input(contract: Contract, one: Operation, variant: Variant) -> dict[str, Any]:
    # The same as for a form, but a file is a URL.
    schema = body_schema(contract, one, variant, form=True, rules=False)
    for field in variant.fields:
        if field.type == ("file",):
            schema["properties"][field.name]["format"] = "uri"
    return _ordered(schema)


def _chat_input(contract: Contract, one: Operation, *, fixed: bool = False) -> dict[str, Any]:
    """Return a chat's input schema; `fixed` if the model's name selects the chat model."""
    whole = body_schema(contract, one, one.variants[0], form=True, rules=False)["properties"]
    names = [name for name in _SHARED[one.name] if name != "model" or not fixed]
    members = _PROMPTS | (_LIMITS if one.name == "chat" else {})
    members |= {name: whole[name] for name in names}
    if one.name == "chat" and not fixed:
        words = whole["model"]["description"]
        members["model"] = {**_TEXT, "default": "default", "description": words}
    words = "Either prompt or messages is required."
    return _ordered({"type": "object", "properties": members, "description": words})


def _ordered(schema: dict[str, Any]) -> dict[str, Any]:
    """Add a title and a position in the form to each member."""
    members = {
        name: {"title": derived_title(name)} | member | {"x-order": number}
        for number, (name, member) in enumerate(schema["properties"].items())
    }
    return schema | {"properties": members, "title": "Input"}


def _output(one: Operation, variant: Variant) -> dict[str, Any]:
    files = _FILES.get((one.name, variant.id))
    if files is not None:
        return files
    if one.output is not None:
        return described(one.output)
    return _PLAIN.get(one.result) or {"$ref": PLACE + one.result}


def _referred(schema: Any) -> list[str]:
    """Return the names of the schemas that a schema refers to."""
    if isinstance(schema, list):
        return [name for one in schema for name in _referred(one)]
    if not isinstance(schema, dict):
        return []
    found = [schema["$ref"].removeprefix(PLACE)] if "$ref" in schema else []
    return found + [name for one in schema.values() for name in _referred(one)]
