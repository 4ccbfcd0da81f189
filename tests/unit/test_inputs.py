from __future__ import annotations

import io
import os
from array import array
from pathlib import Path
from typing import Any

import pytest
from polymux import InvalidRequestError
from polymux.media.inputs import destination_path, native_destination, native_source


class BytesPath:
    def __fspath__(self) -> bytes:
        return b"caf\xe9.wav"


@pytest.mark.parametrize(
    ("source", "path", "name"),
    [
        (Path("a") / "b.wav", b"a/b.wav", "a/b.wav"),
        ("file:x", b"file:x", "file:x"),
        ("concat:a|b", b"concat:a|b", "concat:a|b"),
        ("-x.wav", b"-x.wav", "-x.wav"),
        (os.fsdecode(b"caf\xe9.wav"), b"caf\xe9.wav", "caf\\xe9.wav"),
        (BytesPath(), b"caf\xe9.wav", "caf\\xe9.wav"),
        ("a\x1b[2J.wav", b"a\x1b[2J.wav", "a\\x1b[2J.wav"),
        ("", b"", ""),
    ],
)
def test_a_path_is_a_plain_path(source: str, path: bytes, name: str) -> None:
    assert native_source(source) == ("path", path, name)


def test_long_paths_are_named_shortly_and_kept_whole() -> None:
    source = "d/" * 2000 + "x.wav"
    kind, path, name = native_source(source)
    assert (kind, path) == ("path", source.encode())
    assert len(name) <= 200
    assert name.endswith("x.wav")


@pytest.mark.parametrize("source", ["a\0b", "lone \ud800 surrogate"])
def test_paths_that_cannot_exist(source: str) -> None:
    for take in (native_source, native_destination):
        with pytest.raises(InvalidRequestError, match="path"):
            take(source)


@pytest.mark.parametrize(
    "content", [b"RIFF", bytearray(b"RIFF"), memoryview(b"xRIFFx")[1:5], array("B", b"RIFF")]
)
def test_bytes_are_content(content: Any) -> None:
    kind, view, name = native_source(content)
    assert (kind, name) == ("bytes", "<bytes>")
    assert bytes(view) == b"RIFF"  # type: ignore[call-overload]


def test_buffers_of_any_item_type_are_their_bytes() -> None:
    assert native_source(array("f", [0.0, 1.0]))[1].nbytes == 8  # type: ignore[attr-defined]
    with pytest.raises(InvalidRequestError, match="contiguous"):
        native_source(memoryview(b"abcdef")[::2])


def test_file_objects_are_named_after_their_file(tmp_path: Path) -> None:
    path = tmp_path / "x.wav"
    path.write_bytes(b"RIFF")
    with path.open("rb") as file:
        assert native_source(file) == ("file", file, str(path))
    memory = io.BytesIO(b"RIFF")
    assert native_source(memory) == ("file", memory, "<BytesIO>")
    with os.fdopen(os.open(path, os.O_RDONLY), "rb") as numbered:
        assert native_source(numbered)[2].startswith("<file descriptor ")
    with io.FileIO(0, closefd=False) as standard_input:
        assert native_source(standard_input)[2] == "<stdin>"


@pytest.mark.parametrize("source", [None, 5, ["a.wav"], object(), io.StringIO("text")])
def test_other_sources_are_type_errors(source: object) -> None:
    with pytest.raises(TypeError, match=rf"{type(source).__name__}|binary"):
        native_source(source)


def test_destinations() -> None:
    file = io.BytesIO()
    assert native_destination(None) is None
    for path in ("a.mp3", b"a.mp3", Path("a.mp3")):
        assert native_destination(path) == ("path", b"a.mp3")
    assert native_destination(file) == ("file", file)
    for wrong, words in ((5, "destination"), (["a.mp3"], "destination"), (io.StringIO(), "binary")):
        with pytest.raises(TypeError, match=words):
            native_destination(wrong)
    assert destination_path(b"a.mp3") == Path("a.mp3")
    assert destination_path(file) is None
