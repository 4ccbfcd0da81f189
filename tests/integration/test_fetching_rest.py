"""Fetching the rest of what broke off, by the inner face: offsets, limits, and who may end it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import pytest
from polymux import errors
from polymux.fetch.fetcher import Fetched, FetchLimits, FetchPolicy, FetchStart, fetch_rest
from support.fetches import answering
from support.ranges import Ranged
from support.web import Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DATA = bytes(range(256)) * 100
HALF = len(DATA) // 2


class Kept:
    """The first half of the data in a file."""

    def __init__(self, path: Path, etag: str = '"one"') -> None:
        path.write_bytes(DATA[:HALF])
        self.path = path
        self.descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
        self.have_bytes = HALF
        self.whole_bytes: int | None = len(DATA)
        self.etag = etag
        self.starts: list[FetchStart] = []

    def begins(self, start: FetchStart) -> None:
        self.starts.append(start)
        if start.offset == 0:
            os.ftruncate(self.descriptor, 0)


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path / "kept")
    yield made
    os.close(made.descriptor)


def got(server: Server, kept: Kept, **options: Any) -> Fetched:
    policy = FetchPolicy(allowed_hosts=(server.authority,))
    return fetch_rest(server.url("/a"), kept, policy=policy, **options)


def test_the_rest_and_all_of_it(kept: Kept) -> None:
    there = Ranged(DATA)
    told: list[tuple[int, int | None]] = []
    with Server(there) as server:
        fetched = got(server, kept, on_progress=lambda *one: told.append(one))
        assert (fetched.status, fetched.offset, fetched.body_bytes) == (206, HALF, HALF)
        assert (fetched.data, fetched.path) == (None, None)
        assert kept.path.read_bytes() == DATA
        assert told[-1] == (len(DATA), None)
        assert min(told)[0] >= HALF
        kept.etag = '"other"'
        fetched = got(server, kept)
    assert (fetched.status, fetched.offset, fetched.body_bytes) == (200, 0, len(DATA))
    assert kept.path.read_bytes() == DATA
    assert kept.starts == [
        FetchStart(206, HALF, len(DATA), '"one"', is_encoded=False),
        FetchStart(200, 0, len(DATA), '"one"', is_encoded=False),
    ]
    assert there.asked == [(f"bytes={HALF}-", '"one"'), (f"bytes={HALF}-", '"other"')]
    assert {name for name, _ in server.requests[0].headers} == {
        "Accept", "Accept-Encoding", "Host", "If-Range", "Range", "User-Agent",
    }  # fmt: skip


@pytest.mark.parametrize("most", [0, HALF, len(DATA) - 1])
def test_limits_count_what_is_there(kept: Kept, most: int) -> None:
    with Server(Ranged(DATA)) as server:
        with pytest.raises(errors.AnswerTooLargeError, match="after the 12800 before"):
            got(server, kept, limits=FetchLimits(body_bytes=most))
        assert kept.path.read_bytes() == DATA[:HALF]
        got(server, kept, limits=FetchLimits(body_bytes=len(DATA)))
    assert kept.path.read_bytes() == DATA


@pytest.mark.parametrize("status", [200, 206, 404, 500])
def test_who_is_told_may_end_it(kept: Kept, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    ended = ZeroDivisionError("no")

    def refuse(start: FetchStart) -> None:
        assert start.status == status
        raise ended

    monkeypatch.setattr(kept, "begins", refuse)
    part = f"Content-Range: bytes {HALF}-{len(DATA) - 1}/{len(DATA)}"
    script = answering(status, DATA[HALF:], part)
    with Server(script) as server, pytest.raises(ZeroDivisionError) as caught:
        got(server, kept)
    assert caught.value is ended
    assert kept.path.read_bytes() == DATA[:HALF]


def test_it_passes_the_guard(kept: Kept) -> None:
    with Server(Ranged(DATA)) as server:
        for url in (server.url(), "file:///etc/passwd"):
            with pytest.raises(errors.URLRefusedError):
                fetch_rest(url, kept)
    assert server.connections == 0
    assert kept.starts == []
