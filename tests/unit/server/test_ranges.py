"""Range headers, compared with a second implementation of RFC 9110, 14.1.2 and 14.2."""

from __future__ import annotations

import random

import pytest
from polymux.errors import APIStatusError
from polymux.server.routes.files import _part

ALPHABET = "0123456789-=, bytesBYTES\t\u0660\u00b2\x00+"


def second_reading(wanted: str, size: int) -> tuple[int, int] | int | None:
    """Start and end, 416, or None for the whole file."""
    unit, equals, rest = wanted.strip().partition("=")
    first, dash, last = rest.partition("-")
    digits = "0123456789"
    if unit.lower() != "bytes" or not equals or not dash or "," in rest:
        return None
    if any(char not in digits for char in first + last) or not first + last:
        return None
    if not first:
        return (max(0, size - int(last)), size) if int(last) and size else 416
    if last and int(last) < int(first):
        return None
    if int(first) >= size:
        return 416
    return int(first), min(size, int(last) + 1) if last else size


def reading(wanted: str, size: int) -> tuple[int, int] | int | None:
    try:
        return _part(wanted, size)
    except APIStatusError as error:
        return error.status


def some_range(source: random.Random) -> str:
    """A mostly valid range with some characters changed."""
    numbers = [str(source.choice((0, 1, 99, 100, 101, 2**63, source.getrandbits(70))))
               if source.random() < 0.8 else "" for _ in range(2)]  # fmt: skip
    text = f"bytes={numbers[0]}-{numbers[1]}"
    for _ in range(source.choice((0, 0, 0, 1, 2, 5))):
        place = source.randrange(len(text) + 1)
        text = text[:place] + source.choice(ALPHABET) + text[place + source.randrange(2) :]
    return text


def compare(count: int, seed: int) -> None:
    source = random.Random(seed)
    seen: set[type] = set()
    for number in range(count):
        wanted, size = some_range(source), source.choice((0, 1, 100, 2**40))
        found = reading(wanted, size)
        assert found == second_reading(wanted, size), (seed, number, wanted, size)
        if isinstance(found, tuple):
            assert 0 <= found[0] < found[1] <= size
        seen.add(type(found))
    assert seen == {tuple, int, type(None)}


def test_any_range_is_read_in_one_way() -> None:
    compare(50_000, 1)


@pytest.mark.long
def test_ten_million_ranges() -> None:
    compare(10_000_000, 2)
