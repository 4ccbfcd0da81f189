from __future__ import annotations

import json
import random
import time
from typing import Any

import polymux
import pytest
from polymux import contract

CHAT = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
# Generous for a busy machine. Without a limit these bodies take minutes or crash the process.
SLOWEST_S = 5.0


def refused(body: bytes, operation: str = "chat", **options: Any) -> str:
    started = time.monotonic()
    with pytest.raises(polymux.InvalidRequestError) as caught:
        contract.read_json(operation, body, **options)
    assert time.monotonic() - started < SLOWEST_S
    text = str(caught.value)
    assert len(text) <= 2048
    assert text.isprintable()
    return text


def chat(**members: object) -> bytes:
    return json.dumps({**CHAT, **members}).encode()


def raw(field: str, text: bytes) -> bytes:
    """A chat with one more member; `member` need not be JSON."""
    return b'{"%s":%s,%s' % (field.encode(), text, chat()[1:])


def taken(body: bytes | bytearray, operation: str = "chat", **options: Any) -> dict[str, Any]:
    return dict(contract.read_json(operation, body, **options).values)


CONSTANTS = [b"NaN", b"Infinity", b"-Infinity", b"1e999", b"-1e999"]
BIG_INTEGERS = [b"9" * 5000, str(2**63).encode(), str(-(2**63) - 1).encode()]
NO_UTF8 = [b"\xff\xfe", b"\xc0\xaf", b"\xe2\x82", b"\xed\xa0\x80", b"\xf4\x90\x80\x80"]
HALVES = [rb"\ud800", rb"\udc00", rb"\ud800x", rb"\udc00\ud800"]
DEEP = [
    b"[" * 100_000 + b"]" * 100_000,
    b'{"a":' * 1_025 + b"1" + b"}" * 1_025,
    b'{"z":' + b"[" * 250 + b"]" * 250 + b"}",
]
UTF_16_AND_32 = [chat().decode().encode(f"utf-{one}") for one in ("16", "16-le", "16-be", "32")]
#: The word that the error names, and the bodies that give this error.
REFUSED: dict[str, list[tuple[str, list[bytes]]]] = {
    "J01": [("", [b"", b"  \n ", b"\xef\xbb\xbf"])],
    "J02": [("",
             [b"{", b'{"a":1,}', b"{'a':1}", b"{} {}", b"[1}", b"{,}", b"nul"])],
    "J03": [("object", [b"[]", b'"x"', b"1", b"null", b"true", b"1.5"])],
    "J04": [
        ("user", [raw("user", b'"x","user":1'), raw("us\\u0065r", b'1,"user":1')]),
        ("z", [raw("z", b'1,"z":2')]),
        ("z[0].a.b", [raw("z", b'[{"a":{"b":1,"b":1}}]')]),
    ],
    "J05 J06": [("", [raw(field, number) for number in CONSTANTS
                                         for field in ("temperature", "passed_on")])],
    "J07": [("", [raw("seed", number) for number in BIG_INTEGERS])],
    "J08": [("200", DEEP),
            ("", [b"[" * 100_000, b'{"a":' * 100_000])],
    "J09": [("UTF-8", [raw("user", b'"' + one + b'"') for one in NO_UTF8])],
    "J10": [("", UTF_16_AND_32)],
    "J11": [("", [raw(field, b'"' + one + b'"') for one in HALVES
                           for field in ("user", "model")])],
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_bodies_that_are_refused(case: str) -> None:
    for named, bodies in REFUSED[case]:
        for body in bodies:
            assert named in refused(body), body[:100]


def test_bodies_that_are_nearly_refused() -> None:
    assert taken(chat().decode().encode("utf-8-sig"))["model"] == "m"
    assert taken(raw("temperature", b"1e-999"))["temperature"] == 0.0
    assert taken(chat(seed=2**63 - 1))["seed"] == 2**63 - 1
    assert taken(raw("user", rb'"\ud83d\ude00"'))["user"] == "\U0001f600"


def test_j12_nul() -> None:
    content = [{"role": "user", "content": "a\0b"}]
    assert taken(chat(messages=content))["messages"] == content
    assert "model" in refused(chat(model="a\0b"))
    url = json.dumps({"url": "https://a.example/\0"}).encode()
    assert "url" in refused(url, "download_video")


def test_j13_size() -> None:
    content = [{"role": "user", "content": "x" * (10 << 20)}]
    body = chat(messages=content)
    assert taken(body, max_bytes=len(body))["messages"] == content
    message = refused(body, max_bytes=len(body) - 1)
    assert str(len(body)) in message
    assert str(len(body) - 1) in message


@pytest.mark.parametrize("count", [100_000, pytest.param(1_000_000, marks=pytest.mark.long)])
def test_j14_very_many_of_everything(count: int) -> None:
    started = time.monotonic()
    many = b'{"model":"m","messages":[' + b",".join([b'{"role":"x"}'] * count) + b"]}"
    assert "10000" in refused(many)
    keys = b",".join(b'"k%d":0' % number for number in range(count))
    assert len(taken(raw("z", b"{%s}" % keys))["z"]) == count
    assert time.monotonic() - started < 4 * SLOWEST_S


def test_j16_stream_is_a_boolean() -> None:
    for value in ("true", 1, 0, [], {}):
        assert "stream" in refused(chat(stream=value))
    assert "stream" not in taken(chat(stream=None))
    assert taken(chat(stream=True))["stream"] is True


def test_j17_required_fields() -> None:
    assert "messages" in refused(chat(messages=[]))
    body = json.dumps({"messages": CHAT["messages"]}).encode()
    assert "model" in refused(body)


@pytest.mark.parametrize(
    ("content_type", "encoding"),
    [
        ("application/JSON", "json"),
        (" application/json ;charset=UTF-8", "json"),
        ('application/json; charset="utf-8"', "json"),
        ('application/json;a="x;charset=utf-7\\";"; charset=utf-8', "json"),
        ("multipart/form-data; boundary=x", "multipart"),
        ('Multipart/Form-Data; a=b; Boundary="x y"', "multipart"),
    ],
)
def test_j18_content_types_that_are_taken(content_type: str, encoding: str) -> None:
    assert contract.encoding_of(content_type) == encoding


@pytest.mark.parametrize(
    "content_type",
    [
        None, "  ", "text/json", "application/json; charset=utf-7", "application/json; charset=",
        'application/json; charset="utf-16"', "application/jsonp", "application/ld+json",
        "application/x-www-form-urlencoded", "multipart/form-data",
        'multipart/form-data; boundary=""', 'multipart/form-data; x="boundary=y',
        "multipart/mixed; boundary=x", ";application/json", "application/json, text/plain",
        "*/*", "\x1b[31m" * 1000,
    ],
)  # fmt: skip
def test_j18_content_types_that_are_refused(content_type: str | None) -> None:
    with pytest.raises(polymux.UnsupportedEncodingError) as caught:
        contract.encoding_of(content_type)
    assert caught.value.code == "unsupported_encoding"
    assert str(caught.value).isprintable()
    assert len(str(caught.value)) < 300


@pytest.mark.parametrize("content_type", [None, "text/plain", "multipart/form-data", "a/json"])
def test_errors_name_only_accepted_types(content_type: str | None) -> None:
    with pytest.raises(polymux.UnsupportedEncodingError, match="application/json") as caught:
        contract.encoding_of(content_type, ["json"])
    assert "multipart" not in str(caught.value).replace(str(content_type), "")


@pytest.mark.parametrize("operation", contract.operations(), ids=lambda one: one.name)
def test_j19_bodies_of_the_other_encoding(operation: contract.Operation) -> None:
    for variant in operation.variants:
        for encoding in {"json", "multipart"} - set(variant.accepts):
            read: Any = contract.read_json if encoding == "json" else contract.read_form
            with pytest.raises(polymux.UnsupportedEncodingError):
                read(operation.name, b"{}" if encoding == "json" else [], model=variant.model)


def test_j20_unknown_fields() -> None:
    checked = contract.read_json("search_music", b'{"song":"x","shuffle":true}')
    assert checked.values == {"song": "x"}
    [warning] = checked.warnings
    assert "shuffle" in warning
    assert taken(chat(min_p=0.1))["min_p"] == 0.1
    for name in ("api_base", "base_url", "api_key", "headers", "extra_headers", "proxy"):
        assert name in refused(chat(**{name: "x"}))


def test_j21_names_chosen_to_collide() -> None:
    source = random.Random(7)
    # Equal lengths and ends, in an order that is bad for naive sorting, too.
    names = [f"k{source.getrandbits(60):015x}k" for _ in range(100_000)]
    body = chat(**dict.fromkeys(sorted(names) + sorted(names, reverse=True), 1))
    started = time.monotonic()
    assert set(names) <= set(taken(body))
    assert time.monotonic() - started < SLOWEST_S


def test_j22_text_is_data() -> None:
    for text in ("{{7*7}}", "${jndi:ldap://x}", "<script>alert(1)</script>", "'; --"):
        content = [{"role": "user", "content": text}]
        assert taken(chat(messages=content))["messages"] == content


def test_errors_show_values_short_and_printable() -> None:
    message = refused(chat(service_tier="\x1b[2J\u202e" + "x" * 1_000_000))
    assert len(message) < 400
    assert "\\u001b" in message


def test_results_share_nothing_with_the_body() -> None:
    body = bytearray(chat(user="somebody"))
    values = taken(body)
    body[:] = b"\0" * len(body)
    taken(chat(user="else"))
    assert values["user"] == "somebody"


def test_a_long_body_is_read_as_a_short_one() -> None:
    """chat passes unknown members on; search_music drops them with a warning."""
    nested = {"a": [1, 2.5, None, True, {"b": "\u00e9"}] * 3}
    for name, members in (("chat", CHAT), ("search_music", {"song": "x", "limit": "5"})):
        body = json.dumps({**members, "other": nested, "temperature": None}).encode()
        short, long = (contract.read_json(name, body + b" " * many) for many in (0, 1 << 16))
        assert repr(long) == repr(short)
    assert short.values["limit"] == 5
    assert short.warnings
