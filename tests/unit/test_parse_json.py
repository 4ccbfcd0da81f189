from __future__ import annotations

import json
from typing import Any

import polymux
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polymux._native import _core
from support.json_values import DOCUMENTS, same

PIECES = [b"", b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b"0", b"-", b"e", b".", b"\x80",
          b"\x00", b"NaN", b"\\ud800", b"\n", b" ", b"\xef\xbb\xbf"]  # fmt: skip
NUMBERS = [
    "0", "-0", "-0.0", "9223372036854775807", "-9223372036854775808", "9223372036854775808",
    "18446744073709551615", "18446744073709551616", "-9223372036854775809", "5e-324", "1e-400",
    "1e400", "-1e400", "1.7976931348623157e308", "0.1", "1E5", "1e+5", "123456789012345678e1",
    "1" * 400,
]  # fmt: skip


def reference(body: bytes) -> Any:
    """`json.loads` according to RFC 8259: only UTF-8, no NaN, no half surrogate pairs."""

    def refuse(name: str) -> Any:
        raise ValueError(name)

    value = json.loads(body.decode("utf-8-sig"), parse_constant=refuse)
    json.dumps(value, ensure_ascii=False).encode()
    return value


@settings(max_examples=200, deadline=None)
@given(DOCUMENTS, st.booleans(), st.sampled_from([None, 1]), st.data())
def test_agrees_with_json_loads(
    document: Any, ascii_only: bool, indent: int | None, data: st.DataObject
) -> None:
    body = bytearray(json.dumps(document, ensure_ascii=ascii_only, indent=indent).encode())
    for _ in range(data.draw(st.integers(0, 3))):
        at = data.draw(st.integers(0, len(body)))
        body[at : at + data.draw(st.integers(0, 2))] = data.draw(st.sampled_from(PIECES))
    try:
        expected = reference(bytes(body))
    except ValueError:
        with pytest.raises(polymux.DecodeError):
            _core.parse_json(bytes(body))
    else:
        assert same(_core.parse_json(bytes(body)), expected)


@pytest.mark.parametrize("text", NUMBERS)
def test_numbers(text: str) -> None:
    assert same(_core.parse_json(text.encode()), json.loads(text))
    assert same(_core.parse_json(f'{{"a":[{text}]}}'.encode()), {"a": [json.loads(text)]})


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"   ", "empty"),
        (b"<html><body>502</body></html>", "<html><body>502"),
        (b'{"a":', '{"a":'),
        (b'{"a" 1}', '{"a" 1}'),
        (b"[1] [2]", "[1] [2]"),
        (b'"abc', '"abc'),
        (b'["\xff"]', "utf-8"),
        (b'["\xed\xa0\x80"]', "utf-8"),
        (b'["\\ud800"]', '["\\ud800"]'),
        (b'["\\x"]', '["\\x"]'),
        (b'["a\nb"]', '["a\\nb"]'),
        (b"[1, -Infinity]", "-infinity"),
        (b"01", "01"),
        (b"[" * 201 + b"]" * 201, "200"),
        (b"[" * 100_000, "[[[["),
        (b'{"a":' * 201 + b"1e999" + b"}" * 201, "200"),
        (b"[" * 201 + b"99999999999999999999" + b"]" * 201, "200"),
        (b"9" * 5000, "digits"),
        (b'[99999999999999999999, "\\ud800"]', "surrogates"),
        (b"\x1b[31m", "\\x1b[31m"),
    ],
)
def test_refusals_say_why_and_show_the_start(body: bytes, shown: str) -> None:
    with pytest.raises(polymux.DecodeError) as caught:
        _core.parse_json(body)
    assert shown in str(caught.value).lower()
    assert len(str(caught.value)) < 400
    assert "\x1b" not in str(caught.value)


def test_deepest_that_is_allowed() -> None:
    value = _core.parse_json(b"[" * 200 + b"]" * 200)
    depth = 0
    while value:
        value, depth = value[0], depth + 1
    assert depth == 199
