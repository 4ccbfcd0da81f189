from __future__ import annotations

import asyncio
import itertools

import pytest
from polymux.upstreams.error_mapping import retry_after_s
from polymux.upstreams.song_recognition.shazam import ShazamRecognition
from polymux.upstreams.song_search.cache import SongCache
from polymux.upstreams.song_search.errors import ErrorKind, ProviderError
from polymux.upstreams.song_search.providers import ITunes, MusicBrainz, Shazam
from polymux.upstreams.song_search.rate_limit import BackOff, Rate, TokenBucket
from polymux.upstreams.song_search.songs import Song
from support.fake_clock import FakeClock

FAILED = ProviderError(ErrorKind.FAILED, "it answered with status 500")


class Turns:
    def __init__(self, rate: Rate) -> None:
        self.clock = FakeClock()
        self.bucket = TokenBucket(rate, self.clock, self.clock.sleep)
        self.times: list[float] = []

    async def one(self) -> None:
        assert await self.bucket.take(1e6) is None
        self.times.append(self.clock())

    async def many(self, count: int) -> list[float]:
        await self.clock.run(*(self.one() for _ in range(count)))
        return self.times


def test_so_many_at_once_and_the_others_one_after_the_other() -> None:
    times = asyncio.run(Turns(Rate(3, 0.5)).many(6))
    assert times == pytest.approx([0, 0, 0, 2, 4, 6], abs=1e-5)


def test_who_would_wait_too_long_is_refused_at_once_and_takes_no_turn() -> None:
    """The unused turn goes to the next request."""

    async def asked() -> None:
        turns = Turns(Rate(1, 0.1))
        take = turns.bucket.take
        assert await take(0) is None
        assert await take(5) == pytest.approx(10)
        assert turns.clock() == 0
        turns.clock.now = 10
        assert await take(0) is None
        turns.bucket.give_back()
        turns.bucket.give_back()
        assert await take(0) is None
        assert await take(0) == pytest.approx(10)  # Giving a turn back twice returns one turn.

    asyncio.run(asked())


def test_who_leaves_the_queue_costs_no_turn_and_lets_nobody_through_early() -> None:
    async def asked() -> list[float]:
        turns = Turns(Rate(1, 1.0))
        tasks = [asyncio.ensure_future(turns.one()) for _ in range(5)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        tasks[3].cancel()
        await asyncio.sleep(0)
        late = asyncio.ensure_future(turns.one())
        await turns.clock.run(*(asyncio.wait([task]) for task in [*tasks, late]))
        return turns.times

    assert asyncio.run(asked()) == pytest.approx([0, 1, 2, 3], abs=1e-5)


@pytest.mark.parametrize(
    ("rate", "window_s", "most"),
    [
        (ITunes.rate, 60, 20),
        (MusicBrainz.rate, 1, 2),
        (Shazam.rate, 60, 5),
        (ShazamRecognition.rate, 60, 5),
    ],
)
def test_no_provider_is_asked_more_often_than_it_allows(
    rate: Rate, window_s: float, most: int
) -> None:
    """This holds in every window; MusicBrainz counts both ends of its second."""
    times = asyncio.run(Turns(rate).many(60))
    for begin in times:
        inside = [one for one in times if begin <= one < begin + window_s - 1e-4]
        assert len(inside) <= (most if window_s > 1 else 1)


def test_pauses_grow_and_end() -> None:
    clock = FakeClock()
    pause = BackOff(clock, lambda: 1.0)
    assert pause.left_s == 0
    lengths = []
    for _ in range(10):
        pause.failed(FAILED, clock())
        lengths.append(pause.left_s)
        clock.now += pause.left_s
        assert pause.left_s == 0
    assert lengths == [2, 4, 8, 16, 32, 64, 128, 256, 300, 300]
    pause.succeeded(clock())
    pause.failed(FAILED, clock())
    assert pause.left_s == 2


def test_pauses_are_of_random_length_and_as_long_as_the_provider_asks_for() -> None:
    lengths = []
    for chance in (0.0, 0.25, 1.0):
        clock = FakeClock()
        pause = BackOff(clock, lambda found=chance: found)  # type: ignore[misc]
        pause.failed(FAILED, clock())
        lengths.append(pause.left_s)
        clock.now = 10
        pause.failed(ProviderError(ErrorKind.LIMITED, "often", 90.0), clock())
        assert pause.left_s == 90
    assert lengths == [1.0, 1.25, 2.0]
    clock.now = 100
    pause.failed(ProviderError(ErrorKind.LIMITED, "often", 0.0), clock())
    assert pause.left_s == 8  # A Retry-After of zero does not end the pause.


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("7", 7), ("0", 0), ("1.5", 1.5), ("-3", 0), ("1e9", 3600), ("inf", 3600), ("nan", None),
        ("soon", None), ("", None), ("Wed, 01 Jan 2020 00:00:00 GMT", 0),
        ("Wed, 01 Jan 2120 00:00:00 GMT", 3600), ("Wed, 99 Jan 2120 00:00:00 GMT", None),
        ("Wed, 01 Jan 999999 00:00:00 GMT", None),
    ],
)  # fmt: skip
def test_retry_after(value: str, seconds: float | None) -> None:
    assert retry_after_s({"retry-after": value}) == seconds
    assert retry_after_s({}) is None


def songs(count: int = 1, name: str = "x") -> list[Song]:
    return [Song(name, "", "")] * count


def test_answers_are_kept_for_a_while() -> None:
    clock = FakeClock()
    cache = SongCache(1 << 20, 100, 10, clock)
    cache.keep("itunes", "Blue Danube", 5, songs())
    cache.keep("itunes", "nothing", 5, [])
    assert cache.find("itunes", "bLUE dANUBE", 5) == tuple(songs())
    assert cache.find("itunes", "Blue Danube", 6) is None
    assert cache.find("shazam", "Blue Danube", 5) is None
    assert cache.find("itunes", "nothing", 5) == ()
    clock.now = 10
    assert cache.find("itunes", "nothing", 5) is None
    clock.now = 99.9
    assert cache.find("itunes", "Blue Danube", 5) is not None
    clock.now = 100
    assert cache.find("itunes", "Blue Danube", 5) is None
    assert len(cache) == cache.size_bytes == 0


def test_the_longest_unused_answer_is_given_up() -> None:
    cache = SongCache(4000, 100, 10, FakeClock())
    for name in "abc":
        cache.keep("itunes", name, 5, songs())
    assert len(cache) == 3
    for name in itertools.chain("a", "defghijklm"):
        cache.find("itunes", "a", 5)
        cache.keep("itunes", name, 5, songs())
        assert cache.size_bytes <= 4000
    assert cache.find("itunes", "a", 5) is not None
    assert cache.find("itunes", "b", 5) is None
    assert cache.find("itunes", "m", 5) is not None
