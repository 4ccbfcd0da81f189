"""Every parameter of every method arrives under the name that the contract gives it (D.1)."""

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
#: Parameters of methods that are no fields of the body.
OPTIONS = {"self", "extra_body", "timeout", "on_upload", "on_progress", "wait"}
#: Results whose class has another name in a client.
RESULTS = {"MediaFile": "RemoteFile"}


@pytest.fixture(scope="module")
def everywhere() -> Iterator[ReferenceServer]:
    """One server for the whole walk."""
    with ReferenceServer(token=KEY) as made:
        yield made


def given(variant: Variant, field: Field) -> dict[str, Any]:
    """By wire name, as a caller writes it: numbers are numbers, files say what they are for."""
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
    """The same by parameter; what a method takes first stands first, without its name."""
    named = {variant.field(name).python_name: value for name, value in values.items()}
    first = variant.field(operation.first).python_name
    place = [named.pop(first)] if first in named else []
    if variant.model is not None:
        named["model"] = variant.model
    return place, named


def arrived(variant: Variant, call: Call) -> dict[str, Any]:
    """By wire name, as another's parser read it; texts of a form in the type they stand for."""
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
    """That the last call was this one and nothing else."""
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
    # 1, 1.0 and True are equal, and not the same.
    assert {name: type(one) for name, one in found.items()} == {
        name: type(one) for name, one in wanted.items()
    }


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("kind", KINDS)
def test_a_method_has_the_fields_of_its_variants(kind: type, name: str) -> None:
    """No field without a parameter, no parameter that is none; all but the first go by name."""
    operation = contract.operation(name)
    wanted = {field.python_name for one in operation.variants for field in one.fields}
    if any(one.model is not None for one in operation.variants):
        wanted.add("model")
    _, first, *others = inspect.signature(getattr(kind, name)).parameters.values()
    assert {first.name, *(one.name for one in others)} - OPTIONS == wanted
    assert first.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert {one.kind for one in others} == {inspect.Parameter.KEYWORD_ONLY}


@EACH_VARIANT
def test_a_field_of_a_call(
    operation: Operation, variant: Variant, everywhere: ReferenceServer
) -> None:
    """Given by its Python name beside what must be given, it arrives by its wire name, alone.

    By both clients in turn: that they take the same is in the test before.
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
    """All by which an operation may be called."""
    path = operation.path
    dashed = operation.name.replace("_", "-")
    return [operation.name, dashed, path, path.removeprefix("/api/v1/"), path.rpartition("/")[2]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", NAMES)
def test_a_request_by_every_name(name: str, kind: type, everywhere: ReferenceServer) -> None:
    """An operation is the same by its name, command, path and last segment."""
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
    """Refused when the client is made."""
    for wrong in ("chatt", "Chat", "", "/api/v1/", "v1"):
        with pytest.raises(polymux.InvalidRequestError, match=repr(wrong)):
            polymux.Client("http://127.0.0.1:1", paths={wrong: "/elsewhere"})
