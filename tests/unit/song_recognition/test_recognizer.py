"""Which server recognizes a song, and which answers are cached, on a clock that the test moves.

Rate limits, back-off and deadlines belong to `ProviderScheduler`, which
`tests/unit/song_search/test_provider_order.py` tests.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import InternalServerError, RateLimitError
from polymux.upstreams.song_recognition.backend import Recognizer
from polymux.upstreams.song_recognition.shazam import ShazamRecognition, Signature
from polymux.upstreams.song_search.songs import Song
from support.scripted_sources import FAILED, LATE, LIMITED, MANY, Scene, ScriptedSource

if TYPE_CHECKING:
    from polymux.upstreams.song_search.rate_limit import Rate


class Scripted(ScriptedSource, ShazamRecognition):
    def __init__(self, name: str = "only", rate: Rate = MANY) -> None:
        super().__init__(name, Song(f"of {name}", "", ""), rate)

    async def recognize(self, signature: Signature) -> Song | None:
        found: Song | None = await self.answered(signature.uri)
        return found


class Recognizing(Scene):
    def __init__(self, *sources: Scripted, deadline_s: float = 30) -> None:
        super().__init__(Recognizer, *sources, deadline_s=deadline_s)

    def recognize(self, uri: str = "a") -> Any:
        return self.alone(self.made.recognize(signature(uri)))

    def all_of(self, uris: list[str]) -> list[Any]:
        return self.together(*(self.made.recognize(signature(one)) for one in uris))


def signature(uri: str) -> Signature:
    return Signature(uri, 64_000, 100)


def test_the_first_that_knows_the_song() -> None:
    first, second, third = (Scripted(name) for name in ("first", "second", "third"))
    first.trouble = FAILED
    second.found = None
    assert Recognizing(first, second, third).recognize().name == "of third"
    assert [len(one.asked) for one in (first, second, third)] == [1, 1, 1]
    # One answer "unknown song" counts more than the failures.
    assert Recognizing(first, second).recognize() is None


def test_what_is_reported_where_all_fail() -> None:
    """`tests/unit/song_search/test_provider_order.py` tests other failures."""
    sources = Scripted("first"), Scripted("second")
    sources[0].trouble, sources[1].trouble = FAILED, LATE
    with pytest.raises(InternalServerError, match="first: ") as caught:
        Recognizing(*sources).recognize()
    assert (caught.value.status, caught.value.code) == (502, "upstream_failed")
    assert f"second: {LATE.reason}" in str(caught.value)


def test_answers_are_kept_and_that_there_was_none_is_forgotten_first() -> None:
    """Negative answers expire first. Signatures are base64, so their case counts."""
    only = Scripted()
    scene = Recognizing(only)
    song = scene.recognize("a")
    only.found = None
    assert scene.recognize("A") is None
    only.trouble = FAILED
    for later_s in (0, 99.9):
        scene.clock.now = later_s
        assert scene.recognize("a") == song
        assert scene.recognize("A") is None
    assert only.asked == ["a", "A"]
    scene.clock.now = 100
    only.trouble, only.found = None, song
    assert scene.recognize("A") == scene.recognize("a") == song
    assert only.asked == ["a", "A", "A"]
    scene.clock.now = 1000
    scene.recognize("a")
    assert only.asked == ["a", "A", "A", "a"]


def test_failures_are_not_kept_and_lead_to_a_pause() -> None:
    only = Scripted()
    only.trouble = LIMITED
    scene = Recognizing(only)
    for now, left in ((0, "20"), (9.5, "11")):
        scene.clock.now = now
        with pytest.raises(RateLimitError) as caught:
            scene.recognize()
        assert caught.value.headers["retry-after"] == left
    assert scene.made.resting().startswith("only")
    assert len(only.asked) == 1
    scene.clock.now = 20
    only.trouble = None
    assert scene.recognize() is not None
    assert scene.made.resting() == ""
