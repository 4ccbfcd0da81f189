"""JSON, forms and Python objects give the same verdict, because one checker reads all three."""

from __future__ import annotations

import io
import json
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polymux import InvalidRequestError, contract
from polymux._native import _core
from support.json_values import SCALARS, TEXTS

MEGABYTES_32 = 32 << 20
CHAT = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
VIDEO = contract.operation("generate_video").variants[0]
VIDEO_NAMES = ["prompt", "fps", "width", "seed", "guidance_scale", "remove_watermark", "promt"]
NAMES = [field.name for field in contract.operation("chat").variants[0].fields]
WORDS = st.sampled_from(["user", "auto", "text", "http://a.example/", "1e3", "5"])
INNER_NAMES = st.sampled_from(["role", "content", "type", "text", "name"])
VALUES = st.recursive(
    SCALARS.filter(lambda value: not isinstance(value, int) or -(2**63) <= value < 2**63) | WORDS,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(TEXTS | INNER_NAMES, inner, max_size=4)
    ),
    max_leaves=12,
)
BODIES = st.dictionaries(st.sampled_from([*NAMES, "proxy", "streem", "x"]), VALUES, max_size=8).map(
    lambda extra: {**CHAT, **extra}
)


def verdict(call: Any, *arguments: Any) -> tuple[Any, ...]:
    """All problems, in order."""
    try:
        call(*arguments)
    except InvalidRequestError as error:
        return (str(error), *error.problems)
    return ()


def of_json(operation: str, body: dict[str, Any]) -> tuple[Any, ...]:
    text = json.dumps(body).encode()
    return verdict(_core.read_json, operation, None, text, False, MEGABYTES_32)


@settings(max_examples=50, deadline=None)
@given(BODIES)
def test_json_and_python_give_the_same_texts(body: dict[str, Any]) -> None:
    assert verdict(_core.check, "chat", "", body) == of_json("chat", body)
    text = json.dumps(body).encode()
    alone = verdict(_core.check_json, "chat", None, text, False, MEGABYTES_32)
    assert alone == of_json("chat", body)


def video_value(name: str) -> st.SearchStrategy[Any]:
    """A value of the field's own type: every value of a form is text."""
    types = {field.name: field.type for field in VIDEO.fields}
    numbers = st.integers(0, 100) | st.integers(-(2**63), 2**63 - 1)
    return {"integer": numbers, "number": numbers, "boolean": st.booleans()}.get(
        types.get(name, "string"), TEXTS.filter(bool)
    )


@settings(max_examples=100, deadline=None)
@given(st.fixed_dictionaries({}, optional={name: video_value(name) for name in VIDEO_NAMES}))
def test_forms_and_python_give_the_same_verdict(fields: dict[str, Any]) -> None:
    form = [
        (name, value if isinstance(value, str) else str(value).lower())
        for name, value in fields.items()
    ]
    as_form = verdict(_core.read_form, "generate_video", None, form, False)
    as_python = verdict(_core.check, "generate_video", VIDEO.id, fields)
    assert [p.field for p in as_form[1:]] == [p.field for p in as_python[1:]]
    for one, other in zip(as_form[1:], as_python[1:], strict=True):
        assert one.message.replace('"', "") == other.message.replace('"', "")


def test_files_are_given_in_many_ways() -> None:
    named = ("talk.mp4", Path("talk.mp4"), ("talk.mp4", b"x"))
    for value in (b"x", bytearray(b"x"), io.BytesIO(b"x"), iter([b"x"]), *named):
        _core.check("transcribe", "", {"audio": value})
    for wrong in (5, 1.5, True, [b"x"], {"a": 1}):
        (problem,) = verdict(_core.check, "transcribe", "", {"audio": wrong})[1:]
        assert problem.field == "audio"
        assert "audio" in problem.message


@pytest.mark.parametrize(
    ("extra", "path", "named"),
    [
        ({"x": 2**63}, "x", "64"),
        ({"x": [{"y": -(2**70)}]}, "x[0].y", "64"),
        ({"seed": 2**64}, "seed", "64"),
        ({"temperature": math.nan}, "temperature", ""),
        ({"x": math.nan}, "x", ""),
        ({"x": {1: 2}}, "x", "int"),
        ({"user": "\ud800"}, "user", ""),
    ],
)
def test_what_json_cannot_say_is_a_problem(extra: dict[str, Any], path: str, named: str) -> None:
    def both() -> None:
        _core.check("chat", "", {**CHAT, **extra})
        _core.write_json({**CHAT, **extra})

    found = verdict(both)
    assert found[1].field == path
    assert named in found[0]


def test_other_types_and_unknown_names() -> None:
    with pytest.raises(TypeError, match=r"messages\[0\]\.content.*bytes"):
        _core.check("chat", "", {"model": "m", "messages": [{"role": "user", "content": b"x"}]})
    with pytest.raises(InvalidRequestError, match="chatt"):
        _core.check("chatt", "", {})
    with pytest.raises(InvalidRequestError, match="Q"):
        _core.check("generate_image", "Q", {})
