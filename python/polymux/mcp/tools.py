"""The tools as a client sees them, from a file that ``scripts/generate`` writes."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux._native import core
from polymux.client.multipart import field_text
from polymux.service.errors import bad_request

if TYPE_CHECKING:
    from collections.abc import Container, Mapping

    from polymux.contract import CheckedRequest, Operation

CHATS = ("chat", "free_chat")
#: The argument that chooses the variant, which the HTTP API has in the query.
_SELECTOR = "model"


@dataclass(frozen=True, slots=True)
class Described:
    """A tool, by the name of its operation; `schema` is the JSON Schema of its arguments."""

    name: str
    title: str
    description: str
    schema: dict[str, Any]


@cache
def described(file_words: str) -> tuple[Described, ...]:
    """All tools, in the order of the contract.

    Args:
        file_words: How a file is given, for the fields that accept one.
    """
    found = json.loads(Path(__file__).with_name("tools.json").read_bytes())
    for tool in found:
        for field in tool["schema"]["properties"].values():
            if field.get("format") == "binary":
                # A file arrives as text.
                del field["format"]
                field["description"] += f" {file_words}"
    return tuple(Described(**tool) for tool in found)


MAX_JSON_BYTES = 32 << 20


@dataclass(frozen=True, slots=True)
class Arguments:
    """What was given to a tool, not checked yet.

    Attributes:
        operation: The operation.
        model: The selector; None where none was given.
        values: Name to value, without files and nulls.
        files: Name to what stands for the file: a path, or the file itself in a text.
    """

    operation: Operation
    model: str | None
    values: dict[str, Any]
    files: dict[str, str]

    def without(self, files: Container[str]) -> Arguments:
        """The same without some of the files, by their names."""
        left = {name: text for name, text in self.files.items() if name not in files}
        return replace(self, files=left)


def sorted_out(operation: Operation, given: Mapping[str, Any] | None) -> Arguments:
    values = {name: value for name, value in (given or {}).items() if value is not None}
    if operation.name in CHATS and values.get("stream") is True:
        raise bad_request("stream: a tool's answer comes whole", "stream")
    model = values.pop(_SELECTOR, None) if operation.variants[0].model else None
    fields = [field for variant in operation.variants for field in variant.fields]
    expected = {field.name for field in fields if field.type == "file"}
    files = {name: values.pop(name) for name in expected & values.keys()}
    for name, value in {**files, _SELECTOR: model or ""}.items():
        if not isinstance(value, str):
            raise bad_request(f"{name}: must be a text", name)
    return Arguments(operation, model, values, files)


def checked(
    arguments: Arguments,
    files: Mapping[str, Any],
    max_bytes: int = MAX_JSON_BYTES,
) -> CheckedRequest:
    """The request, checked by the contract as a server checks what it receives.

    Args:
        arguments: What was given.
        files: Name to `polymux.service.model.Upload`.
        max_bytes: Longest JSON of all that is no file. Default: 32 MiB.

    Raises:
        InvalidRequestError: It does not keep the contract.
    """
    name, values = arguments.operation.name, arguments.values
    try:
        body = json.dumps(values).encode()
    except (RecursionError, ValueError):
        raise bad_request("the arguments are nested too deeply, or no JSON") from None
    if len(body) > max_bytes:
        raise bad_request(f"the arguments are over the {max_bytes} bytes that {name} takes")
    # As the client does where no model is named: what is given tells which variant is meant.
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
            f"{name[:100]}: must be a text, a number or a boolean", name[:100]
        ) from None
