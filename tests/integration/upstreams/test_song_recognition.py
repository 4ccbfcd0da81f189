"""`identify_song` with a recognition server on this machine and all its responses."""

from __future__ import annotations

import asyncio
import json
import logging
import struct
import threading
import zlib
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from polymux.errors import (
    InternalServerError,
    NoMatchError,
)
from polymux.fetch.fetcher import FetchPolicy
from servers import song_providers as answers
from servers.song_recognizer import NO_MATCH, SONG, SongRecognizer
from support.commands import run
from support.polymux_server import form
from support.song_recognitions import (
    PATH,
    RATE_HZ,
    backend,
    local,
    music,
    recording,
    served,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Exchange
    from support.polymux_server import Answer, PolymuxServer

MUSIC = music()
BACKEND = "polymux.upstreams.song_recognition.backend"


@pytest.fixture
def recognizer() -> Iterator[SongRecognizer]:
    with SongRecognizer() as running:
        yield running


def ask(server: PolymuxServer, data: bytes = MUSIC) -> Answer:
    body, head = form(("file", ("a.wav", data)))
    return server.ask("POST", PATH, body, head)


def test_every_way_gives_the_same(tmp_path: Path, recognizer: SongRecognizer) -> None:
    source = tmp_path / "a.wav"
    source.write_bytes(MUSIC)

    async def asynchronously(server: PolymuxServer) -> Any:
        async with polymux.AsyncClient(server.url, server.key) as client:
            return (await client.identify_song(source)).json()

    with served(tmp_path, recognizer.settings()) as server:
        answer = ask(server)
        assert (answer.status, answer.json()) == (200, SONG)
        with polymux.Client(server.url, server.key) as client:
            found = client.identify_song(MUSIC)
        assert (found.json(), found.name) == (SONG, SONG["song_name"])
        assert asyncio.run(asynchronously(server)) == SONG
        words = ("identify-song", str(source), "--server", server.url)
        shown = run(*words, cwd=tmp_path, POLYMUX_API_KEY=server.key)
        assert shown.stdout.decode() == f"{SONG['song_name']}\t{SONG['songid_url']}\n"
    with local(recognizer.settings()) as here:
        assert here.identify_song(MUSIC).json() == SONG
    # The polymux server asked once and cached the result. `Local` has a separate cache.
    assert len(recognizer.asked) == 2


def test_what_is_asked(recognizer: SongRecognizer) -> None:
    """The request has only the documented fields and nothing about the client."""
    with local(recognizer.settings(country="at", language="de-AT")) as here:
        here.identify_song(MUSIC)
        here.identify_song(music(2))
    first, second = recognizer.asked
    place, _, ids = first.path.partition("/-/tag/")
    assert place == "/discovery/v5/de-AT/AT/web"
    assert len(set((ids + "/" + second.path.partition("/-/tag/")[2]).split("/"))) == 4
    assert first.query["shazamapiversion"] == "v3"
    assert set(first.headers) <= {
        "host", "user-agent", "accept", "accept-encoding", "content-type", "content-length",
        "x-shazam-platform", "x-shazam-appversion", "connection",
    }  # fmt: skip
    assert first.headers["user-agent"].startswith("polymux/")
    assert first.body["signature"]["samplems"] == 4000
    assert (first.body["context"], first.body["geolocation"]) == ({}, {})
    magic, checksum, size = struct.unpack_from("<3I", first.signature)
    assert (magic, size) == (0xCAFE2580, len(first.signature) - 48)
    assert checksum == zlib.crc32(first.signature[8:])
    assert first.signature != second.signature


@pytest.mark.parametrize("name", ["no match", "silence", "short"])
def test_no_match(tmp_path: Path, recognizer: SongRecognizer, name: str) -> None:
    """V30. Silence and audio shorter than one second cause no request."""
    recognizer.answer = NO_MATCH
    data = {
        "no match": MUSIC,
        "silence": recording(numpy.zeros(4 * RATE_HZ)),
        "short": music(duration_s=0.9),
    }[name]
    (tmp_path / "a.wav").write_bytes(data)
    with served(tmp_path, recognizer.settings()) as server:
        for _ in range(2):
            answer = ask(server, data)
            assert (answer.status, answer.json()["code"]) == (404, "no_match")
        if name == "no match":
            words = ("identify-song", "a.wav", "--server", server.url, "--json")
            done = run(*words, cwd=tmp_path, code=5, POLYMUX_API_KEY=server.key)
            assert done.stdout == b"" or json.loads(done.stdout)
    with local(recognizer.settings()) as here, pytest.raises(NoMatchError):
        here.identify_song(data)
    assert len(recognizer.asked) == (2 if name == "no match" else 0)


def test_what_is_no_sound(tmp_path: Path, recognizer: SongRecognizer) -> None:
    with served(tmp_path, recognizer.settings()) as server:
        for data in (b"no sound at all" * 100, MUSIC[:30], MUSIC[:44]):
            assert ask(server, data).status in (415, 422)
    assert recognizer.asked == []


FAILURES: dict[str, tuple[Any, int, str]] = {
    "status 500": (answers.status(500), 502, "upstream_failed"),
    "status 403": (answers.status(403), 502, "upstream_failed"),
    "redirect": (answers.status(302, "Location: http://192.0.2.1/"), 502, "upstream_failed"),
    "HTML": (answers.status(200, body=b"<html>Are you a robot?</html>"), 502, "upstream_failed"),
    "other members": (answers.value({"a": 1}), 502, "upstream_failed"),
    "no title": (answers.value({"matches": [{}], "track": {"title": 5}}), 502, "upstream_failed"),
    "200 MB": (answers.endless, 502, "upstream_failed"),
    "silence": (answers.silent, 504, "upstream_timeout"),
}


def test_which_error_a_caller_gets(
    tmp_path: Path, recognizer: SongRecognizer, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "polymux")
    for number, (failure, (say, status, code)) in enumerate(FAILURES.items()):
        recognizer.instead = say
        with served(tmp_path / str(number), recognizer.settings(provider_s=1)) as server:
            answer = ask(server)
        text = answer.body.decode()
        assert (answer.status, answer.json()["code"]) == (status, code), (failure, text)
        assert "shazam" in text
        for word in ("127.0.0.1", str(recognizer.server.port), server.key, "Traceback"):
            assert word not in text
        assert len(text) < 500
        assert len(recognizer.asked) == number + 1
        assert server.key not in caplog.text


def test_the_guard_lets_nobody_into_this_network(
    recognizer: SongRecognizer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The configured URL must not resolve to an address in this network."""
    host, port = "localhost", recognizer.server.port
    settings = recognizer.settings(shazam_url=f"http://{host}:{port}")
    with monkeypatch.context() as patched:
        strict_policy = FetchPolicy(allowed_ports=(port,))
        patched.setattr(f"{BACKEND}.policy_of", lambda _: strict_policy)
        with local(settings) as here:
            with pytest.raises(InternalServerError) as caught:
                here.identify_song(MUSIC)
            assert (caught.value.status, host in str(caught.value)) == (502, False)
    assert recognizer.asked == []
    with local(settings) as here:
        assert here.identify_song(MUSIC).json() == SONG


def test_an_answer_by_which_a_server_plays_the_proxy(recognizer: SongRecognizer) -> None:
    recognizer.instead = answers.status(502, "Proxy-Status: polymux")
    with local(recognizer.settings()) as here, pytest.raises(InternalServerError) as caught:
        here.identify_song(MUSIC)
    assert caught.value.status == 502


def test_a_task_that_is_cancelled_closes_the_connection(recognizer: SongRecognizer) -> None:
    asked = threading.Event()

    async def silent(exchange: Exchange) -> None:
        asked.set()
        await answers.silent(exchange)

    async def main() -> None:
        recognizer.instead = silent
        async with polymux.AsyncLocal(backends=[backend(recognizer.settings())]) as here:
            task = asyncio.ensure_future(here.identify_song(MUSIC))
            assert await asyncio.to_thread(asked.wait, 20)
            assert not recognizer.server.gone.is_set()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(recognizer.server.gone.wait, 20)
            # The cancellation uses up a rate limit slot, but does not count as a failure of the
            # server.
            recognizer.instead = None
            assert (await here.identify_song(MUSIC)).json() == SONG

    asyncio.run(main())
