"""Which server recognises a song, and what is kept; on a clock that a test moves.

Turns, pauses and deadlines are `ProviderScheduler`'s: `tests/unit/song_search/test_song_order.py`.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from polymux.errors import APIStatusError, InternalServerError, RateLimitError
from polymux.upstreams.song_recognition.recogniser import Recogniser
from polymux.upstreams.song_recognition.shazam import ShazamRecognition, Signature
from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song
from support.moved_clock import MovedClock

LIMITED = ProviderError(ErrorKind.LIMITED, "it wants to be asked less often", 20.0)
FAILED = ProviderError(ErrorKind.FAILED, "it answered with status 500")
LATE = ProviderError(ErrorKind.LATE, "it did not answer in time")


class Scripted(ShazamRecognition):
    """Knows every recording or none, or fails as it is told."""

    def __init__(self, name: str = "only", rate: Rate = Rate(100, 100.0)) -> None:  # noqa: B008
        self.name = name
        self.rate = rate
        self.knows = True
        self.trouble: ProviderError | None = None
        self.clock = MovedClock()
        self.takes_s = 0.0
        self.asked: list[str] = []
        self.times: list[float] = []
        self.closed = False

    async def recognise(self, signature: Signature) -> Song | None:
        self.asked.append(signature.uri)
        self.times.append(self.clock())
        if self.takes_s:
            await self.clock.sleep(self.takes_s)
        if self.trouble is not None:
            raise self.trouble
        return Song(f"{signature.uri} by {self.name}", "", "") if self.knows else None

    def close(self) -> None:
        self.closed = True


class Scene:
    """A recogniser of scripted servers, and its clock."""

    def __init__(self, *sources: Scripted, deadline_s: float = 30) -> None:
        self.clock = MovedClock()
        self.sources = sources
        for one in sources:
            one.clock = self.clock
        self.made = Recogniser(
            sources,
            SongCache(1 << 20, 1000, 100, self.clock),
            deadline_s,
            clock=self.clock,
            sleep=self.clock.sleep,
            chance=lambda: 1.0,
        )

    def recognise(self, uri: str = "a") -> Any:
        found = self.together(uri)[0]
        if isinstance(found, BaseException):
            raise found
        return found

    def together(self, *uris: str) -> list[Any]:
        async def work() -> list[Any]:
            signatures = [Signature(one, 64_000, 100) for one in uris]
            return await self.clock.run(*(self.made.recognise(one) for one in signatures))

        return asyncio.run(work())


def test_the_first_that_knows_the_song() -> None:
    first, second, third = (Scripted(name) for name in ("first", "second", "third"))
    first.trouble = FAILED
    second.knows = False
    assert Scene(first, second, third).recognise().name == "a by third"
    assert [len(one.asked) for one in (first, second, third)] == [1, 1, 1]


def test_nobody_knows_it_where_one_says_so() -> None:
    first, second = Scripted("first"), Scripted("second")
    first.knows = False
    second.trouble = FAILED
    assert Scene(first, second).recognise() is None


@pytest.mark.parametrize(
    ("troubles", "kind", "status", "code", "retry_after"),
    [
        ((FAILED, FAILED), InternalServerError, 502, "upstream_failed", None),
        ((FAILED, LATE), InternalServerError, 502, "upstream_failed", None),
        ((LATE, LATE), InternalServerError, 504, "upstream_timeout", None),
        ((FAILED, LIMITED), RateLimitError, 429, "rate_limited", "20"),
    ],
)
def test_what_is_told_where_all_fail(
    troubles: tuple[ProviderError, ProviderError],
    kind: type[APIStatusError],
    status: int,
    code: str,
    retry_after: str | None,
) -> None:
    sources = Scripted("first"), Scripted("second")
    for one, trouble in zip(sources, troubles, strict=True):
        one.trouble = trouble
    with pytest.raises(kind, match="no recogniser of songs has answered: first: ") as caught:
        Scene(*sources).recognise()
    error = caught.value
    found = error.status, error.code, error.headers.get("retry-after")
    assert found == (status, code, retry_after)
    assert f"second: {troubles[1].reason}" in str(error)


def test_shazam_is_asked_five_times_in_a_minute_at_most() -> None:
    only = Scripted(rate=ShazamRecognition.rate)
    scene = Scene(only, deadline_s=1e6)
    scene.together(*(str(number) for number in range(30)))
    times = only.times
    assert times[:4] == pytest.approx([0, 0, 20, 40], abs=1e-4)
    counts = [sum(begin <= one < begin + 60 - 1e-4 for one in times) for begin in times]
    assert len(times) == 30
    assert max(counts) <= 5


def test_answers_are_kept_and_that_there_was_none_is_forgotten_first() -> None:
    only = Scripted()
    scene = Scene(only)
    song = scene.recognise("a")
    only.knows = False
    assert scene.recognise("b") is None
    for later_s in (0, 99.9):
        scene.clock.now = later_s
        assert scene.recognise("a") == song
        assert scene.recognise("b") is None
    assert only.asked == ["a", "b"]
    scene.clock.now = 100
    only.knows = True
    assert scene.recognise("b") is not None
    assert scene.recognise("a") == song
    assert only.asked == ["a", "b", "b"]
    scene.clock.now = 1000
    scene.recognise("a")
    assert only.asked == ["a", "b", "b", "a"]


def test_capitals_of_a_signature_count() -> None:
    """They are digits of base64, unlike those of a text that is searched for."""
    scene = Scene(Scripted())
    assert scene.recognise("Aa") != scene.recognise("aa")


def test_failures_are_not_kept_and_lead_to_a_pause() -> None:
    only = Scripted()
    only.trouble = LIMITED
    scene = Scene(only)
    for now, left in ((0, "20"), (9.5, "11")):
        scene.clock.now = now
        with pytest.raises(RateLimitError) as caught:
            scene.recognise()
        assert caught.value.headers["retry-after"] == left
    assert scene.made.resting().startswith("only is left alone for ")
    assert len(only.asked) == 1
    scene.clock.now = 20
    only.trouble = None
    assert scene.recognise() is not None
    assert scene.made.resting() == ""


def test_those_who_ask_the_same_at_once_are_answered_by_one_request() -> None:
    only = Scripted()
    only.takes_s = 1
    scene = Scene(only)
    found = scene.together(*["a", "b"] * 5)
    assert [one.name for one in found] == ["a by only", "b by only"] * 5
    assert sorted(only.asked) == ["a", "b"]
    assert scene.clock() == 1
    # Where that one fails the others do not try again.
    only.trouble = FAILED
    assert [one.status for one in scene.together(*["c"] * 5)] == [502] * 5
    assert only.asked.count("c") == 1


def test_all_are_closed() -> None:
    scene = Scene(Scripted("first"), Scripted("second"))
    scene.made.close()
    assert [one.closed for one in scene.sources] == [True, True]
