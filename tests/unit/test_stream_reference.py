"""Streams of every shape, broken at random, against a decoder of a few lines (N06)."""

from __future__ import annotations

import random
from collections import Counter

import polymux
import pytest
from polymux._native import _core
from support import odd_streams, stream_reference
from support.stream_reference import Chunk, Reading

ENDS = {
    polymux.StreamInterruptedError: "interrupted",
    polymux.APIError: "failed",
    polymux.DecodeError: "undecodable",
}


def decoded(pieces: list[bytes], *, templates: bool) -> Reading:
    chunks = []
    end = "finished"
    try:
        for one in _core.ChatStream(pieces, 16 << 20, templates):
            chunks.append(Chunk(one.content, one.finish_reason, one.role, one.index, one.raw))  # noqa: PERF401
    except tuple(ENDS) as error:
        end = ENDS[type(error)]
    return Reading(chunks, end)


def compare(seed: int, count: int) -> Counter[str]:
    """Ends that were seen."""
    choose = random.Random(seed)
    ends: Counter[str] = Counter()
    for _ in range(count):
        body = odd_streams.mutated(choose, odd_streams.stream(choose))
        found = [decoded(odd_streams.pieces(choose, body), templates=on) for on in (True, False)]
        assert found[0] == found[1], body
        try:
            wanted = stream_reference.read(body)
        except stream_reference.HalfACharacter:
            continue
        assert found[0] == wanted, body
        ends[wanted.end] += 1
    return ends


def test_mutated_streams() -> None:
    ends = compare(seed=20_261_123, count=500)
    assert all(ends[one] > 25 for one in ("finished", *ENDS.values()))


@pytest.mark.long
@pytest.mark.parametrize("seed", range(10))
def test_a_hundred_thousand_mutated_streams(seed: int) -> None:
    compare(seed, 10_000)
