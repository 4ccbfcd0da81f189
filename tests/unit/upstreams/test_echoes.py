"""A key that comes in the pieces of a stream, and texts that only begin as one does."""

from __future__ import annotations

import json
from itertools import pairwise
from typing import Any

import pytest
from polymux import ChatChunk
from polymux._util.redaction import register_secret
from polymux.upstreams.key_redaction import Echoes, WrittenKey

KEY = "gsk-canary-0123456789abcdefghij"
register_secret(KEY)


def piece(text: str, *, finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": {"content": text} | delta, "finish_reason": finish}
    return {"id": "c1", "choices": [choice]}


def told(values: list[dict[str, Any]], key: str = KEY) -> list[dict[str, Any]]:
    """What callers get of these chunks."""
    echoes = Echoes(WrittenKey(key))
    found = [echoes.without(ChatChunk(json.dumps(one).encode())) for one in values]
    return [one.json() for one in (*found, *echoes.rest())]


def texts(values: list[dict[str, Any]]) -> str:
    return "".join(one["choices"][0]["delta"].get("content") or "" for one in values)


def cut(text: str, *places: int) -> list[str]:
    return [text[start:end] for start, end in pairwise([0, *places, len(text)])]


@pytest.mark.parametrize("place", range(1, len(KEY)))
def test_a_key_in_two_chunks(place: int) -> None:
    """Of its first letters, which are no secret, some may stand before the mask."""
    said = f"It is {KEY}, I think"
    found = texts(told([piece(one) for one in cut(said, 6 + place)]))
    assert found == f"It is {KEY[:place] if place <= 3 else ''}***, I think"


@pytest.mark.parametrize("size", [1, 2, 3, 5, 8])
def test_a_key_in_many_chunks(size: int) -> None:
    """Twice, and with what begins as it does before it."""
    said = f"gsk-ca {KEY} gsgsk-{KEY}{KEY}!"
    values = [piece(one) for one in cut(said, *range(size, len(said), size))]
    found = texts(told(values))
    assert KEY[:8] not in found
    assert found.count("***") == 3
    assert found.startswith("gsk-ca ")
    assert found.endswith("***!")


def test_what_only_begins_as_it_does() -> None:
    """All of it comes, as soon as it is decided; chunks that nothing is held of are the same."""
    echoes = Echoes(WrittenKey(KEY))
    sent = ["It is", " gsk-can", "not so", " much", " g", "s", "k"]
    chunks = [ChatChunk(json.dumps(piece(one)).encode()) for one in sent]
    found = [echoes.without(one) for one in chunks]
    assert [one.content for one in found] == [
        "It is",
        " ",
        "gsk-cannot so",
        " much",
        " g",
        "s",
        "k",
    ]
    assert [one is other for one, other in zip(found, chunks, strict=True)] == [
        True, False, False, True, True, True, True,
    ]  # fmt: skip
    assert list(echoes.rest()) == []


@pytest.mark.parametrize("finish", [None, "stop"])
def test_what_is_held_to_the_end(finish: str | None) -> None:
    """It comes with the choice's last chunk, else in a chunk of its own; a long part does not."""
    ends: list[dict[str, Any]] = [{"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]}]
    found = told([piece("Begin with gsk-ca"), *(ends if finish else [])])
    assert [texts([one]) for one in found] == ["Begin with ", "gsk-ca"]
    assert found[1]["choices"][0]["finish_reason"] == finish
    found = told([piece(f"It is {KEY[:-2]}"), *(ends if finish else [])])
    assert texts(found) == "It is ***"


def test_each_text_by_itself() -> None:
    """Thinking, arguments of tools and other choices come between the pieces of a text."""
    half, rest = KEY[:12], KEY[12:]
    call = {"index": 1, "function": {"arguments": f'{{"k": "{half}'}}
    more = {"index": 1, "function": {"arguments": f'{rest}"}}'}}
    values = [
        piece(f"a {half}"),
        piece("", reasoning=f"b {half}"),
        piece("", tool_calls=[call]),
        {"choices": [{"index": 1, "delta": {"content": f"c {half}"}}]},
        piece(rest),
        piece("", reasoning=rest),
        piece("", tool_calls=[more]),
        {"choices": [{"index": 1, "delta": {"content": f"{rest}."}}]},
    ]
    found = told(values)
    deltas = [one["choices"][0]["delta"] for one in found]
    assert (deltas[0]["content"], deltas[4]["content"]) == ("a ", "***")
    assert (deltas[1]["reasoning"], deltas[5]["reasoning"]) == ("b ", "***")
    arguments = [one["tool_calls"][0]["function"]["arguments"] for one in (deltas[2], deltas[6])]
    assert arguments == ['{"k": "', '***"}']
    assert (deltas[3]["content"], deltas[7]["content"]) == ("c ", "***.")


def test_held_texts_of_several_fields_at_the_end() -> None:
    call = {"index": 2, "function": {"arguments": "gsk-c"}}
    found = told([piece("gsk-c", reasoning="gsk-ca", tool_calls=[call])])
    assert [one["choices"][0]["delta"] for one in found[1:]] == [
        {"content": "gsk-c"},
        {"reasoning": "gsk-ca"},
        {"tool_calls": [{"index": 2, "function": {"arguments": "gsk-c"}}]},
    ]


def test_pieces_of_freellm() -> None:
    values = [{"response": f"It is {KEY[:9]}"}, {"response": f"{KEY[9:]}. gsk-"}]
    assert told(values) == [{"response": "It is "}, {"response": "***. "}, {"response": "gsk-"}]


@pytest.mark.parametrize("key", ["sk/with/a-slash-0123456789", 'sk"quoted\\key-0123456789'])
@pytest.mark.parametrize("ascii_only", [False, True])
def test_keys_that_json_writes_otherwise(key: str, ascii_only: bool) -> None:
    """By escapes that it must have, and by those that it need not."""
    register_secret(key)
    for place in range(1, len(key)):
        echoes = Echoes(WrittenKey(key))
        found = []
        for part in (key[:place], key[place:]):
            written = "".join(f"\\u{ord(one):04x}" for one in part)
            data = json.dumps(piece("TEXT")).replace(
                "TEXT", written if ascii_only else json.dumps(part)[1:-1]
            )
            found.append(echoes.without(ChatChunk(data.encode())).content)
        assert "".join(found) == f"{key[:place] if place <= 3 else ''}***"


def test_logprobs_tell_no_piece_of_it() -> None:
    """Of chunks in which a text was changed."""
    tokens = {"content": [{"token": KEY[:12], "logprob": -0.1}]}
    values = [piece(KEY[:12]), piece(KEY[12:])]
    values[0]["choices"][0]["logprobs"] = tokens
    assert KEY[4:12] not in json.dumps(told(values))


def test_very_many_texts() -> None:
    """An upstream cannot have any number of them held."""
    calls = [{"index": one, "function": {"arguments": "gsk-c"}} for one in range(100)]
    found = told([piece("", tool_calls=calls)])
    assert len(found) == 65
    assert json.dumps(found[0]).count("***") == 36
