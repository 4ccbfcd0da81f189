from __future__ import annotations

import threading

import pytest
from polymux.batches.runner import RetryAfterGate, retry_after_s
from polymux.errors import ConnectError, OverloadedError, RateLimitError
from servers.replies import http_date


class Clock:
    now_s = 50.0

    def __call__(self) -> float:
        return self.now_s


def refusal(**headers: str) -> RateLimitError:
    error = RateLimitError("too many")
    error.headers = {name.replace("_", "-"): value for name, value in headers.items()}
    return error


def test_all_keep_the_longest_pause_that_was_asked_for() -> None:
    clock = Clock()
    pauses = RetryAfterGate(clock=clock)
    assert pauses.left_s == 0
    assert pauses.refused(refusal(retry_after="7"))
    assert pauses.refused(refusal(retry_after="3"))
    assert pauses.left_s == 7
    clock.now_s += 7
    assert pauses.left_s == 0
    assert pauses.wait()


def test_pauses_grow_where_the_server_says_nothing() -> None:
    clock = Clock()
    pauses = RetryAfterGate(clock=clock)
    lengths = []
    for error in (ConnectError("no"), OverloadedError("no"), refusal(retry_after="soon")):
        pauses.refused(error)
        pauses.refused(error)  # another thread, at the same moment
        lengths.append(pauses.left_s)
        clock.now_s += pauses.left_s
    assert lengths == [1, 2, 4]
    pauses.succeeded()
    pauses.refused(ConnectError("no"))
    assert pauses.left_s == 1


def test_patience_comes_to_its_end_where_nothing_succeeds() -> None:
    clock = Clock()
    pauses = RetryAfterGate(60, clock=clock)
    assert pauses.refused(refusal(retry_after="40"))
    clock.now_s += 40
    assert pauses.refused(refusal(retry_after="40"))
    clock.now_s += 40
    assert not pauses.refused(refusal(retry_after="40"))
    assert not RetryAfterGate(60).refused(refusal(retry_after="9" * 40))
    pauses.succeeded()
    assert pauses.refused(refusal(retry_after="40"))


def test_the_end_wakes_those_who_wait() -> None:
    pauses = RetryAfterGate()
    pauses.refused(refusal(retry_after="600"))
    answers: list[bool] = []
    waiting = threading.Thread(target=lambda: answers.append(pauses.wait()))
    waiting.start()
    pauses.end()
    waiting.join(30)
    assert answers == [False]


@pytest.mark.parametrize("text", ["", "soon", "-3", "1e3", "٣"])
def test_what_is_no_time(text: str) -> None:
    assert retry_after_s({"retry-after": text}) is None


def test_dates() -> None:
    for form in ("imf", "rfc850", "asctime"):
        asked_s = retry_after_s({"retry-after": http_date(90, form)})
        assert asked_s is not None
        assert 80 < asked_s <= 91
    assert retry_after_s({"retry-after": http_date(-90)}) == 0
