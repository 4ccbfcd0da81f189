"""Every parameter of every method arrives under the wire name that the contract defines."""

from __future__ import annotations

import hashlib
import inspect
import itertools
import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract
from servers.reference import ReferenceServer
from support.client_calls import KINDS, called
from support.client_children import KEY
from support.requests import EACH_VARIANT, FILE, sample, with_field

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.contract import Field, Operation, Variant
    from servers.reference import Call

NAMES = [one.name for one in contract.operations()]
#: Method parameters that are not fields of the body.
OPTIONS = {"self", "extra_body", "timeout", "on_upload", "on_progress", "wait"}
#: Contract name -> client class name, if they differ.
RESULTS = {"MediaFile": "RemoteFile"}


@pytest.fixture(scope="module")
def everywhere() -> Iterator[ReferenceServer]:
    with ReferenceServer(token=KEY) as made:
        yield made


def given(variant: Variant, field: Field) -> dict[str, Any]:
    """Arguments by wire name, with the types that a caller uses."""
    values = with_field(variant, field, sample(field))
    for name, value in values.items():
        if value is FILE:
            values[name] = (f"{name}.bin", f"the content of {name}".encode())
        elif variant.field(name).raw.get("written_as") == "string":
            values[name] = int(value)
    return values


def arguments(
    operation: Operation, variant: Variant, values: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """Arguments by Python parameter name. The method's first parameter is positional."""
    named = {variant.field(name).python_name: value for name, value in values.items()}
    first = variant.field(operation.first).python_name
    place = [named.pop(first)] if first in named else []
    if variant.model is not None:
        named["model"] = variant.model
    return place, named


def arrived(variant: Variant, call: Call) -> dict[str, Any]:
    """The received fields by wire name. Form texts are converted to their types."""
    values = dict(call.body.fields)
    assert len(values) == len(call.body.fields), "a field came twice"
    for name, value in values.items():
        if call.body.encoding == "multipart":
            kinds = set(variant.field(name).type.split(" or "))
            values[name] = value if "string" in kinds else json.loads(value)
    files = {one.name: one for one in call.body.files}
    assert len(files) == len(call.body.files), "a file came twice"
    assert not files.keys() & values.keys()
    for name, file in files.items():
        assert file.sha256 == hashlib.sha256(file.content).hexdigest()
        values[name] = (file.file_name, file.content)
    return values


def check(
    server: ReferenceServer, operation: Operation, variant: Variant, values: dict[str, Any]
) -> None:
    """Check that the last call has exactly these values."""
    call = server.calls[-1]
    assert call.request.path == operation.path
    assert call.body.encoding == variant.encoding
    assert call.model == (variant.model or "")
    wanted = {
        name: str(value) if variant.field(name).raw.get("written_as") == "string" else value
        for name, value in values.items()
    }
    found = arrived(variant, call)
    assert found == wanted
    # Compare the types, because 1, 1.0 and True are equal.
    assert {name: type(one) for name, one in found.items()} == {
        name: type(one) for name, one in wanted.items()
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_method_has_the_fields_of_its_variants(kind: type, name: str) -> None:
    """Fields and parameters match one to one. All parameters except the first are keyword-only."""
    operation = contract.operation(name)
    wanted = {field.python_name for one in operation.variants for field in one.fields}
    if any(one.model is not None for one in operation.variants):
        wanted.add("model")
    _, first, *others = inspect.signature(getattr(kind, name)).parameters.values()
    assert {first.name, *(one.name for one in others)} - OPTIONS == wanted
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {one.kind for one in others} == {inspect.Parameter.KEYWORD_ONLY}


@pytest.mark.parametrize("kind", [*KINDS, polymux.Local, polymux.AsyncLocal])
def test_an_alias_is_the_same_method(kind: Any) -> None:
    assert kind.ocr is kind.read_text


@pytest.mark.parametrize("kind", KINDS)
def test_a_request_by_an_alias(kind: type, everywhere: ReferenceServer) -> None:
    answer = called(
        kind, everywhere.url, lambda one: one.request("ocr", {"file": ("a.png", b"picture")})
    )
    assert type(answer) is polymux.OcrText
    assert everywhere.calls[-1].path == "image2text"


@EACH_VARIANT
def test_a_field_of_a_call(
    operation: Operation, variant: Variant, everywhere: ReferenceServer
) -> None:
    """A field given by its Python name arrives under its wire name, together with only the required
    fields.

    Alternates between both clients. The previous test checks that their parameters are equal.
    """
    for field, kind in zip(variant.fields, itertools.cycle(KINDS), strict=False):
        check_field(operation, variant, field, kind, everywhere)


def check_field(
    operation: Operation, variant: Variant, field: Field, kind: type, everywhere: ReferenceServer
) -> None:
    values = given(variant, field)
    place, named = arguments(operation, variant, values)
    before = len(everywhere.calls)
    ask = getattr(kind, operation.name)
    answer = called(kind, everywhere.url, lambda client: ask(client, *place, **named), retry=0)
    if field.name == "stream" and operation.family == "chat":
        assert "".join(chunk.content for chunk in answer).startswith("You said: ")
    else:
        assert type(answer).__name__ == RESULTS.get(operation.result, operation.result)
    assert len(everywhere.calls) == before + 1
    check(everywhere, operation, variant, values)


def names_of(operation: Operation) -> list[str]:
    """All names by which an operation can be called."""
    path = operation.path
    dashed = operation.name.replace("_", "-")
    return [operation.name, dashed, path, path.removeprefix("/api/v1/"), path.rpartition("/")[2]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_request_by_every_name(name: str, kind: type, everywhere: ReferenceServer) -> None:
    """The operation's name, command, path and last path segment are equivalent."""
    operation = contract.operation(name)
    variant = operation.variants[0]
    field = variant.field(operation.first)
    values = {one: value for one, value in given(variant, field).items() if one != "model"}
    options = {"chat_model": "large"} if name == "chat" else {}
    for word in names_of(operation):
        model = None if options else variant.model
        answer = called(
            kind, everywhere.url, lambda one: one.request(word, values, model=model), **options  # noqa: B023
        )  # fmt: skip
        assert type(answer).__name__ == RESULTS.get(operation.result, operation.result)
        assert everywhere.calls[-1].request.path == operation.path
        if options:
            assert everywhere.calls[-1].body.get("model") == "large"


def test_paths_of_what_is_no_operation() -> None:
    for wrong in ("chatt", "Chat", "", "/api/v1/", "v1"):
        with pytest.raises(polymux.InvalidRequestError, match=repr(wrong)):
            polymux.Client("http://127.0.0.1:1", paths={wrong: "/elsewhere"})
