"""What a model takes and gives, as Replicate's packages read it: OpenAPI, out of the contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.client.methods.result_schemas import OUTPUTS, SCHEMAS
from polymux.client.methods.results import RESULTS
from polymux.server.openapi.schemas import body_schema

if TYPE_CHECKING:
    from polymux.contract import Variant

_REFERENCE = "#/components/schemas/"
_FILE: dict[str, Any] = {"type": "string", "format": "uri"}
#: Answers of operations that are one address, or one text.
_PLAIN: dict[str, dict[str, Any]] = {"MediaFile": _FILE, "TextResponse": {"type": "string"}}
#: Outputs that are lists of files.
_LISTS = ("generate_image", "generate_video")
#: What a package can read while it comes, and puts together to one text.
PIECES: dict[str, Any] = {
    "type": "array",
    "items": {"type": "string"},
    "x-cog-array-type": "iterator",
    "x-cog-array-display": "concatenate",
}


def input_schema(operation: str, variant: Variant) -> dict[str, Any]:
    """The members of a variant's input; files are addresses.

    Args:
        operation: Its name.
        variant: One of its variants.

    Example:
        >>> from polymux import contract
        >>> (variant,) = contract.operation("convert_to_mp3").variants
        >>> input_schema("convert_to_mp3", variant)["properties"]["file"]["format"]
        'uri'
    """
    refused = contract.describe(operation)[0].get("refused_fields", ())
    # As a form has it: null is as good as absent, and no type of its own.
    schema = body_schema(variant, refused, form=True)
    for number, field in enumerate(variant.fields):
        member = schema["properties"][field.name]
        if field.type == "file":
            member["format"] = "uri"
        member.update({"title": _title(field.name), "x-order": number})
    return schema | {"title": "Input"}


def output_schema(operation: str, variant: Variant) -> dict[str, Any]:
    """What a variant gives.

    Args:
        operation: Its name; the chats give `PIECES`.
        variant: One of its variants.

    Example:
        >>> from polymux import contract
        >>> (variant,) = contract.operation("convert_to_mp3").variants
        >>> output_schema("convert_to_mp3", variant)
        {'type': 'string', 'format': 'uri', 'title': 'Output'}
    """
    if operation in _LISTS or (operation == "upscale_image" and variant.id == "A"):
        found: dict[str, Any] = {"type": "array", "items": _FILE}
    elif operation == "upscale_image":
        found = _FILE
    elif operation in OUTPUTS:
        found = OUTPUTS[operation]
    else:
        name = RESULTS[operation]
        found = _PLAIN.get(name) or {"$ref": f"{_REFERENCE}{name}"}
    return found | {"title": "Output"}


def document(input_: dict[str, Any], output: dict[str, Any]) -> dict[str, Any]:
    """Both as a document of their own, with all that they refer to.

    Args:
        input_: Schema of the input.
        output: Schema of the output.

    Example:
        >>> document({"type": "object"}, {"$ref": "#/components/schemas/Song"})["openapi"]
        '3.0.2'
    """
    schemas: dict[str, Any] = {"Input": input_, "Output": output}
    for name in _referred(output):
        _add(schemas, name)
    return {
        "openapi": "3.0.2",
        "info": {"title": "polymux", "version": "1"},
        "paths": {},
        "components": {"schemas": schemas},
    }


def _add(schemas: dict[str, Any], name: str) -> None:
    if name not in schemas:
        schemas[name] = SCHEMAS[name]
        for other in _referred(SCHEMAS[name]):
            _add(schemas, other)


def _referred(schema: Any) -> list[str]:
    """The names of what a schema refers to."""
    if isinstance(schema, list):
        return [name for one in schema for name in _referred(one)]
    if not isinstance(schema, dict):
        return []
    own = schema.get("$ref")
    found = [own.removeprefix(_REFERENCE)] if isinstance(own, str) else []
    return found + [name for one in schema.values() for name in _referred(one)]


def _title(name: str) -> str:
    return name.replace("_", " ").capitalize()
