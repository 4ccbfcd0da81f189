from __future__ import annotations

import collections
import dataclasses
import enum
import json
import math
from typing import Any

import pytest
from hypothesis import given, settings
from polymux import InvalidRequestError
from polymux._native import _core
from support.json_values import DOCUMENTS


class Colour(enum.Enum):
    RED = "red"
    DEEP = {"shade": ["dark"]}  # noqa: RUF012


class Level(enum.IntEnum):
    LOW = 1


class Name(str, enum.Enum):  # noqa: UP042  # as on Python before StrEnum
    A = "a"


class Word(str):
    __slots__ = ()


@dataclasses.dataclass
class Message:
    role: str
    content: Any
    count: dataclasses.InitVar[int] = 3


class Bag(collections.abc.Mapping[str, Any]):
    def __init__(self, members: dict[Any, Any]) -> None:
        self.members = members

    def __getitem__(self, name: str) -> Any:
        return self.members[name]

    def __iter__(self) -> Any:
        return iter(self.members)

    def __len__(self) -> int:
        return len(self.members)


class Meddler(Bag):
    """Runs a function while a container is being written."""

    def __init__(self, what: Any) -> None:
        super().__init__({"m": 1})
        self.what = what

    def items(self) -> Any:
        self.what()
        return super().items()


Point = collections.namedtuple("Point", "x y")  # noqa: PYI024  # users have such classes
ORDERED = collections.OrderedDict(a=1, b=2)
ORDERED.move_to_end("a")


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS)
def test_text_is_what_the_standard_library_writes(value: Any) -> None:
    wanted = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode()
    assert _core.write_json(value) == wanted
    buffer = _core.JsonBuffer()
    buffer.write(value)
    assert bytes(buffer) == wanted


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (Colour.RED, '"red"'),
        (Colour.DEEP, '{"shade":["dark"]}'),
        (Level.LOW, "1"),
        ({Name.A: Word("b")}, '{"a":"b"}'),
        (Message("user", ["x", None]), '{"role":"user","content":["x",null]}'),
        (Bag({"a": Bag({})}), '{"a":{}}'),
        (ORDERED, '{"b":2,"a":1}'),
        (Point(1, 2.0), "[1,2.0]"),
        ([True, False, None, (), [], {}], "[true,false,null,[],[],{}]"),
        (2**63, "9223372036854775808"),
        (-(2**63) - 1, "-9223372036854775809"),
        ("\x7f\x00\ud7ff\ue000\U0010ffff", '"\x7f\\u0000\ud7ff\ue000\U0010ffff"'),
    ],
)
def test_what_stands_for_json_is_written(value: Any, text: str) -> None:
    assert _core.write_json(value) == text.encode()


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"messages": [{}, {"content": math.nan}]}, "messages[1].content"),
        ([-math.inf], "[0]"),
        (math.inf, ""),
        ({"a": {"b": ["x", "\ud800"]}}, "a.b[1]"),
        ({"a": "long enough for a block of sixteen \udfff \U0001f600"}, "a"),
        ({"a": {5: 1}}, "a"),
        (Bag({3: 1}), ""),
        ({"strange name\n": [math.nan]}, '"strange name\\n"[0]'),
        ({"é": math.nan}, '"é"'),
    ],
)
def test_what_json_cannot_say_is_refused_with_its_path(value: Any, path: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        _core.write_json(value)
    assert caught.value.problems[0].field == path
    assert path in str(caught.value)


@pytest.mark.parametrize(
    ("value", "named"),
    [
        ({"messages": [{"content": b"x"}]}, r"messages\[0\]\.content.*bytes"),
        (object(), "type object"),
        (Message, "type type"),
    ],
)
def test_other_types_are_a_type_error_with_the_path(value: Any, named: str) -> None:
    with pytest.raises(TypeError, match=named):
        _core.write_json(value)


@pytest.mark.parametrize(
    "around", [lambda v: [v], lambda v: {"a": v}, lambda v: Bag({"a": v}), lambda v: (v,)]
)
def test_two_hundred_levels_and_no_more(around: Any) -> None:
    value: Any = []
    for _ in range(199):
        value = around(value)
    json.loads(_core.write_json(value))
    with pytest.raises(InvalidRequestError, match="200"):
        _core.write_json(around(value))


def test_cycles_are_distinguished_from_depth() -> None:
    messages: list[Any] = [{"content": "x"}]
    messages[0]["self"] = messages
    bag = Bag({})
    bag.members["a"] = bag
    for value in ({"messages": messages}, bag):
        with pytest.raises(InvalidRequestError) as caught:
            _core.write_json(value)
        assert "200" not in str(caught.value)


def test_containers_that_change_while_they_are_written_do_no_harm() -> None:
    victim: dict[str, Any] = {}
    victim["a" * 30] = Meddler(victim.clear)
    victim["b"] = 1
    with pytest.raises(InvalidRequestError):
        _core.write_json(victim)
    items: list[Any] = []
    items += [Meddler(items.clear), "x", "y"]
    assert _core.write_json(items) == b'[{"m":1}]'
    values: dict[str, Any] = {"model": "m"}
    values["z"] = Meddler(values.clear)
    with pytest.raises(InvalidRequestError):
        _core.check("chat", "", values)


def test_a_buffer_is_used_again_and_guards_its_views() -> None:
    buffer = _core.JsonBuffer()
    assert (len(buffer), bytes(buffer)) == (0, b"")
    buffer.write({"a": 1})
    with memoryview(buffer) as view:
        assert view.readonly
        assert bytes(view) == b'{"a":1}'
        with pytest.raises(BufferError):
            buffer.write(1)
        with pytest.raises(BufferError):
            buffer.clear()
    buffer.write([])
    assert bytes(buffer) == b"[]"
    with pytest.raises(TypeError):
        buffer.write([object()])
    assert len(buffer) == 0
    for meddle in (lambda: buffer.write(1), lambda: memoryview(buffer)):
        with pytest.raises(BufferError):
            buffer.write([Meddler(meddle)])
    buffer.write("x")
    buffer.clear()
    assert len(buffer) == 0
    with pytest.raises(TypeError):
        _core.JsonBuffer(1)  # type: ignore[call-arg]
