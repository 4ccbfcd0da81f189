from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process.in_process import InProcessBackend
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.upstreams.client import GuardedWay
from polymux.upstreams.song_recognition.backend import (
    Recognizer,
    SongRecognitionBackend,
    policy_of,
    recognizer_of,
)
from polymux.upstreams.song_recognition.settings import SongRecognitionSettings
from polymux.upstreams.song_recognition.shazam import Signature
from polymux.upstreams.song_search.cache import SongCache

if TYPE_CHECKING:
    from polymux.upstreams.song_search.songs import Song


def test_nobody_is_asked_by_default() -> None:
    settings = SongRecognitionSettings()
    assert settings.providers == ()
    assert recognizer_of(settings, GuardedWay(policy_of(settings)))._providers == []


def test_only_an_address_that_the_operator_gives_may_lead_anywhere() -> None:
    assert policy_of(SongRecognitionSettings(("shazam",))) == FetchPolicy()
    for url, host in (
        ("http://127.0.0.1:8080", "127.0.0.1:8080"),
        ("https://songs.example/there", "songs.example:443"),
        ("http://[::1]", "[::1]:80"),
    ):
        settings = SongRecognitionSettings(("shazam",), shazam_url=url)
        assert policy_of(settings) == FetchPolicy(allowed_hosts=(host,))


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"providers": ("acoustid",)}, "providers=('acoustid',)"),
        ({"providers": ("shazam", "shazam")}, "providers="),
        ({"country": "AUT"}, "country='AUT'"),
        ({"country": "../"}, "country='../'"),
        ({"language": "en"}, "en-US"),
        ({"language": "en-US/x"}, "language='en-US/x'"),
        ({"shazam_url": "file:///etc"}, "shazam_url: 'file:///etc'"),
        ({"shazam_url": "https://a:b@c"}, "shazam_url: 'https://***@c'"),
    ],
)
def test_what_is_wrong_is_named(given: dict[str, Any], expected: str) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        SongRecognitionSettings(**given)
    assert expected in str(caught.value)


class Counting(Recognizer):
    def __init__(self) -> None:
        super().__init__([], SongCache(0, 1, 1), 1)
        self.asked: list[Signature] = []

    async def recognize(self, signature: Signature) -> Song | None:
        self.asked.append(signature)
        return None


@pytest.mark.parametrize(
    ("sample_count", "peak_count", "asked"),
    [(160_000, 0, False), (0, 0, False), (15_999, 40, False), (16_000, 1, True)],
)
def test_of_silence_and_of_less_than_a_second_nobody_is_asked(
    sample_count: int, peak_count: int, asked: bool
) -> None:
    counting = Counting()
    media = InProcessBackend("media", "media", [])
    backend = SongRecognitionBackend(SongRecognitionSettings(), media, counting)
    signature = Signature("data:,", sample_count, peak_count)
    assert asyncio.run(backend.recognize(signature)) is None
    assert counting.asked == ([signature] if asked else [])
