from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from polymux.errors import APIStatusError, BadRequestError, InternalServerError, RateLimitError
from polymux.upstreams.song_search.backend import SongSearch
from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.rate_limit import Rate
from polymux.upstreams.song_search.songs import Song
from polymux.upstreams.song_search.source import SongSource
from support.scripted_sources import FAILED, LATE, LIMITED, MANY, REFUSED, Scene, ScriptedSource


class Scripted(ScriptedSource, SongSource):
    def __init__(self, name: str = "only", count: int = 1, rate: Rate = MANY) -> None:
        super().__init__(name, [Song(f"{name} {n}", "", "") for n in range(count)], rate)

    async def search(self, text: str, limit: int, proxy: str = "") -> list[Song]:
        found: list[Song] = await self.answered((text, limit, proxy))
        return found

    def path(self, text: str, limit: int) -> str:
        raise NotImplementedError

    def songs(self, answer: Any, limit: int) -> list[Song]:
        raise NotImplementedError


class Searching(Scene):
    def __init__(self, *sources: Scripted, deadline_s: float = 30) -> None:
        super().__init__(SongSearch, *sources, deadline_s=deadline_s)

    def search(self, text: str = "x", limit: int = 5, proxy: str = "") -> Any:
        return self.alone(self.made.search(text, limit, proxy))

    def all_of(self, texts: str, limit: int = 5) -> list[Any]:
        return self.together(*(self.made.search(text, limit) for text in texts))


def two(first_count: int = 1, second_count: int = 1) -> tuple[Scripted, Scripted]:
    return Scripted("first", first_count), Scripted("second", second_count)


def test_the_first_that_has_any_song() -> None:
    first, second = two(2, 3)
    found = Searching(first, second).search(limit=5)
    assert (found.source, len(found.songs), found.others) == ("first", 2, ())
    assert second.asked == []
    found = Searching(*two(0, 1)).search()
    assert (found.source, len(found.others), found.others[0][:7]) == ("second", 1, "first: ")
    assert Searching(*two(0, 0)).search().songs == ()


@pytest.mark.parametrize("trouble", [LIMITED, REFUSED])
def test_the_next_where_one_fails(trouble: ProviderError) -> None:
    first, second = two()
    first.trouble = trouble
    found = Searching(first, second).search()
    assert (found.source, found.others) == ("second", (f"first: {trouble.reason}",))


def test_nothing_here_and_a_failure_there_is_nothing() -> None:
    first, second = two(0)
    second.trouble = FAILED
    found = Searching(first, second).search()
    assert not found.songs
    assert found.others[1:] == (f"second: {FAILED.reason}",)


ASKS_FOR_TIME = ProviderError(ErrorKind.FAILED, "it answered with status 503", 7.2)


@pytest.mark.parametrize(
    ("troubles", "kind", "status", "code", "retry_after"),
    [
        ((FAILED, LATE), InternalServerError, 502, "upstream_failed", None),
        ((LATE, LATE), InternalServerError, 504, "upstream_timeout", None),
        ((LATE, REFUSED), InternalServerError, 504, "upstream_timeout", None),
        ((REFUSED, REFUSED), BadRequestError, 400, "invalid_request", None),
        ((LIMITED, FAILED), RateLimitError, 429, "rate_limited", "20"),
        ((FAILED, ASKS_FOR_TIME), InternalServerError, 502, "upstream_failed", "8"),
    ],
)
def test_what_is_reported_where_all_fail(
    troubles: tuple[ProviderError, ProviderError],
    kind: type[APIStatusError],
    status: int,
    code: str,
    retry_after: str | None,
) -> None:
    sources = two()
    for one, trouble in zip(sources, troubles, strict=True):
        one.trouble = trouble
    with pytest.raises(kind) as caught:
        Searching(*sources).search()
    error = caught.value
    found = error.status, error.code, error.headers.get("retry-after")
    assert found == (status, code, retry_after)
    for one, trouble in zip(sources, troubles, strict=True):
        assert one.name in str(error)
        assert trouble.reason in str(error)


def test_turns_are_waited_for_until_the_deadline_then_the_next_is_asked() -> None:
    first, second = Scripted("first", rate=Rate(1, 0.1)), Scripted("second")
    scene = Searching(first, second, deadline_s=12)
    found = scene.all_of("abc")
    assert [one.source for one in found] == ["first", "first", "second"]
    assert [one.partition(":")[0] for one in found[2].others] == ["first"]
    assert scene.clock() == pytest.approx(10, abs=1e-4)


def test_the_limit_of_all_is_reached() -> None:
    first, second = (
        Scripted(name, rate=Rate(1, rate)) for name, rate in (("1", 0.01), ("2", 0.02))
    )
    found = Searching(first, second, deadline_s=12).all_of("abc")
    assert [one.source for one in found[:2]] == ["1", "2"]
    assert isinstance(found[2], RateLimitError)
    assert (found[2].status, found[2].headers["retry-after"]) == (429, "50")


def test_answers_are_kept() -> None:
    first, second = two(0, 1)
    scene = Searching(first, second)
    for text in ("Blue", "blue", "BLUE"):
        assert scene.search(text).source == "second"
    assert len(first.asked) == len(second.asked) == 1
    scene.search("Blue", limit=6)
    assert len(second.asked) == 2
    scene.clock.now += 100  # Negative answers expire first.
    scene.search("Blue")
    assert (len(first.asked), len(second.asked)) == (3, 2)
    scene.clock.now += 1000
    scene.search("Blue")
    assert len(second.asked) == 3


def test_those_who_ask_the_same_at_once_are_answered_by_one_request() -> None:
    only = Scripted()
    scene = Searching(only)
    only.before = scene.slowly
    found = scene.together(
        *(scene.made.search(text, limit) for text, limit in [("x", 5), ("X", 5), ("x", 6)] * 5)
    )
    assert [len(one.songs) for one in found] == [1] * 15
    assert sorted(limit for _, limit, _ in only.asked) == [5, 6]
    assert scene.clock() == 1


def test_who_leaves_has_the_next_ask() -> None:
    only = Scripted()
    scene = Searching(only)

    async def work() -> Any:
        asked = asyncio.Event()

        async def block() -> None:
            asked.set()
            await asyncio.sleep(0 if len(only.asked) > 1 else 60)

        only.before = block
        first, second = (asyncio.ensure_future(scene.made.search("x", 5)) for _ in range(2))
        await asked.wait()
        first.cancel()
        return await second

    assert asyncio.run(work()).source == "only"
    assert len(only.asked) == 2
    assert scene.made.resting() == ""


def test_the_deadline_ends_an_answer_and_who_waits_for_anothers() -> None:
    slow = Scripted("slow")

    async def never() -> None:
        await asyncio.Event().wait()

    slow.before = never
    made = SongSearch([slow], SongCache(0, 1, 1), 0.3)

    async def work() -> list[Any]:
        searches = (made.search("x", 5) for _ in range(2))
        return await asyncio.gather(*searches, return_exceptions=True)

    for error in asyncio.run(work()):
        assert isinstance(error, InternalServerError)
        assert error.status == 504
    assert made.resting() == ""


def test_failures_are_not_kept_and_lead_to_a_pause() -> None:
    first, second = two()
    first.trouble = FAILED
    scene = Searching(first, second)
    assert scene.search("a").source == "second"
    found = scene.search("b")
    assert re.search(rf"first: .*\b2 s\b.*{FAILED.reason}", found.others[0])
    assert len(first.asked) == 1
    assert re.search(rf"first\b.*\b2 s\b.*{FAILED.reason}", scene.made.resting())
    scene.clock.now += 2.1
    first.trouble = None
    assert scene.search("c").source == "first"
    assert scene.made.resting() == ""


def test_a_pause_of_all_is_reported_with_its_length() -> None:
    only = Scripted()
    only.trouble = FAILED
    scene = Searching(only)
    for retry_after in (None, "2"):
        with pytest.raises(InternalServerError) as caught:
            scene.search()
        assert (caught.value.status, caught.value.headers.get("retry-after")) == (502, retry_after)
    assert len(only.asked) == 1
    only.trouble = LIMITED
    scene.clock.now += 3
    for _ in range(2):
        with pytest.raises(RateLimitError) as limited:
            scene.search()
        assert limited.value.headers["retry-after"] == "20"
    assert len(only.asked) == 2


def test_what_goes_through_a_callers_proxy_changes_nothing_for_others() -> None:
    only = Scripted()
    scene = Searching(only)
    only.trouble = FAILED
    with pytest.raises(InternalServerError):
        scene.search(proxy="http://proxy.example:3128")
    only.trouble = None
    scene.search(proxy="http://proxy.example:3128")
    assert scene.search().source == "only"
    assert [proxy for _, _, proxy in only.asked] == ["http://proxy.example:3128"] * 2 + [""]
    assert len(scene.cache) == 1
