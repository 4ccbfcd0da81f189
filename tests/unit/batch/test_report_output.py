from __future__ import annotations

import json
from pathlib import Path
from unittest import mock

from polymux.batches.results import BatchReport
from support.commands import call

LOCKED = "cannot read the folder 'in/locked': Permission denied"


def run(report: BatchReport, folder: Path, *more: str, code: int) -> tuple[str, str]:
    with mock.patch("polymux.batches.api.batch", return_value=report):
        done = call(
            "batch", "convert-to-mp3", "in", "--output-dir", "out", *more, cwd=folder, code=code
        )
    return done.stdout.decode(), done.stderr.decode()


def test_a_folder_that_was_not_read_is_named_and_no_success(tmp_path: Path) -> None:
    report = BatchReport(Path("out/polymux-batch.db"), 3, 3, 0, 0, elapsed_s=2.0, unread=(LOCKED,))
    out, error = run(report, tmp_path, code=1)
    assert out == ""
    assert f"polymux: {LOCKED}\n" in error
    assert "--resume" in error
    out, _ = run(report, tmp_path, "--json", code=1)
    assert json.loads(out)["unread"] == [LOCKED]
    assert LOCKED.replace("'", "&#x27;") in report._repr_html_()


def test_one_is_one(tmp_path: Path) -> None:
    for count, words in ((1, "1 file "), (2, "2 files ")):
        report = BatchReport(Path("m.db"), 3, 3, 0, 0, repeated=count, ignored=count)
        assert words in run(report, tmp_path, code=0)[1]
