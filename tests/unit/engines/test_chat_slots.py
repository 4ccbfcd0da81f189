from __future__ import annotations

import threading
import time

import pytest
from polymux.engines.base import Cancelled, Token
from polymux.engines.chat.engine import Places


class Guest(threading.Thread):
    def __init__(self, places: Places, count: int) -> None:
        super().__init__(daemon=True)
        self.token = Token()
        self.inside, self.leave = threading.Event(), threading.Event()
        self.was_cancelled = False
        self._places, self._count = places, count
        self.start()

    def run(self) -> None:
        try:
            with self._places.taken(self._count, self.token):
                self.inside.set()
                self.leave.wait(20)
        except Cancelled:
            self.was_cancelled = True

    def end(self) -> None:
        self.leave.set()
        self.join(20)
        assert not self.is_alive()


def waits(guest: Guest) -> bool:
    return not guest.inside.wait(0.1)


def test_those_who_want_several_wait_for_all_of_them_and_are_not_passed() -> None:
    places = Places(2)
    one = Guest(places, 1)
    assert one.inside.wait(20)
    both = Guest(places, 2)
    assert waits(both)
    late = Guest(places, 1)
    assert waits(late)
    one.end()
    assert both.inside.wait(20)
    assert waits(late)
    both.end()
    assert late.inside.wait(20)
    late.end()


def test_who_waits_can_leave_and_keeps_nobody() -> None:
    places = Places(2)
    both = Guest(places, 2)
    assert both.inside.wait(20)
    first, second = Guest(places, 2), Guest(places, 1)
    assert waits(first)
    assert waits(second)
    began = time.monotonic()
    first.token.cancel()
    first.join(20)
    assert first.was_cancelled
    assert time.monotonic() - began < 5
    both.end()
    assert second.inside.wait(20)
    second.end()


def test_places_are_not_lost_to_those_who_are_gone_or_fail() -> None:
    places, gone = Places(1), Token()
    gone.cancel()
    with pytest.raises(Cancelled), places.taken(1, gone):
        raise AssertionError
    with pytest.raises(ValueError, match="x"), places.taken(1, Token()):
        raise ValueError("x")
    last = Guest(places, 1)
    assert last.inside.wait(20)
    last.end()
