from __future__ import annotations

import errno
import io
import json
import os
from typing import TYPE_CHECKING, Any

import pytest
from polymux.batches.inputs import Inputs, Listed
from polymux.batches.spec import BatchSpec
from polymux.errors import InputNotFoundError, InputUnreadableError, InvalidRequestError

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.batches.records import Found

MARK = b"\xef\xbb\xbf"
CONVERT = BatchSpec("convert_to_mp3", {})


def find(folder: Path, *inputs: Any, operation: str = "convert_to_mp3") -> list[Found]:
    return list(Inputs(BatchSpec(operation, {}), os.fsencode(folder / "out")).find(inputs))


def stems(found: list[Found]) -> list[bytes]:
    return [one.stem for one in found]


def listed(lines: bytes, end: bytes = b"\n") -> Listed:
    return Listed(io.BytesIO(lines), end)


def tree(folder: Path, *names: str | bytes) -> None:
    for name in names:
        path = folder / os.fsdecode(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x" * 10)


def test_a_folder_has_what_the_operation_reads(tmp_path: Path) -> None:
    tree(tmp_path, "in/b.wav", "in/a.mkv", "in/deep/er/c.FLAC", "in/notes.txt", "in/cover.png",
         "in/.hidden.wav", "in/.git/x.wav")  # fmt: skip
    finder = Inputs(CONVERT, os.fsencode(tmp_path / "out"))
    found = list(finder.find([tmp_path / "in"]))
    assert stems(found) == [b"a", b"b", b"deep/er/c"]
    assert [one.size_bytes for one in found] == [10, 10, 10]
    assert finder.ignored == 2
    assert stems(find(tmp_path, tmp_path / "in", operation="read_text")) == [b"cover"]


@pytest.mark.parametrize(
    ("names", "given", "wanted"),
    [
        # The output directory is not an input.
        (["a.wav", "out/a.mp3", "out/more/b.mp3"], "", [b"a"]),
        (["a.wav", "out/a.mp3", "out/more/b.mp3"], "/**/*.[mw]*", [b"a"]),
        # The output tree starts below the fixed part of a pattern.
        (["in/one/a.wav", "in/two/b.wav", "in/c.ogg", "in/x[1].wav"], "/in/**/*.wav",
         [b"one/a", b"two/b", b"x[1]"]),
        # An existing file whose name looks like a pattern is that file.
        (["in/x[1].wav", "in/x1.wav"], "/in/x[1].wav", [b"x[1]"]),
        # No path leads out of the input folder.
        (["in/a.wav"], "/in/../in/*.wav", [b"a"]),
        (["in/a.wav"], "/*/../in/a.wav", [b"in/a"]),
        # A file given by name is an item, whatever its ending.
        (["strange.xyz"], "/strange.xyz", [b"strange"]),
    ],
)  # fmt: skip
def test_what_is_found(tmp_path: Path, names: list[str], given: str, wanted: list[bytes]) -> None:
    tree(tmp_path, *names)
    assert stems(find(tmp_path, f"{tmp_path}{given}")) == wanted


def test_a_folder_that_is_that_of_the_outputs_lacks_only_these(tmp_path: Path) -> None:
    """With `--output-dir .`, the files beside the outputs are inputs; the outputs are not."""
    tree(tmp_path, "a.wav", "a.mp3", "more/b.wav", "more/b.mp3", ".polymux-batch/x.mp3")
    own = {b"a.mp3", b"more/b.mp3"}
    for given, wanted in (
        (tmp_path, [b"a", b"more/b"]),
        (tmp_path / "more", [b"b"]),
        (f"{tmp_path}/**/*.[mw]*", [b"a", b"more/b"]),
    ):
        finder = Inputs(CONVERT, os.fsencode(tmp_path), own.__contains__)
        assert stems(list(finder.find([given]))) == wanted


def test_links_to_folders_come_last(tmp_path: Path) -> None:
    """A file behind a link keeps its real place if that is inside the same folder."""
    tree(tmp_path, "in/real/deep/a.wav", "elsewhere/b.wav")
    (tmp_path / "in/a-link").symlink_to("real/deep")
    (tmp_path / "in/b-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "in/circle").symlink_to(tmp_path / "in")
    assert stems(find(tmp_path, tmp_path / "in")) == [b"real/deep/a", b"b-link/b"]


def test_a_folder_that_cannot_be_read_keeps_nothing_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path, "in/a.wav", "in/locked/b.wav", "in/more/c.wav")
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if os.fspath(path).endswith(b"locked"):
            raise PermissionError(errno.EACCES, "Permission denied")
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    finder = Inputs(CONVERT, os.fsencode(tmp_path / "out"))
    found = list(finder.find([tmp_path / "in", tmp_path / "in/a.wav"]))
    assert stems(found) == [b"a", b"more/c", b"a"]
    (words,) = finder.unread
    assert f"'{tmp_path}/in/locked'" in words


@pytest.mark.parametrize("name", [b"a\xff\xfe.wav", b"line\nend.wav", "ünï.wav".encode(), b" .wav"])
def test_odd_names(tmp_path: Path, name: bytes) -> None:
    tree(tmp_path, b"in/" + name)
    path = os.fsencode(tmp_path / "in") + b"/" + name
    (found,) = find(tmp_path, tmp_path / "in")
    assert found.stem == name.removesuffix(b".wav")
    assert os.fsencode(json.loads(found.fields)["file"]) == path
    (again,) = find(tmp_path, listed(path + b"\0", b"\0"))
    assert again.fields == found.fields


def test_a_zero_byte_is_in_no_name(tmp_path: Path) -> None:
    """Read by lines, a list for `-0` is one long name. Elsewhere such a name is a failing item."""
    with pytest.raises(InvalidRequestError, match=r"line 2\b.*-0\b"):
        find(tmp_path, listed(b"a.wav\nb.wav\0c.wav\0"))
    assert stems(find(tmp_path, listed(b"b\nb\0c\0", b"\0"))) == [b"b\nb", b"c"]
    for name in ("a\0b.wav", "missing.wav"):
        (found,) = find(tmp_path, name)
        assert found.size_bytes is None
        with pytest.raises(InputNotFoundError):
            CONVERT.identity({"file": name})


def test_lists_keep_their_tree_and_stay_below_the_folder(tmp_path: Path) -> None:
    lines = b"/data/x/a.wav\n../../b.wav\n\n./c/../d.wav\n"
    assert stems(find(tmp_path, listed(lines))) == [b"data/x/a", b"b", b"c/d"]


def test_long_names_are_cut_and_kept_apart(tmp_path: Path) -> None:
    names = ["é" * 120 + end for end in ("1", "2")]
    tree(tmp_path, *(f"in/{name}.wav" for name in names))
    found = stems(find(tmp_path, tmp_path / "in"))
    assert len(set(found)) == 2
    assert all(len(stem) <= 160 and stem.decode() for stem in found)


def test_texts(tmp_path: Path) -> None:
    (tmp_path / "texts.txt").write_text("A boat, at sea!\n\n\nÜber alles\r\n")
    found = find(tmp_path, tmp_path / "texts.txt", "one more", operation="generate_image")
    assert b" ".join(stems(found)).decode() == (
        "000001-a-boat-at-sea 000004-über-alles 000005-one-more"
    )
    assert json.loads(found[1].fields) == {"prompt": "Über alles"}
    found = find(tmp_path, listed(b"first\nsecond"), operation="chat")
    assert stems(found) == [b"000001-first", b"000002-second"]


def test_texts_of_windows_begin_with_a_mark(tmp_path: Path) -> None:
    for name, data in (("t.txt", b"A boat\r\n"), ("t.jsonl", b'{"prompt": "A boat"}\r\n')):
        (tmp_path / name).write_bytes(MARK + data)
        (found,) = find(tmp_path, tmp_path / name, operation="generate_image")
        assert json.loads(found.fields) == {"prompt": "A boat"}
    (tmp_path / "t.txt").write_bytes(MARK + b"\n" + MARK + b"x\n")
    (found,) = find(tmp_path, tmp_path / "t.txt", operation="chat")
    assert found.stem.startswith(b"000002"), "elsewhere a byte order mark is text"
    assert stems(find(tmp_path, listed(MARK + b"a.wav\n"))) == [b"a"]
    # Names in a list separated by zero bytes are taken byte for byte.
    assert stems(find(tmp_path, listed(MARK + b"a.wav\0", b"\0"))) == [MARK + b"a"]


def test_lines_of_json_are_fields(tmp_path: Path) -> None:
    path = tmp_path / "items.jsonl"
    path.write_text('{"prompt": "A boat", "seed": 3}\n{"prompt": "A car"}\n')
    found = find(tmp_path, path, operation="generate_image")
    assert [json.loads(one.fields) for one in found] == [
        {"prompt": "A boat", "seed": 3}, {"prompt": "A car"},
    ]  # fmt: skip
    bad = ("[1]", "{", "{" * 99_999, '{"prompt": NaN}', '{"image": 3}', "\xff")
    lines = [line.encode("latin-1") for line in ('{"prompt": "A boat"}', *bad, '{"prompt": "Z"}')]
    path.write_bytes(b"\n".join(lines))
    finder = Inputs(BatchSpec("generate_image", {}), os.fsencode(tmp_path / "out"))
    assert stems(list(finder.find([path]))) == [b"000001-a-boat", b"000008-z"]
    for number, words in zip(range(2, 8), finder.unread, strict=True):
        assert words.startswith(f"line {number} of '{path}'")


def test_fields_of_an_item_may_name_its_file(tmp_path: Path) -> None:
    tree(tmp_path, "a.wav")
    item = {"source": tmp_path / "a.wav", "language": "de"}
    (found,) = find(tmp_path, item, operation="transcribe")
    assert json.loads(found.fields) == {"audio": str(tmp_path / "a.wav"), "language": "de"}
    assert found.stem == b"a"


def test_what_is_no_input(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"\bint\b"):
        find(tmp_path, 3)
    with pytest.raises(TypeError, match="file"):
        find(tmp_path, {"file": io.BytesIO()})
    with pytest.raises(InputNotFoundError, match=r"none\.txt"):
        find(tmp_path, tmp_path / "none.txt", operation="chat")


@pytest.mark.parametrize(
    ("operation", "fields", "words"),
    [
        ("convert_to_mp3", {"bitrate": "999k"}, "bitrate"),
        ("convert_to_mp3", {"bitrat": "64k"}, "bitrat"),
        ("generate_image", {"width": 100}, "width"),
        ("chat", {"stream": True}, "stream"),
        ("convert_to_wav", {}, "convert_to_wav"),
    ],
)
def test_what_would_make_every_item_fail(operation: str, fields: Any, words: str) -> None:
    with pytest.raises(InvalidRequestError, match=words):
        BatchSpec(operation, fields)


def test_what_is_no_regular_file_has_no_content(tmp_path: Path) -> None:
    """A device may have no end, and reading from a pipe removes the data."""
    os.mkfifo(tmp_path / "pipe.wav")
    writer = os.open(tmp_path / "pipe.wav", os.O_RDWR)
    os.write(writer, b"sound")
    for path in (tmp_path / "pipe.wav", "/dev/zero", tmp_path):
        with pytest.raises(InputUnreadableError):
            CONVERT.identity({"file": str(path)})
    assert os.read(writer, 9) == b"sound"
    os.close(writer)


def test_identity_is_of_content_and_fields_and_not_of_names(tmp_path: Path) -> None:
    tree(tmp_path, "a.wav", "b.wav")
    (tmp_path / "c.wav").write_bytes(b"another")

    def of(name: str, subject: BatchSpec = CONVERT, **more: Any) -> bytes:
        return subject.identity({"file": str(tmp_path / name), **more})

    assert of("a.wav") == of("b.wav")
    others = [of("c.wav"), of("a.wav", channels=1), of("a.wav", bitrate="128k")]
    others.append(of("a.wav", BatchSpec("identify_song", {})))
    assert len({of("a.wav"), *others}) == 5
