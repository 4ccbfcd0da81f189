"""`polymux.batch` on local files."""

from __future__ import annotations

import csv
import json
import os
import shutil
import sqlite3
from contextlib import chdir, closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.batches.api import MANIFEST
from polymux.batches.manifest import report_of
from polymux.batches.output_store import OutputStore
from polymux.errors import InvalidRequestError, OutputError
from support.batch_kills import noise
from support.batches import convert, marks

if TYPE_CHECKING:
    from collections.abc import Iterator


def test_a_folder(tmp_path: Path, inputs: Path) -> None:
    ended: list[polymux.BatchItem] = []
    progress: list[polymux.BatchProgress] = []
    report = convert(
        inputs, tmp_path / "out", on_item=ended.append, on_progress=progress.append, workers=2
    )
    assert (report.total, report.done, report.failed, report.waiting) == (6, 5, 1, 0)
    assert (report.copied, report.ignored, report.kept) == (1, 1, 0)
    items = {Path(item.input).name: item for item in report.items()}
    assert {item.id for item in ended} == {item.id for item in items.values()}
    assert items["broken.wav"].state == "failed"
    assert items["broken.wav"].error_code == "unsupported_media"
    assert items["broken.wav"].outputs == ()
    for name, item in items.items():
        if item.state == "done":
            plain = polymux.convert_to_mp3(item.input, bitrate="64k").read()
            assert item.outputs[0].read_bytes() == plain, name
    assert marks(tmp_path / "out").keys() == {
        "0.mp3", "1.mp3", "2.mp3", "3.mp3", "deep/again.mp3",
    }  # fmt: skip
    copies = {items["0.wav"].copied_from, items["again.wav"].copied_from} - {None}
    assert copies <= {items["0.wav"].id, items["again.wav"].id}
    assert len(copies) == 1
    assert (progress[-1].done, progress[-1].failed, progress[-1].is_counting) == (5, 1, False)
    assert progress[-1].done_bytes == progress[-1].total_bytes > 0
    assert not (tmp_path / "out/.polymux-batch").exists()


def test_what_is_done_is_kept_and_what_is_not_as_it_was_is_made_again(
    tmp_path: Path, inputs: Path
) -> None:
    out = tmp_path / "out"
    first = convert(inputs, out)
    before = marks(out)
    again = convert(inputs, out, resume=True)
    assert (again.done, again.kept, again.remade, again.repeated) == (5, 5, 0, 6)
    assert marks(out) == before
    wanted = (out / "2.mp3").read_bytes()
    (out / "1.mp3").unlink()
    changed = bytearray(wanted)
    changed[-1] ^= 1  # Same size, different content.
    (out / "2.mp3").write_bytes(changed)
    (inputs / "3.wav").write_bytes(noise(33))
    os.utime(inputs / "0.wav", (1, 1))  # New modification time, same content.
    (inputs / "new.wav").write_bytes(noise(9))
    later = convert(inputs, out, resume=True)
    assert (later.done, later.kept, later.remade, later.total) == (6, 2, 3, 7)
    assert (out / "2.mp3").read_bytes() == wanted
    assert (out / "3.mp3").read_bytes() == polymux.convert_to_mp3(noise(33), bitrate="64k").read()
    now = marks(out)
    assert now["0.mp3"] == before["0.mp3"]
    assert now["deep/again.mp3"] == before["deep/again.mp3"]
    assert first.manifest == later.manifest


def test_a_manifest_with_items_is_not_taken_over_unasked(tmp_path: Path, inputs: Path) -> None:
    out = tmp_path / "out"
    convert(inputs, out)
    with pytest.raises(InvalidRequestError, match=r"\b6\b.*--resume"):
        convert(inputs, out)
    with pytest.raises(InvalidRequestError, match=r"\bfields\b"):
        polymux.batch("convert_to_mp3", inputs, output_dir=out, bitrate="128k", resume=True)
    with pytest.raises(InvalidRequestError, match=r"\boperation\b"):
        polymux.batch("transcribe", inputs, output_dir=out, resume=True)
    with pytest.raises(InvalidRequestError, match=r"\boutput directory\b"):
        convert(inputs, tmp_path / "other", manifest=out / MANIFEST, resume=True)


def test_failed_items_stay_so_unless_asked(tmp_path: Path, inputs: Path) -> None:
    out = tmp_path / "out"
    convert(inputs, out)
    (inputs / "broken.wav").write_bytes(noise(7))
    assert convert(inputs, out, resume=True).failed == 1
    mended = convert([], out, retry_failed=True)
    assert (mended.failed, mended.done, mended.is_complete) == (0, 6, True)
    item = next(one for one in mended.items() if one.input.endswith("broken.wav"))
    assert (item.tries, item.error_code, item.error_message) == (2, None, None)


def test_odd_names_come_through(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    for name in (b"a\xff.wav", b"line\nend.wav", "ü.wav".encode()):
        Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_bytes(noise(len(name)))
    report = convert(folder, tmp_path / "out", report=tmp_path / "report.csv")
    assert report.done == 3
    names = {os.fsencode(path.name) for item in report.items() for path in item.outputs}
    assert names == {b"a\xff.mp3", b"line\nend.mp3", "ü.mp3".encode()}
    report.write(tmp_path / "report.jsonl")
    with (tmp_path / "report.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "report.jsonl").open("rb") as file:
        for row, line in zip(rows, file, strict=True):
            assert json.loads(line)["input"] == row["input"]
    written = {os.path.relpath(row["input"].encode(), os.fsencode(folder)) for row in rows}
    assert written == {rb"a\xff.wav", b"line\nend.wav", "ü.wav".encode()}


def test_a_finished_batch_leaves_one_file_beside_its_outputs(tmp_path: Path, inputs: Path) -> None:
    out = tmp_path / "out"
    for resumes in (False, True):
        convert(inputs, out, resume=resumes)
        assert {one.name for one in out.iterdir() if one.suffix != ".mp3"} == {"deep", MANIFEST}


def test_a_resumed_batch_needs_no_options(tmp_path: Path, inputs: Path) -> None:
    def convert_more(**fields: Any) -> polymux.BatchReport:
        return polymux.batch(
            "convert_to_mp3", [inputs], output_dir=tmp_path / "out", resume=True, **fields
        )

    convert([inputs / "0.wav"], tmp_path / "out", extra_body={"more": 1})
    assert convert_more().done == convert_more(bitrate="64k").done == 5
    with pytest.raises(InvalidRequestError, match="64k"):
        convert_more(bitrate="128k")
    plain = polymux.convert_to_mp3(inputs / "1.wav", bitrate="64k").read()
    assert (tmp_path / "out/1.mp3").read_bytes() == plain


def test_the_remaining_time_is_not_estimated_from_failures(tmp_path: Path) -> None:
    for number in range(5):
        (tmp_path / f"{number}.wav").write_bytes(noise(1) if number > 3 else b"x" * 100_000)
    seen: list[polymux.BatchProgress] = []
    convert(sorted(tmp_path.glob("*.wav")), tmp_path / "out", on_progress=seen.append)
    last = seen[-1]
    size = (tmp_path / "4.wav").stat().st_size
    assert (last.failed, last.ended_here, last.ended_here_bytes) == (4, 1, size)


def test_one_batch_at_a_time(tmp_path: Path, inputs: Path) -> None:
    out = tmp_path / "out"
    refused: list[str] = []

    def another(_: Any) -> None:
        with pytest.raises(OutputError) as caught:
            convert(inputs, out, resume=True)
        refused.append(caught.value.code)

    report = convert(inputs, out, on_item=another)
    assert refused == ["batch_busy"] * 6
    assert report.done == 5


def test_an_exception_of_the_caller_ends_it_and_nothing_is_lost(
    tmp_path: Path, inputs: Path
) -> None:
    ids: list[int] = []

    def stop(item: polymux.BatchItem) -> None:
        ids.append(item.id)
        if len(ids) == 1:
            raise ZeroDivisionError

    out = tmp_path / "out"
    with pytest.raises(ZeroDivisionError):
        convert(inputs, out, on_item=stop, workers=1)
    before = marks(out)
    report = convert(inputs, out, resume=True)
    assert report.done == 5
    assert before.items() <= marks(out).items()


def test_fail_fast(tmp_path: Path, inputs: Path) -> None:
    for number in range(30):
        (inputs / f"z{number}.wav").write_bytes(noise(100 + number))
    report = convert([inputs / "broken.wav", inputs], tmp_path / "out", fail_fast=True, workers=1)
    assert report.failed == 1
    assert report.waiting > 0
    assert report.done + report.waiting == 35


def test_a_disk_that_is_full_ends_the_batch(tmp_path: Path, inputs: Path) -> None:
    """A full disk is not a failure of an item: with free space, a resumed batch completes."""
    out, seal = tmp_path / "out", OutputStore.sealed

    def full(self: OutputStore, item: int, number: int, ending: str) -> Any:
        if item == 3:
            raise polymux.OutputFailedError("no space left on device", errno=28)
        return seal(self, item, number, ending)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(OutputStore, "sealed", full)
        with pytest.raises(polymux.OutputFailedError, match="no space left"):
            convert(inputs, out)
    report = convert(inputs, out, resume=True)
    assert (report.done, report.failed) == (5, 1)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_reports(tmp_path: Path, inputs: Path, kind: str) -> None:
    target = tmp_path / f"report.{kind}"
    shutil.copy(inputs / "1.wav", tmp_path / "=1+1.wav")
    with chdir(tmp_path):
        report = convert([inputs, "=1+1.wav"], tmp_path / "out", report=target)
    rows: list[dict[str, Any]]
    if kind == "csv":
        with target.open(newline="") as file:
            rows = list(csv.DictReader(file))
        assert sum(row["error_code"] != "" for row in rows) == 1
        # The CSV cell is escaped, because a spreadsheet would run it as a formula.
        (row,) = (row for row in rows if row["input"] == "'=1+1.wav")
        row["input"] = "=1+1.wav"
    elif kind == "jsonl":
        rows = [json.loads(line) for line in target.read_text().splitlines()]
    else:
        from pyarrow import parquet

        rows = parquet.read_table(target).to_pylist()
        assert all(isinstance(row["elapsed_s"], float) for row in rows)
    assert len(rows) == report.total == 7
    assert [row["state"] for row in rows] == [item.state for item in report.items()]
    assert {row["input"] for row in rows} == {item.input for item in report.items()}


def test_a_report_that_cannot_be_is_refused_before_the_work(
    tmp_path: Path, inputs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InvalidRequestError, match=r"\.csv, \.jsonl or \.parquet"):
        convert(inputs, tmp_path / "out", report="a.xlsx")
    monkeypatch.setitem(__import__("sys").modules, "pyarrow", None)
    with pytest.raises(polymux.MissingDependencyError, match=r"polymux\[batch\]"):
        convert(inputs, tmp_path / "out", report="a.parquet")
    assert not (tmp_path / "out").exists()
    monkeypatch.undo()
    for place in ("nowhere/r.csv", "in/deep.csv"):
        (tmp_path / "in/deep.csv").mkdir(exist_ok=True)
        with pytest.raises(OutputError, match=place):
            convert(inputs, tmp_path / "out", report=tmp_path / place)
    assert marks(tmp_path / "out") == {}
    # The output folder exists after the first output, so the report can be written into it.
    assert convert(inputs, tmp_path / "out", report=tmp_path / "out/r.csv").done == 5


def test_what_is_no_manifest_is_left_alone(tmp_path: Path, inputs: Path) -> None:
    path = tmp_path / "others" / "other.db"
    path.parent.mkdir()

    def is_refused() -> None:
        before = {each.name: each.read_bytes() for each in path.parent.iterdir()}
        with pytest.raises(OutputError, match=r"other\.db"):
            convert(inputs, tmp_path / "out", manifest=path)
        with pytest.raises(OutputError, match=r"other\.db"):
            report_of(path)
        assert {each.name: each.read_bytes() for each in path.parent.iterdir()} == before

    for journal in ("DELETE", "WAL"):
        path.unlink(missing_ok=True)
        with closing(sqlite3.connect(path)) as other:
            other.execute(f"PRAGMA journal_mode = {journal}")
            other.execute("CREATE TABLE things (name)")
            other.commit()
        is_refused()
    for content in (b"no database at all, but long enough for a header" * 40, b"SQLite format 3\0"):
        path.write_bytes(content)
        is_refused()


def test_arguments_that_are_wrong(tmp_path: Path) -> None:
    for more, words in (
        ({"workers": 0}, "1,000"),
        ({"workers": 1001}, "1,000"),
        ({"bitrate": "1k"}, "bitrate"),
        ({"nonsense": 1}, "nonsense"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            polymux.batch("convert_to_mp3", [], output_dir=tmp_path / "out", **more)
    with pytest.raises(InvalidRequestError, match="output_dir"):
        polymux.batch("convert_to_mp3", [], output_dir="")
    failed = convert(["a\0b.wav", tmp_path / "none.wav"], tmp_path / "none")
    assert [(one.error_code, one.tries) for one in failed.items()] == [("input_not_found", 1)] * 2
    with pytest.raises(TypeError, match="client"):
        polymux.batch(
            "chat", [], output_dir=tmp_path, client=polymux.AsyncClient("http://127.0.0.1:1")
        )  # type: ignore[arg-type]
    with pytest.raises(polymux.InputNotFoundError, match=MANIFEST):
        polymux.batch("chat", [], output_dir=tmp_path / "out", resume=True)
    assert not (tmp_path / "out").exists()


def test_inputs_that_were_not_found_yet_are_not_forgotten(tmp_path: Path, inputs: Path) -> None:
    """If a run ends while it lists its inputs, the next run needs the list again."""
    out = tmp_path / "out"

    def some() -> Iterator[Path]:
        yield inputs / "0.wav"
        raise RuntimeError("the list has ended")

    with pytest.raises(RuntimeError, match="the list has ended"):
        convert(some(), out)
    for resumes in ({"resume": True}, {"retry_failed": True}):
        with pytest.raises(InvalidRequestError, match=MANIFEST):
            convert((), out, **resumes)
    whole = convert(inputs, out, resume=True)
    assert whole.total > 1
    assert convert((), out, resume=True).total == whole.total
