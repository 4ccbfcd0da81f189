from __future__ import annotations

import json
import struct
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from polymux.engines.process.framing import (
    MAX_HEADER_BYTES,
    MAX_PAYLOAD_BYTES,
    Frame,
    FrameError,
    FrameReader,
    encoded,
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
FRAMES = st.builds(Frame, st.dictionaries(st.text(), VALUES, max_size=4), st.binary(max_size=200))


@settings(max_examples=50, deadline=None)
@given(st.lists(FRAMES, max_size=6), st.randoms(use_true_random=False))
def test_frames_come_out_as_they_went_in(frames: list[Frame], random: object) -> None:
    data = b"".join(encoded(one) for one in frames)
    reader = FrameReader()
    found: list[Frame] = []
    while data:
        size = random.randint(1, 60)  # type: ignore[attr-defined]
        found += reader.feed(data[:size])
        data = data[size:]
    assert found == frames
    assert reader.waiting_bytes == 0


def frames_or_error(data: bytes) -> None:
    reader = FrameReader()
    with suppress(FrameError):
        assert all(isinstance(one.header, dict) for one in reader.feed(data))
        assert reader.waiting_bytes <= len(data)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=120))
def test_any_bytes_are_frames_an_error_or_not_enough(data: bytes) -> None:
    frames_or_error(data)


@settings(max_examples=300, deadline=None)
@given(FRAMES, st.integers(0, 10_000), st.integers(1, 255))
def test_a_changed_byte_is_a_frame_or_an_error(frame: Frame, at: int, change: int) -> None:
    data = bytearray(encoded(frame))
    data[at % len(data)] ^= change
    frames_or_error(bytes(data))


DEEP = b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}"


@pytest.mark.parametrize(
    "data",
    [
        struct.pack(">II", 2, 2),
        struct.pack(">II", 0xFFFFFFFF, 2),
        struct.pack(">II", MAX_HEADER_BYTES + 5, MAX_HEADER_BYTES + 1),
        struct.pack(">II", MAX_PAYLOAD_BYTES + 4 + 3, 2),
        struct.pack(">II", 4, 0),
        struct.pack(">II", 6, 2) + b"[]",
        struct.pack(">II", 6, 2) + b"{x",
        struct.pack(">II", 6, 2) + b"\xff\xff",
        struct.pack(">II", 13, 9) + b'{"a":NaN}',
        struct.pack(">II", 4 + len(DEEP), len(DEEP)) + DEEP,
    ],
    ids=range(10),
)
def test_what_is_no_frame(data: bytes) -> None:
    with pytest.raises(FrameError):
        FrameReader().feed(data)


def test_what_cannot_be_sent() -> None:
    with pytest.raises(ValueError, match=f"{MAX_PAYLOAD_BYTES + 1}"):
        encoded(Frame({}, b"x" * (MAX_PAYLOAD_BYTES + 1)))
    with pytest.raises(ValueError, match="JSON"):
        encoded(Frame({"a": float("nan")}))
    assert json.loads(encoded(Frame({"kind": "x"}))[8:]) == {"kind": "x"}
