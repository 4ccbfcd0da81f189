"""Keys are hidden before a text is shortened, so that no part of a key is left (K19, C02)."""

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
#: Closer than the key is long, up to where messages are cut.
PADS = [*range(0, 320, 30), 590, 970, 990]


def assert_hidden(text: str) -> None:
    assert SECRET[:5] not in text, text
    assert SECRET[-5:] not in text, text


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
            assert_hidden(told)


def test_what_results_show(server: MisbehavingServer) -> None:
    with polymux.Client(server.url, SECRET, retry=0, timeout=20) as client:
        for pad in PADS:
            server.script(job(status="succeeded", model=padded(pad)))
            server.script(steps.answer(200, json.dumps([{"song_name": padded(pad)}]).encode()))
            address = f"http://127.0.0.1/{padded(pad)}?a"
            server.script(steps.answer(200, json.dumps({"url": address}).encode()))
            made = client.generate_image("x"), client.search_music("x"), client.download_music("x")
            for one in made:
                assert_hidden(repr(one))
            assert str(made[-1]) == address
    assert repr(RemoteFile(f"http://a.example/{SECRET}")) == "RemoteFile('http://a.example/***')"


def test_keys_with_what_python_escapes() -> None:
    secret = "a\\b'c\"d-0123456789"
    polymux.Client("http://127.0.0.1:1", secret).close()
    assert shown(f"the key {secret}") == "'the key ***'"
    assert shortened(f"{'x' * 190}{secret}{'y' * 90}").count("0123456789") == 0


def test_the_longest_key_is_hidden_first() -> None:
    """A key can begin with another one."""
    redaction.register_secret("sk-0123", "sk-0123-456789")
    assert redaction.redact("sk-0123-456789 and sk-0123") == "*** and ***"


def test_the_oldest_of_very_many_keys_are_forgotten() -> None:
    for number in range(5000):
        redaction.register_secret(f"key-{number:06}")
    assert redaction.redact("key-000000 key-004999") == "key-000000 ***"
