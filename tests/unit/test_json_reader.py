"""The native JSON reader, compared with a strict version of the standard library's."""

from __future__ import annotations

import json
import math
import random
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polymux import InvalidRequestError
from polymux._native import _core
from support.json_values import DOCUMENTS, same

MAX_DEPTH = 200
BASE = {"model": "m", "messages": [{"role": "user", "content": "x"}]}
SEEDS = ['{"a":[1,2.5e3,"t\\n\\u00e9",null,true],"b":{"c":{}}}', '"\\ud83d\\ude00 \U0001f600"',
         "[[],[-0.0,1e-7]]"]  # fmt: skip
PIECES = [
    *'{}[]:,"\\/ \t\n\r0123456789+-.eE\ufeffé\x00\x1f\x7f\'',
    "true", "false", "null", "NaN", "Infinity", "-0", "1e999", "1e-999", "18446744073709551616",
    "9223372036854775808", "-9223372036854775809", "01", "1.", ".5", "/*x*/", '"a":1,',
    r"\u", r"\ud800", r"\udc00\ud800", r"\ud83d\ude00", r"\u0000",
]  # fmt: skip
BYTES = [b"\xff", b"\xc0\xaf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"\xe2\x82", b"\x80",
         b"\xf0\x9f\x98\x80"]  # fmt: skip


class RefusedError(Exception):
    pass


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
    if isinstance(value, (dict, list)):
        inner = value.values() if isinstance(value, dict) else value
        return 1 + max(map(depth, inner), default=0)
    return 0


def reference(body: bytes) -> Any:
    """Parse `body` strictly, or raise RefusedError."""
    try:
        value = json.loads(
            body.decode("utf-8-sig"),
            object_pairs_hook=only_once,
            parse_constant=no_constant,
            parse_float=finite,
            parse_int=in_64_bits,
        )
        json.dumps(value, ensure_ascii=False).encode()  # fails for half of a surrogate pair
    except (ValueError, RecursionError) as error:
        raise RefusedError(str(error)) from error
    if depth(value) > MAX_DEPTH:
        raise RefusedError("too deep")
    return value


def native(body: bytes) -> Any:
    return _core.read_json("chat", None, body, True, 32 << 20)[2]


def compare(body: bytes) -> None:
    """Check that both readers accept the same documents and return the same values."""
    try:
        wanted = reference(body)
    except RefusedError:
        with pytest.raises(InvalidRequestError):
            native(body)
        return
    if isinstance(wanted, dict) and "x" in wanted and {**wanted, "x": 0} == {**BASE, "x": 0}:
        assert same(native(body), wanted), body
        return
    with suppress(InvalidRequestError):  # Valid JSON that the contract refuses.
        native(body)


def wrapped(document: str) -> bytes:
    return (json.dumps(BASE)[:-1] + f', "x": {document}}}').encode("utf-8", "surrogatepass")


@settings(max_examples=100, deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1]))
def test_random_documents(document: Any, ascii_only: bool, indent: int | None) -> None:
    compare(wrapped(json.dumps(document, ensure_ascii=ascii_only, indent=indent)))
    compare(_core.write_json({**BASE, "x": document}))


def test_mutated_documents() -> None:
    compare_mutated(4_000, random.Random(20261121))


@pytest.mark.long
def test_a_million_mutated_documents() -> None:
    compare_mutated(1_000_000, random.Random(20261122))


def compare_mutated(count: int, source: random.Random) -> None:
    for _ in range(count):
        text = source.choice(SEEDS)
        for _ in range(source.randint(1, 3)):
            place = source.randrange(len(text) + 1)
            text = text[:place] + source.choice(PIECES) + text[place + source.randint(0, 2) :]
        body = wrapped(text)
        if source.random() < 0.1:
            place = source.randrange(len(body) + 1)
            body = body[:place] + source.choice(BYTES) + body[place:]
        compare(body)


@pytest.mark.parametrize("levels", [199, 200, 100_000])
@pytest.mark.parametrize("pair", [("[", "]"), ('{"a":', "}")])
def test_nesting(levels: int, pair: tuple[str, str]) -> None:
    """The body adds one level."""
    body = wrapped(pair[0] * levels + "1" + pair[1] * levels)
    if levels < MAX_DEPTH:
        assert depth(native(body)) == levels + 1
    else:
        with pytest.raises(InvalidRequestError, match="200"):
            native(body)
