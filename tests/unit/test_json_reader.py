"""Received JSON: the native reader against the standard library's, made strict."""

from __future__ import annotations

import json
import math
import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polymux import InvalidRequestError
from polymux._native import _core

DEEPEST = 200
BASE = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
TEXTS = st.text(st.characters(codec="utf-8"), max_size=20)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | TEXTS,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(TEXTS, inner, max_size=5),
    max_leaves=30,
)
PIECES = [
    *(b'{}[]:,"\\/ \t\n\r0123456789+-.eE'.decode()),
    *("true", "false", "null", "NaN", "Infinity", "-0", "1e999", "1e-999", "18446744073709551616"),
    *(
        "\\u",
        "\\ud800",
        "\\udc00\\ud800",
        "\\ud83d\\ude00",
        "\\u0000",
        '"a":1,',
        "\x00",
        "\x1f",
        "\x7f",
    ),
    *("\ufeff", "é", "9223372036854775808", "-9223372036854775809", "01", "1.", ".5", "/*x*/", "'"),
]
BYTES = [
    b"\xff",
    b"\xc0\xaf",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xe2\x82",
    b"\x80",
    b"\xf0\x9f\x98\x80",
]


class RefusedError(Exception):
    """The reference refuses."""


def only_once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) != len(pairs):
        raise RefusedError("twice")
    return dict(pairs)


def no_constant(name: str) -> None:
    raise RefusedError(name)


def finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise RefusedError(text)
    return number


def in_64_bits(text: str) -> int:
    if len(text) > 30 or not -(2**63) <= int(text) < 2**63:
        raise RefusedError(text)
    return int(text)


def depth(value: Any) -> int:
    if isinstance(value, dict):
        return 1 + max(map(depth, value.values()), default=0)
    if isinstance(value, list):
        return 1 + max(map(depth, value), default=0)
    return 0


def reference(body: bytes) -> Any:
    """The value, or RefusedError."""
    try:
        text = body.decode("utf-8-sig")
        value = json.loads(
            text,
            object_pairs_hook=only_once,
            parse_constant=no_constant,
            parse_float=finite,
            parse_int=in_64_bits,
        )
        json.dumps(value, ensure_ascii=False).encode()  # Half of a surrogate pair fails here.
    except (ValueError, RecursionError) as error:
        raise RefusedError(str(error)) from error
    if depth(value) > DEEPEST:
        raise RefusedError("too deep")
    return value


def strict(body: bytes) -> tuple[Any, RefusedError | None]:
    try:
        return reference(body), None
    except RefusedError as error:
        return None, error


def same(one: Any, other: Any) -> bool:
    """Equal, also in type and in the sign of zero."""
    return repr(one) == repr(other)


def native(body: bytes) -> tuple[Any, InvalidRequestError | None]:
    try:
        return _core.read_json("chat", None, body, True, 32 << 20)[2], None
    except InvalidRequestError as error:
        return None, error


def compare(body: bytes) -> None:
    """The same verdict, as far as JSON goes; and the same value."""
    values, error = native(body)
    wanted, reason = strict(body)
    if reason is not None:
        assert error is not None, (body, str(reason))
        return
    if (
        isinstance(wanted, dict)
        and set(wanted) <= {*BASE, "x"}
        and {name: wanted.get(name) for name in BASE} == BASE
        and ("x" in wanted)
    ):
        assert error is None, (body, str(error))
        assert same(values, wanted), body
    else:  # JSON, but not what the contract wants: the reader is not what refuses it.
        assert error is None or error.problems, (body, str(error))


def wrapped(document: str) -> bytes:
    return (json.dumps(BASE)[:-1] + f', "x": {document}}}').encode("utf-8", "surrogatepass")


@settings(max_examples=400, deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1]))
def test_random_documents(document: Any, ascii_only: bool, indent: int | None) -> None:
    compare(wrapped(json.dumps(document, ensure_ascii=ascii_only, indent=indent)))


def test_mutated_documents() -> None:
    compare_mutated(20_000, random.Random(20261121))


@pytest.mark.long
def test_a_million_mutated_documents() -> None:
    compare_mutated(1_000_000, random.Random(20261122))


def compare_mutated(count: int, source: random.Random) -> None:
    seeds = [
        '{"a":[1,2.5e3,"t\\n\\u00e9",null,true],"b":{"c":{}}}',
        '"\\ud83d\\ude00 \U0001f600"',
        "[[],[-0.0,1e-7]]",
    ]
    for _ in range(count):
        text = source.choice(seeds)
        for _ in range(source.randint(1, 3)):
            place = source.randrange(len(text) + 1)
            text = text[:place] + source.choice(PIECES) + text[place + source.randint(0, 2) :]
        body = wrapped(text)
        if source.random() < 0.1:
            place = source.randrange(len(body) + 1)
            body = body[:place] + source.choice(BYTES) + body[place:]
        compare(body)


@pytest.mark.parametrize("levels", [198, 199, 200, 201, 1025, 100_000])
@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}")])
def test_nesting(levels: int, pair: tuple[str, str]) -> None:
    """The body itself is one level."""
    document = pair[0] * levels + "1" + pair[1] * levels
    body = wrapped(document)
    if levels < DEEPEST:
        assert depth(_core.read_json("chat", None, body, True, 32 << 20)[2]) == levels + 1
    else:
        with pytest.raises(InvalidRequestError, match="nested deeper than 200 levels"):
            _core.read_json("chat", None, body, True, 32 << 20)


@settings(max_examples=200, deadline=None)
@given(
    DOCUMENTS.filter(lambda document: not isinstance(document, float) or math.isfinite(document))
)
def test_what_is_written_reads_back(document: Any) -> None:
    try:
        body = _core.write_json({**BASE, "x": document})
    except InvalidRequestError:
        with pytest.raises((RefusedError, ValueError)):
            json.dumps(document, allow_nan=False)
        return
    compare(body)
