"""The tool descriptions, from ``tools.json``, which ``scripts/generate`` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native import core
from polymux._util.text import shown
from polymux.client.multipart import field_text
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.contract import CheckedRequest, Operation

CHATS = ("chat", "free_chat")
#: The argument that selects the variant; the HTTP API has it in the query.
_SELECTOR = "model"


@dataclass(frozen=True, slots=True)
class Described:
    """A tool; `name` is that of its operation, `schema` the JSON Schema of its arguments."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]


@cache
def described(file_words: str) -> tuple[Described, ...]:
    """Return all tools in the order of the contract.

    Args:
        file_words: How to pass a file, for the fields that accept one.
    """
    found = json.loads(Path(__file__).with_name("tools.json").read_bytes())
    for tool in found:
        for field in tool["schema"]["properties"].values():
            if field.get("format") == "binary":
                # MCP clients send files as text.
                del field["format"]
                field["description"] += f" {file_words}"
    return tuple(Described(**tool) for tool in found)


MAX_JSON_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Arguments:
    """Unchecked arguments of a tool call.

    Attributes:
        model: The variant selector; None if not given.
        values: Name to value, without files and nulls.
        files: Name to the text that stands for the file: a path, a URL or base64.
    """

    operation: Operation
    model: str | None
    values: dict[str, Any]
    files: dict[str, str]

    def without(self, files: Container[str]) -> Arguments:
        """Return a copy without the files of these names."""
        left = {name: text for name, text in self.files.items() if name not in files}
        return replace(self, files=left)


def sorted_out(operation: Operation, given: Mapping[str, Any] | None) -> Arguments:
    values = {name: value for name, value in (given or {}).items() if value is not None}
    if operation.name in CHATS and values.get("stream") is True:
        raise bad_request("stream: not supported by tools. Omit it", "stream")
    model = values.pop(_SELECTOR, None) if operation.variants[0].model else None
    fields = [field for variant in operation.variants for field in variant.fields]
    expected = {field.name for field in fields if field.type == "file"}
    files = {name: values.pop(name) for name in expected & values.keys()}
    for name, value in {**files, _SELECTOR: model or ""}.items():
        if not isinstance(value, str):
            raise bad_request(f"{name}: must be a string (got {shown(value)})", name)
    return Arguments(operation, model, values, files)


def checked(
    arguments: Arguments,
    files: Mapping[str, Any],
    max_bytes: int = MAX_JSON_BYTES,
) -> CheckedRequest:
    """Check the arguments against the contract, as a server checks a request.

    Args:
        files: Name to `polymux.service.model.Upload`.
        max_bytes: Maximum JSON size of the arguments without files. Default: 32 MiB.

    Raises:
        InvalidRequestError: The arguments violate the contract.
    """
    name, values = arguments.operation.name, arguments.values
    try:
        body = json.dumps(values).encode()
    except (RecursionError, ValueError):
        raise bad_request("arguments: invalid JSON, or nested too deeply") from None
    if len(body) > max_bytes:
        raise bad_request(
            f"arguments: too large for {name} (got {len(body)} bytes, allowed {max_bytes})"
        )
    # As in the client: without a model, the given fields determine the variant.
    _, _, variant, model, _ = core.choose_variant(name, arguments.model, {**values, **files})
    shape = next(one for one in arguments.operation.variants if one.id == variant)
    if "json" in shape.accepts:
        return contract.read_json(name, body, model=model or None, max_bytes=max_bytes)
    fields = [(one, _text(one, value)) for one, value in values.items()]
    return contract.read_form(name, [*fields, *files.items()], model=model or None)


def _text(name: str, value: object) -> str:
    try:
        return field_text(name, value)
    except TypeError:
        raise bad_request(
            f"{name[:100]}: must be a string, a number or a boolean", name[:100]
        ) from None
