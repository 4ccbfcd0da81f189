from __future__ import annotations

import pytest
from polymux.engines.ocr.reading_order import Line, in_reading_order, joined


def line(text: str, left: float, top: float, width: float = 200, height: float = 20) -> Line:
    return Line(text, left, top, left + width, top + height, 0.9)


def test_nothing_is_an_empty_text() -> None:
    assert in_reading_order([]) == ""
    assert joined([]) == ""


def test_pieces_of_a_line_are_joined_from_left_to_right() -> None:
    found = in_reading_order([line("three", 500, 2), line("one", 0, 0), line("two", 250, -3)])
    assert found == "one two three"


def test_lines_come_from_above() -> None:
    lines = [line(str(n), 0, 40 * n) for n in (3, 1, 2, 0)]
    assert in_reading_order(lines) == "0\n1\n2\n3"


COLUMNS = [line(f"left {n}", 0, 100 + 40 * n) for n in range(3)] + [
    line(f"right {n}", 400, 100 + 40 * n) for n in range(3)
]


def test_columns_are_read_one_after_the_other() -> None:
    assert in_reading_order(COLUMNS).split("\n") == [
        "left 0", "left 1", "left 2", "right 0", "right 1", "right 2",
    ]  # fmt: skip


@pytest.mark.parametrize("top", [0, 400])
def test_a_heading_or_foot_across_columns_stands_alone(top: float) -> None:
    across = line("across", 0, top, 600)
    found = in_reading_order([*COLUMNS, across]).split("\n")
    assert found.index("across") == (0 if top == 0 else 6)
    assert found.index("left 2") < found.index("right 0")


def test_a_price_is_no_column() -> None:
    lines = [line(f"item {n}", 0, 40 * n) for n in range(4)] + [line("9.99", 600, 80, 60)]
    assert in_reading_order(lines).split("\n")[2] == "item 2 9.99"
