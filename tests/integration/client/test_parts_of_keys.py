"""No text shows a long part of a key either: of one cut in two, or repeated in part (K19, C02)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux._util import redaction
from polymux._util.text import shortened, shown
from polymux.client.remote_file import RemoteFile
from polymux.errors import PolymuxError
from servers import steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.misbehaving import MisbehavingServer

SECRET = "sk-abcdefghij-KLMNOPQRST-0123456789"
MAX_FRAGMENT = 7
PADS = [*range(0, 300, 7), 299]


def max_fragment(text: str, secret: str = SECRET) -> int:
    """How many characters of the key stand in a row in the text."""
    most = 0
    for start in range(len(secret)):
        while start + most < len(secret) and secret[start : start + most + 1] in text:
            most += 1
    return most


def job(**members: object) -> steps.Step:
    return steps.answer(200, json.dumps({"id": "j1", **members}).encode())


def event(data: bytes, kind: bytes = b"") -> list[steps.Step]:
    return [steps.event_stream(), steps.send(kind + b"data: " + data + b"\n\n"), steps.close()]


def padded(pad: int, tail: int = 900) -> str:
    return "x" * pad + SECRET + "y" * tail


ANSWERS: dict[str, tuple[Callable[[int], list[steps.Step]], Callable[[polymux.Client], object]]] = {
    "a job's error": (
        lambda pad: [job(status="failed", error=padded(pad))],
        lambda client: client.generate_image("x"),
    ),
    "a status": (
        lambda pad: [steps.answer(500, json.dumps({"error": padded(pad)}).encode())],
        lambda client: client.free_chat("x"),
    ),
    "a page": (
        lambda pad: [steps.answer(500, f"<p>{padded(pad)}".encode())],
        lambda client: client.free_chat("x"),
    ),
    "no JSON": (
        lambda pad: [steps.answer(200, f"<p>{padded(pad)}".encode())],
        lambda client: client.free_chat("x"),
    ),
    "an error in the place of an answer": (
        lambda pad: [steps.answer(200, json.dumps({"error": padded(pad)}).encode())],
        lambda client: client.free_chat("x"),
    ),
    "a stream": (
        lambda pad: event(json.dumps({"error": {"message": padded(pad)}}).encode()),
        lambda client: list(client.chat("x", stream=True)),
    ),
    "an event": (
        lambda pad: event(padded(pad).encode(), b"event: error\n"),
        lambda client: list(client.predictions.events("a")),
    ),
    "a place": (
        lambda pad: [steps.redirect(307, f"http://127.0.0.1:1/{padded(pad, 200)}")],
        lambda client: client.free_chat("x"),
    ),
    "a code": (
        lambda pad: [
            steps.answer(
                400, json.dumps({"error": {"message": "no", "code": padded(pad)}}).encode()
            )
        ],
        lambda client: client.free_chat("x"),
    ),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_a_key_where_a_text_is_shortened(name: str, server: MisbehavingServer) -> None:
    """Hidden before the text is cut, wherever that is."""
    answer, ask = ANSWERS[name]
    with polymux.Client(server.url, SECRET, retry=0, timeout=20) as client:
        for pad in PADS:
            server.script(*answer(pad))
            with pytest.raises(PolymuxError) as caught:
                ask(client)
            told = f"{caught.value} {caught.value!r} {vars(caught.value)}"
            assert max_fragment(told) <= MAX_FRAGMENT, (pad, told)


def test_what_results_show(server: MisbehavingServer) -> None:
    with polymux.Client(server.url, SECRET, retry=0, timeout=20) as client:
        for pad in PADS:
            server.script(job(status="succeeded", model=padded(pad)))
            server.script(steps.answer(200, json.dumps([{"song_name": padded(pad)}]).encode()))
            address = f"http://127.0.0.1/{padded(pad)}?a"
            server.script(steps.answer(200, json.dumps({"url": address}).encode()))
            made = client.generate_image("x"), client.search_music("x"), client.download_music("x")
            for one in made:
                assert max_fragment(repr(one)) <= MAX_FRAGMENT, repr(one)
            assert str(made[-1]) == address
    assert repr(RemoteFile(f"http://a.example/{SECRET}")) == "RemoteFile('http://a.example/***')"


@pytest.mark.parametrize("part", [SECRET[:20], SECRET[5:13], SECRET[-9:], SECRET[:-1], SECRET * 2])
def test_a_server_that_repeats_a_part_of_the_key(part: str, server: MisbehavingServer) -> None:
    body = json.dumps({"error": {"message": f"the key {part}... is wrong", "code": part}})
    server.script(steps.answer(401, body.encode(), headers=[("X-Key", part)]))
    with (
        polymux.Client(server.url, SECRET, retry=0, timeout=20) as client,
        pytest.raises(polymux.AuthenticationError) as caught,
    ):
        client.free_chat("x")
    error = caught.value
    assert error.message.replace("******", "***") == "the key ***... is wrong"
    for text in (repr(vars(error)), str(error), repr(error.body), repr(error.headers)):
        assert max_fragment(text) <= MAX_FRAGMENT, text


def test_parts_at_every_place_of_a_text() -> None:
    """Whatever stands around; what is shorter, or only looks alike, stays."""
    polymux.Client("http://127.0.0.1:1", SECRET).close()
    for before in range(12):
        for size in range(1, len(SECRET) + 1):
            for start in range(len(SECRET) - size + 1):
                part = SECRET[start : start + size]
                text = f"{'<' * before}{part}>"
                wanted = text if size <= MAX_FRAGMENT else f"{'<' * before}***>"
                assert redaction.redact(text) == wanted
    close = "sk-abcd efghij- KLMNOPQ RST-012"
    assert redaction.redact(close) == close
    assert (
        max_fragment(redaction.redact(f"{SECRET[3:12]}{SECRET[20:30]}{SECRET[1:9]}"))
        <= MAX_FRAGMENT
    )


def test_keys_with_what_python_escapes() -> None:
    secret = "a\\b'c\"d-0123456789"
    polymux.Client("http://127.0.0.1:1", secret).close()
    assert shown(f"the key {secret}") == "'the key ***'"
    assert shortened(f"{'x' * 190}{secret}{'y' * 90}").count("0123456789") == 0


def test_very_many_keys_and_very_long_ones() -> None:
    """Old ones are forgotten, with all that was kept of them; a long one hides in no long time."""
    before = len(redaction._PIECES)
    for number in range(5000):
        redaction.register_secret(f"key-{number:06}-" + f"{number * 7919:010}" * 2)
    assert len(redaction._KNOWN) <= redaction._MAX_SECRETS
    assert len(redaction._PIECES) < before + 40 * redaction._MAX_SECRETS
    redaction.register_secret("a" * 60_000)
    assert "a" * 8 not in redaction.redact("b" + "a" * 50_000)
