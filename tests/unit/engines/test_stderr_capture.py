from __future__ import annotations

import pytest
from polymux.engines.process.process import StderrCapture


@pytest.fixture(autouse=True)
def _logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "polymux.engines")


def test_lines_are_whole_however_they_come(caplog: pytest.LogCaptureFixture) -> None:
    capture = StderrCapture("one")
    for at, piece in enumerate((b"fi", b"rst\nsec", b"ond\n\n  \nthi\x1brd")):
        capture.take(piece, float(at))
    assert list(capture.lines) == ["first", "second"]
    capture.take(b"", 3.0)
    assert list(capture.lines) == ["first", "second", "thi\\x1brd"]
    assert caplog.messages == ["one: first", "one: second", "one: thi\\x1brd"]


def test_a_flood_is_counted(caplog: pytest.LogCaptureFixture) -> None:
    capture = StderrCapture("one")
    for number in range(20):
        capture.take(b"".join(b"%d\n" % (number * 100 + one) for one in range(100)), 1.0)
    assert caplog.messages[-1] == "one: 499"
    assert len(caplog.messages) == 500
    assert list(capture.lines) == [str(one) for one in range(1950, 2000)]
    capture.take(b"later\n", 12.0)
    assert "1500" in caplog.messages[500]
    assert caplog.messages[501:] == ["one: later"]


def test_what_is_left_out_at_the_end_is_counted_too(caplog: pytest.LogCaptureFixture) -> None:
    capture = StderrCapture("one")
    capture.take(b"x\n" * 700, 0.0)
    capture.take(b"", 1.0)
    assert "200" in caplog.messages[-1]


def test_a_line_without_end_takes_no_room() -> None:
    capture = StderrCapture("one")
    for _ in range(100):
        capture.take(b"w" * 100_000, 0.0)
    capture.take(b" end\nnext\n", 0.0)
    assert len(capture.lines[0]) <= 500
    assert list(capture.lines)[1:] == ["next"]
