"""Output locations: beside the inputs, in folders with other files, and in invalid places."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.errors import InvalidRequestError
from support.batch_kills import noise
from support.batches import convert, marks

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


def test_an_input_is_never_replaced(tmp_path: Path) -> None:
    """Neither its own input nor that of another item is overwritten, even with --overwrite."""
    folder = tmp_path / "music"
    folder.mkdir()
    (folder / "a.wav").write_bytes(noise(1))
    (folder / "a.mp3").write_bytes(polymux.convert_to_mp3(noise(2)).read())
    (folder / "b.mp3").write_bytes(polymux.convert_to_mp3(noise(3)).read())
    (folder / "link").symlink_to(".")
    before = marks(folder)

    def given() -> Iterator[Path]:
        yield folder / "a.wav"
        time.sleep(0.3)  # Long enough to convert the first item if it did not wait for the others.
        yield folder / "a.mp3"
        yield folder / "link/b.mp3"

    report = convert(given(), folder, overwrite=True)
    items = list(report.items())
    assert [item.error_code for item in items] == ["output_exists", None, "output_exists"]
    # The second item got a different file name than the first one.
    assert before.items() <= marks(folder).items()


def test_outputs_beside_their_inputs(tmp_path: Path, inputs: Path) -> None:
    """Outputs are not used as inputs of the next run, including those in subfolders."""
    first = convert(inputs, inputs)
    assert (first.total, first.done) == (6, 5)
    before = marks(inputs)
    again = convert(inputs, inputs, resume=True)
    assert (again.total, again.kept, again.remade) == (6, 5, 0)
    assert marks(inputs) == before
    pattern = convert(f"{inputs}/*.wav", inputs, manifest=tmp_path / "other.db", overwrite=True)
    assert (pattern.total, pattern.done) == (5, 4)


def test_a_folder_that_cannot_be_read_is_reported_and_asked_for_again(
    tmp_path: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scan = os.scandir

    def refuse(path: Any = ".") -> Any:
        if os.fsencode(path).endswith(b"deep"):
            raise PermissionError(13, "Permission denied")
        return scan(path)

    out = tmp_path / "out"
    with monkeypatch.context() as patched:
        patched.setattr(os, "scandir", refuse)
        report = convert(inputs, out)
    assert (report.done, report.failed, report.is_complete) == (4, 1, False)
    assert [f"'{inputs}/deep'" in one for one in report.unread] == [True]
    with pytest.raises(InvalidRequestError):
        convert((), out, resume=True)
    (inputs / "broken.wav").unlink()
    assert convert(inputs, out, resume=True).unread == ()
    assert (out / "deep/again.mp3").exists()


def test_files_of_others_are_never_replaced_unasked(tmp_path: Path, inputs: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / "1.mp3").write_text("somebody's")
    report = convert(inputs, out, workers=1)
    assert (report.done, report.failed, report.waiting) == (4, 2, 0)
    (item,) = (one for one in report.items("failed") if one.error_code == "output_exists")
    assert "--overwrite" in (item.error_message or "")
    assert convert(inputs, out, retry_failed=True).failed == 2
    assert (out / "1.mp3").read_text() == "somebody's"
    assert convert(inputs, out, retry_failed=True, overwrite=True).failed == 1
    plain = polymux.convert_to_mp3(inputs / "1.wav", tmp_path / "plain.mp3", bitrate="64k")
    assert (out / "1.mp3").read_bytes() == plain.read()


def test_names_that_would_be_the_same_are_kept_apart_for_good(tmp_path: Path) -> None:
    for number, name in enumerate(("one", "two")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "a.wav").write_bytes(noise(number))
    given = [tmp_path / "one/a.wav", tmp_path / "two/a.wav"]
    first, second = (
        [item.outputs[0].name for item in convert(given, out).items()]
        for out in (tmp_path / "x", tmp_path / "y")
    )
    assert first == second
    assert first[0] == "a.mp3"
    assert len(set(first)) == 2
