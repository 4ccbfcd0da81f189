"""Multipart bodies, read by independent parsers, and source files that misbehave."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from polymux import InvalidRequestError
from polymux.client.multipart import multipart_body
from support import form_parsers
from support.form_parsers import Field, File
from support.hostile_check import SANITIZED
from support.memory import resident_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Names in all scripts, except for what the parser strips or unescapes: folders, backslashes, %22,
#: blanks at the ends.
NAMES = st.text(
    st.characters(exclude_categories=("Cs", "Cc"), exclude_characters='/\\%"'),
    min_size=1,
    max_size=40,
).filter(lambda name: name == name.strip() and name.count(";") < 2)
#: Bytes that look like boundaries.
DATA = st.binary(max_size=300) | st.lists(
    st.sampled_from([b"\r\n", b"--", b"\r", b"\n", b"--polymux-", b"-", b"\x00", b"a", b'"']),
    max_size=30,
).map(b"".join)
TYPES = st.sampled_from([None, "audio/mpeg", "image/png", "text/plain; charset=utf-8"])


def read(body: Any, size: int = 65536) -> bytes:
    pieces = []
    while piece := body.read(size):
        assert len(piece) <= size
        pieces.append(piece)
    return b"".join(pieces)


def sent(source: Any) -> Any:
    """The file that a parser finds in a body with one file."""
    body = multipart_body([], [("f", source)])
    (found,) = form_parsers.starlette(read(body), body.content_type)
    return found


@settings(max_examples=40, deadline=None)
@given(
    fields=st.lists(st.tuples(NAMES, st.text(st.characters(exclude_categories=("Cs",))))),
    files=st.lists(st.tuples(NAMES, NAMES, DATA, TYPES), max_size=4),
    size=st.sampled_from([1, 7, 65536]),
)
@example(fields=[("Größe", "日本")], files=[("ملف", "नमस्ते 😀;=.png", b"", None)], size=1)
def test_a_parser_finds_what_was_given(
    fields: list[tuple[str, str]], files: list[tuple[str, str, bytes, str | None]], size: int
) -> None:
    body = multipart_body(fields, [(name, (own, data, kind)) for name, own, data, kind in files])
    length = body.length_bytes
    content = read(body, size)
    assert len(content) == length == body.sent_bytes
    expected = [Field(name, value) for name, value in fields] + [
        File(name, own, kind or polymux._native._core.content_type_of(own), data)
        for name, own, data, kind in files
    ]
    assert form_parsers.starlette(content, body.content_type) == expected


def test_quotes_and_line_ends_in_names_reach_the_parser_escaped() -> None:
    file = sent(('a "b"\r\nX-Evil: 1\x00.png', b"x"))
    assert file.file_name == "a %22b%22%0D%0AX-Evil: 1%00.png"
    assert (file.name, file.content) == ("f", b"x")


def test_a_name_that_ends_in_a_backslash() -> None:
    """Many parsers take it and the quote for an escaped quote, and find no file."""
    body = multipart_body([], [("f", ("a\\b\\", b"data"))])
    assert b'filename="a\\b%5C"\r\n' in read(body)


def test_sources_of_every_kind_give_the_same_bytes(tmp_path: Path) -> None:
    content = os.urandom(200_000)
    path = tmp_path / "sound.flac"
    path.write_bytes(content)

    class Readable:
        """Has only `read`, which returns little at a time."""

        def __init__(self) -> None:
            self.file = io.BytesIO(content)

        def read(self, size: int) -> bytes:
            return self.file.read(min(size, 12_345))

    pieces = (one for one in (content[:5], b"", bytearray(content[5:9]), memoryview(content)[9:]))
    with path.open("rb") as file, path.open("rb", buffering=0) as raw:
        sources = [
            (str(path), "sound.flac", True),
            (path, "sound.flac", True),
            (content, "f", True),
            (bytearray(content), "f", True),
            (file, "sound.flac", True),
            (raw, "sound.flac", True),
            (io.BytesIO(content), "f", True),
            (Readable(), "f", False),
            (pieces, "f", False),
            ([content[:9], content[9:]], "f", True),
            (("x.wav", path), "x.wav", True),
        ]
        for source, name, known in sources:
            body = multipart_body([], [("f", source)])
            assert (body.length_bytes is not None) is body.can_rewind is known
            sent = read(body)
            assert body.finished
            assert body.read(1) == b""
            (found,) = form_parsers.starlette(sent, body.content_type)
            assert (found.file_name, found.content == content) == (name, True), source
            if known:
                body.rewind()
                assert (body.sent_bytes, body.finished) == (0, False)
                assert b"".join(body) == sent
            else:
                with pytest.raises(InvalidRequestError):
                    body.rewind()


def test_a_file_is_sent_from_where_it_stands() -> None:
    file = io.BytesIO(b"skipped, sent")
    file.seek(9)
    body = multipart_body([], [("f", ("a.txt", file))])
    for _ in range(2):
        assert form_parsers.starlette(read(body), body.content_type)[0].content == b"sent"
        body.rewind()


def test_field_values_are_written_as_text() -> None:
    given = (True, False, -5, 0.1, 1e300, "")
    body = multipart_body([("a", value) for value in given])
    values = [field.value for field in form_parsers.starlette(read(body), body.content_type)]
    assert values == ["true", "false", "-5", "0.1", "1e+300", ""]


FIELDS: list[Any] = [
    (("a", float("nan")), InvalidRequestError, "a.*nan"),
    (("a", "\ud800"), InvalidRequestError, "ud800"),
    (("\ud800", "x"), InvalidRequestError, "ud800"),
    (("a", None), TypeError, "'a'.*NoneType"),
    ((5, "x"), TypeError, "int"),
]
FILES: list[Any] = [
    (5, TypeError, r"\bint\b"),
    ({"a": 1}, TypeError, r"\bdict\b"),
    (("a", b"x", "text/plain", 4), TypeError, "tuple"),
    ((b"a", b"x"), TypeError, "tuple"),
    (("a", b"x", "text/plain\r\nX: y"), InvalidRequestError, "text/plain"),
    (("a", b"x", 5), TypeError, "content type"),
    (io.StringIO("x"), TypeError, "binary"),
    ("a\0b", InvalidRequestError, r"a\\x00b"),
    ("nothing.mp3", polymux.InputNotFoundError, "nothing.mp3"),
    ("/", polymux.InputUnreadableError, "/"),
    ("/dev/zero", polymux.InputUnreadableError, "/dev/zero"),
]


@pytest.mark.parametrize(
    ("fields", "files", "error", "named"),
    [([field], [], *rest) for field, *rest in FIELDS]
    + [([], [("f", file)], *rest) for file, *rest in FILES],
)
def test_what_cannot_be_sent(
    fields: list[Any], files: list[Any], error: type[Exception], named: str
) -> None:
    with pytest.raises(error, match=named):
        multipart_body(fields, files)


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(polymux.InputUnreadableError, match="pipe"):
        multipart_body([], [("f", tmp_path / "pipe")])


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/\xff\xfe.wav"
    with open(path, "wb") as file:  # noqa: PTH123
        file.write(b"RIFF")
    found = sent(os.fsdecode(path))
    assert (found.file_name, found.content) == ("\ufffd\ufffd.wav", b"RIFF")


@pytest.mark.parametrize(
    ("change", "kind"),
    [("shrink", "path"), ("touch", "path"), ("grow", "file")],
)
def test_a_file_that_changes_while_it_is_sent(tmp_path: Path, change: str, kind: str) -> None:
    path = tmp_path / "growing.log"
    path.write_bytes(b"x" * 1_000_000)
    with path.open("rb") as file:
        body = multipart_body([], [("f", path if kind == "path" else file)])
        body.read(300_000)
        if change == "touch":
            os.utime(path, (1, 1))
        else:
            os.truncate(path, 500_000 if change == "shrink" else 1_500_000)
        for _ in range(2):
            with pytest.raises(polymux.InputChangedError, match=r"growing\.log"):
                read(body)
        assert not body.finished


def test_what_a_generator_raises_comes_out_unchanged_each_time() -> None:
    error = LookupError("from the generator")

    def failing() -> Iterator[bytes]:
        yield b"x"
        raise error

    body = multipart_body([], [("f", failing())])
    for _ in range(2):
        with pytest.raises(LookupError) as raised:
            read(body)
        assert raised.value is error
    assert not body.finished


@pytest.mark.parametrize("source", [iter(["text"]), iter([5]), ["text"]])
def test_pieces_that_are_no_bytes(source: Any) -> None:
    with pytest.raises(TypeError, match="bytes"):
        sent(source)


def test_sources_that_lie_about_their_length() -> None:
    class Odd(io.BytesIO):
        def read(self, size: int | None = -1) -> bytes:
            return super().read(size)[:-1]

    with pytest.raises(polymux.InputChangedError, match=r"4.*5"):
        sent(Odd(b"12345"))
    pieces = [b"ab", b"c"]
    body = multipart_body([], [("f", pieces)])
    pieces.append(b"d")
    with pytest.raises(polymux.InputChangedError, match=r"\b3\b"):
        read(body)


def test_progress_is_reported_now_and_then_and_at_the_end() -> None:
    reports: list[tuple[int, int | None]] = []

    def progress(sent: int, total: int | None) -> None:
        reports.append((sent, total))

    body = multipart_body([], [("f", os.urandom(1_000_000))], on_progress=progress)
    calls = len(read(body, 1000)) // 1000
    assert reports[-1] == (body.length_bytes, body.length_bytes)
    assert reports == sorted(set(reports))
    assert 2 <= len(reports) < calls / 2
    body.rewind()
    reports.clear()
    body.on_progress = None
    read(body)
    assert reports == []
    body = multipart_body([], [("f", iter([b"x"]))], on_progress=progress)
    read(body)
    assert reports[-1] == (body.sent_bytes, None)


class Sparse(io.RawIOBase):
    """A file object of SIZE bytes: zeros, then END."""

    SIZE = 2**32 + 5
    ZEROS = bytes(2**18)
    at = 0

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self.at = offset + (0, self.at, self.SIZE)[whence]
        return self.at

    def read(self, size: int = -1, /) -> bytes:
        zeros = min(size, self.SIZE - 3 - self.at)
        found = self.ZEROS[:zeros] if zeros > 0 else b"END"[-zeros:][:size]
        self.at += len(found)
        return found


def test_a_sparse_file_over_4_gib_goes_through_without_being_kept() -> None:
    """No file on disk: the kernel would cache all of it."""
    body = multipart_body([], [("f", Sparse())])
    assert body.length_bytes is not None
    resident = resident_bytes()
    sent = 0
    tail = b""
    while piece := body.read(2**18):
        sent += len(piece)
        tail = piece
    assert sent == body.length_bytes == body.sent_bytes
    assert Sparse.SIZE < sent < Sparse.SIZE + 400
    assert b"END\r\n--polymux-" in tail
    assert tail.endswith(b"--\r\n")
    assert SANITIZED or resident_bytes() - resident < 16 * 2**20
