"""`identify_song` over a server on this machine, whatever it answers."""

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
    APIStatusError,
    InternalServerError,
    NoMatchError,
    RateLimitError,
    RequestTimeoutError,
)
from polymux.fetch.fetcher import FetchPolicy
from polymux.upstreams.song_recognition.backend import SongRecognitionBackend
from servers import song_catalogues as said
from servers.song_recogniser import MATCH, NO_MATCH, SONG, TRACK, SongRecogniser
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

    from polymux.service.model import OperationRequest
    from polymux.upstreams.song_recognition.shazam import Signature
    from support.polymux_server import Answer, PolymuxServer
    from support.web import Exchange

MUSIC = music()
BACKEND = "polymux.upstreams.song_recognition.backend"


@pytest.fixture
def recogniser() -> Iterator[SongRecogniser]:
    with SongRecogniser() as running:
        yield running


def ask(server: PolymuxServer, data: bytes = MUSIC) -> Answer:
    body, head = form(("file", ("a.wav", data)))
    return server.ask("POST", PATH, body, head)


def test_every_way_gives_the_same(tmp_path: Path, recogniser: SongRecogniser) -> None:
    source = tmp_path / "a.wav"
    source.write_bytes(MUSIC)

    async def asynchronously(server: PolymuxServer) -> Any:
        async with polymux.AsyncClient(server.url, server.key) as client:
            return (await client.identify_song(source)).json()

    with served(tmp_path, recogniser.settings()) as server:
        answer = ask(server)
        assert (answer.status, answer.json()) == (200, SONG)
        with polymux.Client(server.url, server.key) as client:
            found = client.identify_song(MUSIC)
        assert (found.json(), found.name) == (SONG, SONG["song_name"])
        assert asyncio.run(asynchronously(server)) == SONG
        words = ("identify-song", str(source), "--server", server.url)
        shown = run(*words, cwd=tmp_path, POLYMUX_API_KEY=server.key)
        assert shown.stdout.decode() == f"{SONG['song_name']}\t{SONG['songid_url']}\n"
    with local(recogniser.settings()) as here:
        assert here.identify_song(MUSIC).json() == SONG
    # The server has asked once, and kept the answer; `Local` has a cache of its own.
    assert len(recogniser.asked) == 2


def test_what_is_asked(recogniser: SongRecogniser) -> None:
    """The request of `contracts.md` 10, and nothing of whoever asks."""
    with local(recogniser.settings(country="at", language="de-AT")) as here:
        here.identify_song(MUSIC)
        here.identify_song(music(2))
    first, second = recogniser.asked
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
def test_no_match(tmp_path: Path, recogniser: SongRecogniser, name: str) -> None:
    """V30. Of silence and of less than a second nobody is asked."""
    recogniser.answer = NO_MATCH
    data = {
        "no match": MUSIC,
        "silence": recording(numpy.zeros(4 * RATE_HZ)),
        "short": music(duration_s=0.9),
    }[name]
    with served(tmp_path, recogniser.settings()) as server:
        for _ in range(2):
            answer = ask(server, data)
            assert (answer.status, answer.json()["code"]) == (404, "no_match")
        with polymux.Client(server.url, server.key) as client, pytest.raises(NoMatchError):
            client.identify_song(data)
    with local(recogniser.settings()) as here, pytest.raises(NoMatchError, match="no song"):
        here.identify_song(data)
    assert len(recogniser.asked) == (2 if name == "no match" else 0)


def test_what_is_no_sound(tmp_path: Path, recogniser: SongRecogniser) -> None:
    with served(tmp_path, recogniser.settings()) as server:
        for data in (b"no sound at all" * 100, MUSIC[:30], MUSIC[:44]):
            assert ask(server, data).status in (415, 422)
    assert recogniser.asked == []


FAILURES: dict[str, tuple[Any, int, str]] = {
    "status 500": (said.status(500), 502, "upstream_failed"),
    "status 503": (said.status(503), 502, "upstream_failed"),
    "status 403": (said.status(403), 502, "upstream_failed"),
    "status 400": (said.status(400), 502, "upstream_failed"),
    "redirect": (said.status(302, "Location: http://192.0.2.1/"), 502, "upstream_failed"),
    "status 429": (said.status(429), 429, "rate_limited"),
    "HTML": (said.status(200, body=b"<html>Are you a robot?</html>"), 502, "upstream_failed"),
    "nothing": (said.status(200, body=b""), 502, "upstream_failed"),
    "half": (said.status(200, body=b'{"matches": ['), 502, "upstream_failed"),
    "no object": (said.value([1, 2]), 502, "upstream_failed"),
    "other members": (said.value({"a": 1}), 502, "upstream_failed"),
    "no title": (said.value({"matches": [{}], "track": {"title": 5}}), 502, "upstream_failed"),
    "no track": (said.value({"matches": [{}], "track": [1]}), 502, "upstream_failed"),
    "200 MB": (said.endless, 502, "upstream_failed"),
    "silence": (said.silent, 504, "upstream_timeout"),
}


@pytest.mark.parametrize("failure", list(FAILURES))
def test_what_a_caller_is_told(
    tmp_path: Path,
    recogniser: SongRecogniser,
    failure: str,
    caplog: pytest.LogCaptureFixture,
) -> None:
    say, status, code = FAILURES[failure]
    recogniser.instead = say
    settings = recogniser.settings(provider_s=1)
    with caplog.at_level(logging.DEBUG, "polymux"), served(tmp_path, settings) as server:
        answer = ask(server)
        text = answer.body.decode()
        assert (answer.status, answer.json()["code"]) == (status, code), text
        assert "shazam: " in text
        for word in ("127.0.0.1", str(recogniser.server.port), server.key, "Traceback"):
            assert word not in text
        assert len(text) < 500
    assert len(recogniser.asked) == 1
    assert server.key not in caplog.text


def test_it_asks_for_time(tmp_path: Path, recogniser: SongRecogniser) -> None:
    recogniser.instead = said.status(429, "Retry-After: 40")
    with served(tmp_path, recogniser.settings()) as server:
        for _ in range(2):
            answer = ask(server)
            assert answer.status == 429
            assert 0 < int(answer.headers["retry-after"]) <= 40
        ready = server.ask("GET", "/readyz").json()["backends"]["song_recognition"]
    assert len(recogniser.asked) == 1
    assert ready["state"] == "ready"
    assert ready["detail"].startswith("shazam is left alone for ")


def test_how_often_it_is_asked(recogniser: SongRecogniser) -> None:
    """Two at once; whoever cannot wait long enough for a turn is told when there is one."""
    with local(recogniser.settings(deadline_s=3)) as here:
        for seed in range(2):
            here.identify_song(music(seed))
        with pytest.raises(RateLimitError, match="limit of requests") as caught:
            here.identify_song(music(2))
        assert 1 < int(caught.value.headers["retry-after"]) <= 20
        # What is known is told without a turn.
        assert here.identify_song(music(0)).json() == SONG
    assert len(recogniser.asked) == 2


def test_no_answers_are_kept_where_none_may_be(recogniser: SongRecogniser) -> None:
    with local(recogniser.settings(cache_bytes=0)) as here:
        assert here.identify_song(MUSIC) == here.identify_song(MUSIC)
    assert len(recogniser.asked) == 2


def test_a_song_of_a_strangers_answer(recogniser: SongRecogniser) -> None:
    hostile = {
        "title": "<script>alert(1)</script>\x1b]0;x\x07 " + "x" * 5000,
        "subtitle": "\u202egnortS\r\nSet-Cookie: a=b",
        "share": {"href": "javascript:alert(1)"},
        "images": {"coverart": "data:text/html,<script>"},
    }
    recogniser.answer = MATCH | {"track": hostile}
    with local(recogniser.settings()) as here:
        song = here.identify_song(MUSIC)
    assert song.name.startswith("<script>alert(1)</script> ]0;x xx")
    assert len(song.name) < 600
    assert song.name.isprintable()
    assert (song.url, song.image_url) == ("", "")


@pytest.mark.parametrize(
    ("track", "expected"),
    [
        ({"title": "A"}, ("A", "", "")),
        ({"title": "A", "url": "https://a.example/"}, ("A", "https://a.example/", "")),
        ({"title": "A", "subtitle": "B", "images": TRACK["images"]},
         ("A - B", "", SONG["song_image"])),
    ],
)  # fmt: skip
def test_answers_with_less(
    recogniser: SongRecogniser, track: dict[str, Any], expected: tuple[str, str, str]
) -> None:
    recogniser.answer = {"matches": [{}], "track": track}
    with local(recogniser.settings()) as here:
        song = here.identify_song(MUSIC)
    assert (song.name, song.url, song.image_url) == expected


def test_nobody_there() -> None:
    with SongRecogniser() as gone:
        settings = gone.settings()
    with local(settings) as here:
        with pytest.raises(InternalServerError, match="there is no connection to it") as caught:
            here.identify_song(MUSIC)
        assert caught.value.status == 502
        assert "127.0.0.1" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_the_guard_lets_nobody_into_this_network(
    recogniser: SongRecogniser, monkeypatch: pytest.MonkeyPatch, host: str
) -> None:
    """The server's own address may not lead there, whatever its name resolves to."""
    port = recogniser.server.port
    settings = recogniser.settings(shazam_url=f"http://{host}:{port}")
    with monkeypatch.context() as patched:
        of_strangers = FetchPolicy(allowed_ports=(port,))
        patched.setattr(f"{BACKEND}.policy_of", lambda _: of_strangers)
        with local(settings) as here:
            with pytest.raises(InternalServerError, match="its address is refused") as caught:
                here.identify_song(MUSIC)
            assert (caught.value.status, host in str(caught.value)) == (502, False)
    assert recogniser.asked == []
    with local(settings) as here:
        assert here.identify_song(MUSIC).json() == SONG


def test_an_answer_by_which_a_server_plays_the_proxy(recogniser: SongRecogniser) -> None:
    recogniser.instead = said.status(502, "Proxy-Status: polymux")
    with local(recogniser.settings()) as here, pytest.raises(InternalServerError) as caught:
        here.identify_song(MUSIC)
    assert caught.value.status == 502


def silent_and_told(asked: threading.Event) -> said.Said:
    """Says nothing until it is left, and tells when it was asked."""

    async def silent(exchange: Exchange) -> None:
        asked.set()
        await said.silent(exchange)

    return silent


def test_a_task_that_is_cancelled_closes_the_connection(recogniser: SongRecogniser) -> None:
    asked = threading.Event()
    recogniser.instead = silent_and_told(asked)

    async def main() -> None:
        async with polymux.AsyncLocal(backends=[backend(recogniser.settings())]) as here:
            task = asyncio.ensure_future(here.identify_song(MUSIC))
            assert await asyncio.to_thread(asked.wait, 20)
            assert not recogniser.server.gone.is_set()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert await asyncio.to_thread(recogniser.server.gone.wait, 20)
            # Its turn is used, but nothing else is: the server is not thought to have failed.
            recogniser.instead = None
            assert (await here.identify_song(MUSIC)).json() == SONG

    asyncio.run(main())


def test_a_deadline_of_the_caller_closes_the_connection(recogniser: SongRecogniser) -> None:
    asked = threading.Event()
    recogniser.instead = silent_and_told(asked)
    with local(recogniser.settings()) as here:
        with pytest.raises(RequestTimeoutError):
            here.identify_song(MUSIC, timeout=2.0)
        assert asked.is_set()
        assert recogniser.server.gone.wait(20)


def test_equal_recordings_at_the_same_time_are_one_request(recogniser: SongRecogniser) -> None:
    count = 5
    go_on = threading.Event()

    class Counted(SongRecognitionBackend):
        """Has the server answer once all signatures are made."""

        made = 0

        async def signature(self, work: OperationRequest) -> Signature:
            signature = await super().signature(work)
            self.made += 1
            if self.made == count:
                go_on.set()
            return signature

    async def slow(exchange: Exchange) -> None:
        assert await asyncio.to_thread(go_on.wait, 20)
        await said.value(MATCH)(exchange)

    recogniser.instead = slow

    async def main() -> list[Any]:
        backends = [backend(recogniser.settings(), Counted)]
        async with polymux.AsyncLocal(backends=backends) as here:
            return await asyncio.gather(*(here.identify_song(MUSIC) for _ in range(count)))

    assert [one.json() for one in asyncio.run(main())] == [SONG] * count
    assert len(recogniser.asked) == 1


def test_errors_of_local_and_client_are_alike(tmp_path: Path, recogniser: SongRecogniser) -> None:
    recogniser.instead = said.status(429, "Retry-After: 9")
    found: list[APIStatusError] = []
    with served(tmp_path, recogniser.settings()) as server:
        with (
            polymux.Client(server.url, server.key, retry=0) as client,
            pytest.raises(RateLimitError) as caught,
        ):
            client.identify_song(MUSIC)
        found.append(caught.value)
    with local(recogniser.settings()) as here:
        with pytest.raises(RateLimitError) as caught:
            here.identify_song(MUSIC)
        found.append(caught.value)
    assert {(one.status, one.code, one.headers["retry-after"], str(one)) for one in found} == {
        (429, "rate_limited", "9", str(found[0]))
    }


def test_the_command_says_that_nothing_matched(tmp_path: Path, recogniser: SongRecogniser) -> None:
    recogniser.answer = NO_MATCH
    (tmp_path / "a.wav").write_bytes(MUSIC)
    with served(tmp_path, recogniser.settings()) as server:
        words = ("identify-song", "a.wav", "--server", server.url, "--json")
        done = run(*words, cwd=tmp_path, code=5, POLYMUX_API_KEY=server.key)
    assert done.stdout == b"" or json.loads(done.stdout)
