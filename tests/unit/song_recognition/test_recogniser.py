"""Turns, pauses, kept answers and equal requests of recognitions, on a clock that a test moves."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from polymux.errors import APIStatusError, InternalServerError, RateLimitError
from polymux.upstreams.song_recognition.recogniser import Recogniser
from polymux.upstreams.song_recognition.shazam import ShazamRecognition, Signature
from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song
from support.moved_clock import MovedClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

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
        self.asked: list[str] = []
        self.times: list[float] = []
        self.clock: Callable[[], float] = lambda: 0.0
        self.closed = False
        self.before: Callable[[], Coroutine[Any, Any, None]] | None = None

    async def recognise(self, signature: Signature) -> Song | None:
        self.asked.append(signature.uri)
        self.times.append(self.clock())
        if self.before is not None:
            await self.before()
        if self.trouble is not None:
            raise self.trouble
        return Song(f"{signature.uri} by {self.name}", "", "") if self.knows else None

    def close(self) -> None:
        self.closed = True


class Scene:
    """A recogniser of scripted servers, and its clock."""

    def __init__(
        self, *sources: Scripted, deadline_s: float = 30, cache_bytes: int = 1 << 20
    ) -> None:
        self.clock = MovedClock()
        self.sources = sources
        for one in sources:
            one.clock = self.clock
        self.cache = SongCache(cache_bytes, 1000, 100, self.clock)
        self.made = Recogniser(
            sources,
            self.cache,
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
            return await self.clock.run(*(self.made.recognise(signature(one)) for one in uris))

        return asyncio.run(work())


def signature(uri: str = "a") -> Signature:
    return Signature(uri, 64_000, 100)


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


def test_who_cannot_wait_for_a_turn_is_told_when_there_is_one() -> None:
    only = Scripted(rate=Rate(1, 0.05))
    scene = Scene(only, deadline_s=20)
    found = scene.together("a", "b")
    assert found[0].name == "a by only"
    assert isinstance(found[1], RateLimitError)
    assert (found[1].status, found[1].headers["retry-after"]) == (429, "20")
    assert "the limit of requests to it is reached" in str(found[1])
    assert scene.clock() == 0
    assert scene.made.resting() == ""
    patient = Scene(Scripted(rate=Rate(1, 0.05)), deadline_s=22)
    assert [one.name for one in patient.together("a", "b")] == ["a by only", "b by only"]
    assert patient.clock() == pytest.approx(20, abs=1e-4)


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


def test_a_kept_answer_needs_no_turn_and_no_server() -> None:
    only = Scripted(rate=Rate(1, 0.001))
    scene = Scene(only)
    song = scene.recognise()
    only.trouble = FAILED
    assert [scene.recognise() for _ in range(3)] == [song] * 3
    assert len(only.asked) == 1


def test_capitals_of_a_signature_count() -> None:
    """They are digits of base64, unlike those of a text that is searched for."""
    scene = Scene(Scripted())
    assert scene.recognise("Aa") != scene.recognise("aa")


def test_failures_are_not_kept_and_lead_to_a_pause() -> None:
    only = Scripted()
    only.trouble = FAILED
    scene = Scene(only)
    for retry_after, pause_s in ((None, 2.0), (None, 4.0), (None, 8.0)):
        with pytest.raises(InternalServerError) as caught:
            scene.recognise()
        assert caught.value.headers.get("retry-after") == retry_after
        said = f"only is left alone for {pause_s:.0f} s: it answered with status 500"
        assert scene.made.resting() == said
        count = len(only.asked)
        with pytest.raises(InternalServerError, match=f"left alone for {pause_s:.0f} s") as caught:
            scene.recognise("b")
        assert caught.value.headers["retry-after"] == f"{pause_s:.0f}"
        assert len(only.asked) == count
        scene.clock.now += pause_s
    only.trouble = None
    assert scene.recognise().name == "a by only"
    assert scene.made.resting() == ""
    only.trouble = FAILED
    with pytest.raises(InternalServerError):
        scene.recognise("b")
    assert "for 2 s" in scene.made.resting()  # An answer has made it begin anew.


def test_a_pause_is_as_long_as_the_server_asks_for() -> None:
    only = Scripted()
    only.trouble = LIMITED
    scene = Scene(only)
    for now, left in ((0, "20"), (0, "20"), (9.5, "11"), (19.9, "1")):
        scene.clock.now = now
        with pytest.raises(RateLimitError) as caught:
            scene.recognise()
        assert caught.value.headers["retry-after"] == left
    assert len(only.asked) == 1
    scene.clock.now = 20
    only.trouble = None
    assert scene.recognise() is not None


def test_who_waits_does_not_ask_what_has_failed_meanwhile() -> None:
    only = Scripted(rate=Rate(1, 1.0))
    only.trouble = ProviderError(ErrorKind.FAILED, "broken", 100.0)
    found = Scene(only).together(*"abcd")
    assert [one.status for one in found] == [502] * 4
    assert len(only.asked) == 1


def test_those_who_ask_the_same_at_once_are_answered_by_one_request() -> None:
    only = Scripted()
    scene = Scene(only)

    async def slowly() -> None:
        await scene.clock.sleep(1)

    only.before = slowly
    found = scene.together(*["a", "b"] * 5)
    assert [one.name for one in found] == ["a by only", "b by only"] * 5
    assert sorted(only.asked) == ["a", "b"]
    assert scene.clock() == 1
    assert not scene.made._asking


def test_where_that_one_fails_the_others_do_not_try_again() -> None:
    only = Scripted()
    scene = Scene(only)

    async def slowly() -> None:
        await scene.clock.sleep(1)

    only.before = slowly
    only.trouble = FAILED
    assert [one.status for one in scene.together(*["a"] * 5)] == [502] * 5
    assert len(only.asked) == 1


def test_who_leaves_has_the_next_ask() -> None:
    only = Scripted()
    scene = Scene(only)

    async def work() -> Any:
        asked = asyncio.Event()

        async def told() -> None:
            asked.set()
            await asyncio.sleep(0 if len(only.asked) > 1 else 60)

        only.before = told
        first, second = (asyncio.ensure_future(scene.made.recognise(signature())) for _ in range(2))
        await asked.wait()
        first.cancel()
        return await second

    assert asyncio.run(work()).name == "a by only"
    assert len(only.asked) == 2
    assert scene.made.resting() == ""


def test_who_waits_for_anothers_answer_has_a_deadline() -> None:
    only = Scripted()
    scene = Scene(only)

    async def never() -> None:
        await asyncio.Event().wait()

    async def work() -> Any:
        first = asyncio.ensure_future(scene.made.recognise(signature()))
        await asyncio.sleep(0)
        scene.made._deadline_s = 0.2
        try:
            await scene.made.recognise(signature())
        finally:
            first.cancel()

    only.before = never
    with pytest.raises(InternalServerError, match="there was no time left") as caught:
        asyncio.run(work())
    assert caught.value.status == 504
    assert len(only.asked) == 1


def test_the_deadline_ends_an_answer_and_is_no_reason_for_a_pause() -> None:
    only = Scripted()

    async def never() -> None:
        await asyncio.Event().wait()

    only.before = never
    made = Recogniser([only], SongCache(0, 1, 1), 0.2)
    with pytest.raises(InternalServerError, match="there was no time left") as caught:
        asyncio.run(made.recognise(signature()))
    assert caught.value.status == 504
    assert made.resting() == ""


def test_all_are_closed() -> None:
    scene = Scene(Scripted("first"), Scripted("second"))
    scene.made.close()
    assert [one.closed for one in scene.sources] == [True, True]
