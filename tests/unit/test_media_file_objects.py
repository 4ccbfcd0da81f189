from __future__ import annotations

import io
import os
import traceback
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._native import _media
from support.conversions import Reader, fail_at_once, mp3_of, start, wav

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SHORT = wav(0.3)


class Writer:
    """A write-only file object; `answer` turns the offered count into the result of `write`."""

    def __init__(self, answer: Callable[[int], Any]) -> None:
        self.answer = answer
        self.content = bytearray()

    def write(self, data: bytes) -> Any:
        answer = self.answer(len(data))
        self.content += data if answer is None else data[:answer]
        return answer


class RawWriter(io.RawIOBase, Writer):
    """A raw file. None means that it took nothing, like a full pipe."""

    write = Writer.write


def test_every_kind_of_source_and_destination_gives_the_same_file(tmp_path: Path) -> None:
    path, target = tmp_path / "in.wav", tmp_path / "out.mp3"
    path.write_bytes(SHORT)
    expected = mp3_of(SHORT)
    assert expected.startswith((b"\xff", b"ID3"))
    for source in (("path", os.fsencode(path), "in.wav"), bytearray(SHORT), io.BytesIO(SHORT)):
        assert mp3_of(source) == expected
    start(SHORT, ("path", os.fsencode(target))).wait()
    assert target.read_bytes() == expected
    # File objects are read and written from their current position.
    source, output = io.BytesIO(b"before" + SHORT), io.BytesIO(b"kept")
    source.seek(6)
    output.seek(4)
    assert "data" not in start(source, output).wait()
    assert output.getvalue() == b"kept" + expected


def test_what_read_raises_comes_out_as_it_is_each_time() -> None:
    raised = LookupError("the reader's own")

    def fail(reads: int) -> None:
        if reads > 1:
            raise raised

    conversion = start(Reader(SHORT, fail))
    for _ in range(2):
        with pytest.raises(LookupError) as caught:
            conversion.wait()
        assert caught.value is raised
        names = [frame.name for frame in traceback.extract_tb(raised.__traceback__)]
        assert names[-2:] == ["read", "fail"]
        assert names.count("read") == 1
    with pytest.raises(LookupError) as caught:
        _media.probe(("file", Reader(SHORT, fail_at_once(raised)), "x"), _media.Limits())
    assert caught.value is raised


class NotWaiting:
    def read(self, _: int) -> None:
        return None


@pytest.mark.parametrize(
    ("source", "error", "named"),
    [
        (Reader(SHORT, lambda _: "text"), TypeError, r"\bstr\b"),
        (Reader(SHORT, lambda _: bytes(10_000_000)), ValueError, "10000000"),
        (Reader(SHORT, lambda _: 7), TypeError, "bytes-like"),
        (NotWaiting(), BlockingIOError, r"read\(\)"),
    ],
)
def test_what_no_binary_file_returns_is_named(
    source: Any, error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        start(source).wait()


def test_what_has_no_method_to_use_is_refused_at_once() -> None:
    with pytest.raises(TypeError, match=r"read\(\)"):
        start(object())
    with pytest.raises(TypeError, match=r"write\(\)"):
        start(SHORT, object())
    with pytest.raises(TypeError, match="wb"):
        start(SHORT, io.StringIO())


@pytest.mark.parametrize(
    "make",
    [lambda: Writer(lambda n: n), lambda: Writer(lambda n: min(n, 7)),
     lambda: Writer(lambda _: None), lambda: RawWriter(lambda n: min(n, 1000))],
)  # fmt: skip
def test_writers_that_cannot_seek_get_all_bytes(make: Callable[[], Writer]) -> None:
    writer = make()
    assert start(SHORT, writer).wait()["bytes"] == len(writer.content)
    polymux.probe(bytes(writer.content))


@pytest.mark.parametrize("answer", [0, -1, 10**9])
def test_an_impossible_count_of_written_bytes_is_named(answer: int) -> None:
    with pytest.raises(ValueError, match=rf"\D{answer}\D"):
        start(SHORT, Writer(lambda _: answer)).wait()


def test_what_write_raises_comes_out_as_it_is() -> None:
    raised = ZeroDivisionError()
    with pytest.raises(ZeroDivisionError) as caught:
        start(SHORT, Writer(fail_at_once(raised))).wait()
    assert caught.value is raised
    with pytest.raises(BlockingIOError, match=r"write\(\)"):
        start(SHORT, RawWriter(lambda _: None)).wait()


def test_a_file_opened_for_appending_is_never_patched(tmp_path: Path) -> None:
    path = tmp_path / "log.mp3"
    with path.open("ab") as file:
        report = start(SHORT, file).wait()
    assert path.stat().st_size == report["bytes"]


def test_an_output_object_that_is_the_input_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "in.wav"
    path.write_bytes(SHORT)
    with path.open("r+b") as file, pytest.raises(polymux.OutputRefusedError):
        start(("path", os.fsencode(path), "in.wav"), file).wait()
    with path.open("rb") as file, pytest.raises(polymux.OutputRefusedError):
        start(file, ("path", os.fsencode(path))).wait()
    assert path.read_bytes() == SHORT
