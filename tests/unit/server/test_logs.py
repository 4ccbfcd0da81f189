from __future__ import annotations

import logging
import os
import re
import time
from pathlib import Path
from typing import TYPE_CHECKING

from polymux.server.observability import logs
from polymux.server.observability.logs import NonBlockingHandler

if TYPE_CHECKING:
    from collections.abc import Iterator

    import pytest


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("polymux", logging.INFO, "", 0, text, (), None)


def read_all(descriptor: int, until: bytes) -> bytes:
    data = b""
    began = time.monotonic()
    while not re.search(until, data):
        assert time.monotonic() - began < 10, data[-500:]
        data += os.read(descriptor, 65536)
    return data


def numbers(data: bytes) -> Iterator[int]:
    return (int(line.split()[1]) for line in data.decode().splitlines() if line.startswith("line "))


def test_what_waited_comes_in_order() -> None:
    """The pipe fills up; once it is read, every line is there."""
    reader, writer = os.pipe()
    handler = NonBlockingHandler(writer)
    began = time.monotonic()
    for number in range(5000):
        handler.handle(record(f"line {number} {'x' * 50}"))
    assert time.monotonic() - began < 30
    data = read_all(reader, b"line 4999 ")
    assert list(numbers(data)) == list(range(5000))
    os.close(reader)
    os.close(writer)


def test_what_had_no_room_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logs, "_MAX_WAITING_BYTES", 100_000)
    reader, writer = os.pipe()
    handler = NonBlockingHandler(writer)
    for number in range(10_000):
        handler.handle(record(f"line {number} {'x' * 50}"))
    data = read_all(reader, rb"\n\d+ .*\n")
    kept = list(numbers(data))
    left_out = int(re.findall(rb"\n(\d+) ", data)[-1])
    assert kept == list(range(len(kept)))
    assert len(kept) + left_out == 10_000
    assert left_out > 1000
    handler.handle(record("line 5 again"))
    assert b"line 5 again" in read_all(reader, b"again")
    os.close(reader)
    os.close(writer)


def test_the_last_words_are_written_where_somebody_reads(tmp_path: Path) -> None:
    path = tmp_path / "log"
    with path.open("wb") as file:
        handler = NonBlockingHandler(file.fileno())
        handler.handle(record("line 1"))
        handler.handle(logging.LogRecord("x", logging.INFO, "", 0, "line %d", ("no number",), None))
        handler.flush()
    assert path.read_text().splitlines()[0] == "line 1"


def test_nobody_can_read_any_more() -> None:
    """With a closed reader or a full disk, lines are lost, but nothing is raised."""
    reader, writer = os.pipe()
    os.close(reader)
    broken = NonBlockingHandler(writer)
    with Path("/dev/full").open("wb", buffering=0) as full:
        for handler in (broken, NonBlockingHandler(full.fileno())):
            for number in range(100):
                handler.handle(record(f"line {number}"))
            began = time.monotonic()
            handler.flush()
            assert time.monotonic() - began < 10
