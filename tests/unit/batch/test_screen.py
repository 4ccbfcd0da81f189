"""What the command says of a batch at its end, and the exit code of that."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.batches.results import BatchReport
from polymux.cli import main

if TYPE_CHECKING:
    import pytest

LOCKED = "cannot read the folder 'in/locked': Permission denied"


def run(
    report: BatchReport, *more: str, patched: pytest.MonkeyPatch, said: pytest.CaptureFixture[str]
) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a batch that comes out so."""

    def batch(*_: Any, **__: Any) -> BatchReport:
        return report

    patched.setattr("polymux.batches.api.batch", batch)
    code = main(["batch", "convert-to-mp3", "in", "--output-dir", "out", *more])
    shown = said.readouterr()
    return code, shown.out, shown.err


def test_a_folder_that_was_not_read_is_named_and_no_success(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report = BatchReport(Path("out/polymux-batch.db"), 3, 3, 0, 0, elapsed_s=2.0, unread=(LOCKED,))
    code, out, error = run(report, patched=monkeypatch, said=capsys)
    assert (code, out) == (1, "")
    assert f"polymux: {LOCKED}\n" in error
    assert "--resume with the same INPUT" in error
    code, out, _ = run(report, "--json", patched=monkeypatch, said=capsys)
    assert code == 1
    assert json.loads(out)["unread"] == [LOCKED]
    assert LOCKED.replace("'", "&#x27;") in report._repr_html_()


def test_one_is_one(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for count, words in (
        (1, "1 input known already, 1 file of"),
        (2, "2 inputs known already, 2 files of"),
    ):
        report = BatchReport(Path("m.db"), 3, 3, 0, 0, repeated=count, ignored=count)
        code, _, error = run(report, patched=monkeypatch, said=capsys)
        assert code == 0
        assert words in error
