from __future__ import annotations

import base64
import json
import os
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from polymux import contract
from polymux.errors import BadRequestError, InvalidRequestError
from polymux.mcp.files import Folders, Input, embedded
from polymux.mcp.tools import checked, described, sorted_out
from support import requests

#: A tool never streams its answer.
STREAMING = ("stream", "stream_options")
TOOLS = {one.name: one for one in described("In base64.")}


def arguments(variant: contract.Variant, values: dict[str, Any]) -> dict[str, Any]:
    """The arguments that an MCP client sends: files as base64 text, the variant by its model."""
    plain = {name: "QUJD" if one is requests.FILE else one for name, one in values.items()}
    return plain | ({"model": variant.model} if variant.model else {})


def read(operation: contract.Operation, given: dict[str, Any]) -> contract.CheckedRequest:
    found = sorted_out(operation, given)
    return checked(found, {name: embedded(name, one, None) for name, one in found.files.items()})


def test_there_is_a_tool_for_each_operation() -> None:
    assert list(TOOLS) == [one.name for one in contract.operations()]
    for operation in contract.operations():
        assert TOOLS[operation.name].title == operation.title
        assert TOOLS[operation.name].description == operation.summary


@pytest.mark.parametrize("operation", contract.operations(), ids=lambda one: one.name)
def test_the_schema_has_the_fields_of_the_contract(operation: contract.Operation) -> None:
    schema = TOOLS[operation.name].schema
    jsonschema.Draft202012Validator.check_schema(schema)
    # Only keywords that clients of older protocol versions understand, too.
    assert set(schema) <= {"type", "properties", "required", "description"}
    assert schema["type"] == "object"
    names = {field.name for variant in operation.variants for field in variant.fields}
    models = [variant.model for variant in operation.variants if variant.model]
    left_out = set(STREAMING) if operation.family == "chat" else set()
    assert set(schema["properties"]) == (names - left_out) | ({"model"} if models else set())
    if models:
        assert schema["properties"]["model"]["enum"] == models
    required = [
        {field.name for field in variant.fields if field.required} for variant in operation.variants
    ]
    assert set(schema.get("required", ())) == set.intersection(*required)
    json.dumps(schema)


@requests.each_field
def test_the_schema_is_as_strict_as_the_contract(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    if field.name in STREAMING and operation.family == "chat":
        return
    good = [requests.sample(field), *(field.choices or ())]
    if field.default is not None:
        good.append(field.default)
    for value in good:
        given = arguments(variant, requests.with_field(variant, field, value))
        jsonschema.Draft202012Validator(TOOLS[operation.name].schema).validate(given)
        request = read(operation, given)
        assert (request.operation, request.variant) == (operation.name, variant.id)
        assert field.name in request.values
    schema = json.dumps(TOOLS[operation.name].schema["properties"][field.name])
    assert json.dumps(field.doc)[1:-1] in schema
    for value, _ in requests.refused(field):
        given = arguments(variant, requests.with_field(variant, field, value))
        with pytest.raises(InvalidRequestError) as caught:
            read(operation, given)
        assert field.name in str(caught.value)


def test_a_file_decides_which_variant_is_meant() -> None:
    operation = contract.operation("generate_image")
    assert read(operation, {"prompt": "waves"}).variant == "A"
    request = read(operation, {"prompt": "waves", "image": "QUJD", "seed": None})
    assert request.variant == "B"
    assert request.values["image"].data == b"ABC"
    assert "seed" not in request.values


@pytest.mark.parametrize(
    ("name", "given", "named"),
    [
        ("chat", {"stream": True}, "stream"),
        ("read_text", {"file": {"path": "a"}}, "file"),
        ("generate_image", {"prompt": "x", "model": 7}, "model"),
        ("generate_image", {"prompt": "x", "model": "no/such"}, "no/such"),
        ("generate_video", {"prompt": {"a": 1}}, "prompt"),
        ("generate_image", {"prompt": "x" * (33 << 20)}, "33554432"),
    ],
)
def test_arguments_that_are_none(name: str, given: dict[str, Any], named: str) -> None:
    with pytest.raises((BadRequestError, InvalidRequestError), match=named):
        read(contract.operation(name), given)


def test_arguments_that_are_nested_too_deeply() -> None:
    deep: Any = "x"
    for _ in range(100_000):
        deep = [deep]
    with pytest.raises(BadRequestError):
        read(contract.operation("chat"), {"model": "m", "messages": deep})


def test_files_in_texts() -> None:
    data = bytes(range(256))
    text = base64.b64encode(data).decode()
    assert embedded("file", text, None) == Input("file", "", 256, data=data)
    lines = "\n".join(text[i : i + 76] for i in range(0, len(text), 76))
    assert embedded("file", lines, 256).data == data
    given = embedded("file", f"data:audio/wav;name=my%20song.wav;base64,{text}", None)
    assert given == Input("my song.wav", "audio/wav", 256, data=data)
    assert embedded("file", "DATA:text/plain,a%20b", None).data == b"a b"


@pytest.mark.parametrize(
    ("text", "named"),
    [("#", "file"), ("QQ", "file"), ("data:audio/wav;base64", "file"), ("data:;base64,#", "file"),
     ("\ud800", "file"), ("data:" + "x" * 2000 + ",", "file"), ("QUJD", "file.* 2 bytes")],
)  # fmt: skip
def test_texts_that_hold_no_file(text: str, named: str) -> None:
    with pytest.raises(BadRequestError, match=named):
        embedded("file", text, 2)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for name in ("in/song.wav", "in/deep/other.wav", "out/secret.wav", "input/near.wav"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    (tmp_path / "in/link.wav").symlink_to(tmp_path / "out/secret.wav")
    (tmp_path / "in/folder").symlink_to(tmp_path / "out")
    (tmp_path / "in/inner.wav").symlink_to(tmp_path / "in/song.wav")
    os.mkfifo(tmp_path / "in/pipe")
    return tmp_path


@pytest.mark.parametrize(
    "text", ["song.wav", "deep/../song.wav", "{in}/song.wav", "file://{in}/song.wav",
             "file://localhost{in}/song.wav", "inner.wav"]
)  # fmt: skip
def test_files_inside(tree: Path, text: str) -> None:
    found = Folders([], tree / "in").input("file", text.replace("{in}", str(tree / "in")), None)
    assert found.path is not None
    assert found.path.read_text() == f"in/{found.path.relative_to(tree / 'in')}"
    assert found.size_bytes == found.path.stat().st_size


OUTSIDE = [
    "../out/secret.wav", "../out/nothing.wav", "{out}/secret.wav", "file://{out}/%73ecret.wav",
    "{in}put/near.wav", "link.wav", "folder/secret.wav", "/proc/self/environ", "/dev/stdin",
    "~/../../etc/passwd",
]  # fmt: skip
NO_FILES = [
    "~nobody-of-that-name/a", "pipe", ".", "nothing.wav", "x" * 300, "\ud800", "", "x" * 20_000,
    "a\0b", "file://elsewhere/a.wav", "file:song.wav", "http://127.0.0.1/a.wav",
]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "outside"),
    [*((text, True) for text in OUTSIDE), *((text, False) for text in NO_FILES)],
)
def test_files_outside(tree: Path, text: str, outside: bool) -> None:
    text = text.replace("{in}", str(tree / "in")).replace("{out}", str(tree / "out"))
    with pytest.raises(BadRequestError) as caught:
        Folders([], tree / "in").input("file", text, None)
    assert (caught.value.param, "mcp --allow-dir" in str(caught.value)) == ("file", outside)
    assert len(str(caught.value)) < 500


def test_which_folders_count(tree: Path) -> None:
    song, secret = str(tree / "in/song.wav"), str(tree / "out/secret.wav")
    inside, outside = tree / "in", tree / "out"

    def may(path: str, named: list[Path], current: Path, roots: list[Path] | None) -> bool:
        try:
            return Folders(named, current).input("file", path, roots).path == Path(path)
        except BadRequestError:
            return False

    assert may(song, [], inside, None)
    assert not may(song, [], inside, [])  # announced roots, but an empty list
    assert may(secret, [], inside, [outside])
    assert not may(song, [], inside, [outside])
    assert may(song, [inside], outside, None)
    assert not may(secret, [inside], outside, None)
    assert may(song, [inside], outside, [outside])
    assert not may(song, [], Path("/"), None)  # The user did not choose this folder.
    assert may(song, [Path("/")], Path("/"), None)
    # A path relative to the current folder is allowed if its target is inside a root.
    assert Folders([], tree).input("file", "in/song.wav", [inside]).path == Path(song)
