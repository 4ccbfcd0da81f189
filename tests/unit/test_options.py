from __future__ import annotations

import re
from pathlib import Path

import polymux
import pytest
from hypothesis import given
from hypothesis import strategies as some
from polymux import InvalidRequestError
from polymux.media import options

CORE_LIMITS = Path(__file__).parents[2] / "cpp/include/polymux/media/limits.hpp"


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (None, None),
        (0, 0.0),
        ("93.5", 93.5),
        ("1:33.5", 93.5),
        ("100:00:00", 360_000.0),
        ("5.", 5.0),
    ],
)
def test_times(value: float | str | None, expected: float | None) -> None:
    assert options.seconds("start", value) == expected


@pytest.mark.parametrize(
    "value",
    ["", "x", "-5", "1:60", "1:2:3:4", "60:00:00:00", "1:99:00", "1e3", "inf", "nan", " 5", "5 s",
     "٣", "1:", ":30", "9" * 400],
)  # fmt: skip
def test_texts_that_are_no_times(value: str) -> None:
    with pytest.raises(InvalidRequestError, match="start") as caught:
        options.seconds("start", value)
    assert len(str(caught.value)) < 400


@given(some.integers(0, 10**6 - 1), some.integers(0, 59), some.integers(0, 59_999))
def test_clock_times_add_up(hours: int, minutes: int, milliseconds: int) -> None:
    text = f"{hours}:{minutes:02}:{milliseconds // 1000:02}.{milliseconds % 1000:03}"
    expected = hours * 3600 + minutes * 60 + milliseconds / 1000
    assert options.seconds("end", text) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("value", [True, [], b"5", object()])
def test_times_of_other_types(value: object) -> None:
    with pytest.raises(TypeError, match="end"):
        options.seconds("end", value)  # type: ignore[arg-type]


@pytest.mark.parametrize("value", [128, "128"])
def test_a_bitrate_as_other_encoders_expect_it(value: int | str) -> None:
    with pytest.raises(InvalidRequestError, match="128k"):
        options.native_options({"bitrate": value})


def test_integers_and_flags() -> None:
    assert options.flag("strict", True) is True
    with pytest.raises(TypeError, match=r"strict.*1"):
        options.flag("strict", 1)

    class Index:
        def __index__(self) -> int:
            return 44_100

    assert options.integer("sample_rate", Index()) == 44_100
    assert options.optional_integer("sample_rate", None) is None
    assert options.integer("limits.tag_bytes", 2**40, bits=64) == 2**40
    for wrong in (True, 1.0, "1", None):
        with pytest.raises(TypeError, match="sample_rate"):
            options.integer("sample_rate", wrong)
    for large in (2**31, -(2**31) - 1, 10**400):
        with pytest.raises(InvalidRequestError, match="sample_rate"):
            options.integer("sample_rate", large)


def test_limits_are_a_frozen_value() -> None:
    limits = polymux.Limits(channels=2)
    assert limits == polymux.Limits(channels=2)
    assert limits != polymux.Limits()
    assert repr(limits).startswith("Limits(probe_bytes=5000000, streams=1000, ")
    with pytest.raises(AttributeError):
        limits.channels = 8  # type: ignore[misc]


def test_fields_of_limits_are_those_of_the_core() -> None:
    core = re.findall(r"^\s+\S+ (\w+) = [^;]+;", CORE_LIMITS.read_text(), re.MULTILINE)
    assert core == list(polymux.Limits.__dataclass_fields__)
