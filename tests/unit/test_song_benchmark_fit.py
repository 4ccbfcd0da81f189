"""Fitting the weights of the decision, and what confidences are worth, by rows that are made up."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import __main__ as command
from benchmarks.song import fitting, scorer
from benchmarks.song.basis import WEIGHTS, Basis, Window
from benchmarks.song.scorer import Row


def made_up(weights: np.ndarray, count: int, seed: int = 1) -> list[Row]:
    """Rows of snippets that are right as often as these weights say."""
    random = np.random.default_rng(seed)
    rows = []
    for number in range(count):
        windows = [
            Window(float(random.gamma(2.0, 6.0)), 0.5, int(random.integers(30, 200)), 20)
            for _ in range(2)
        ]
        change, tempo = [("speed", 1.0), ("speed", 1.03), ("pitch", 1.0)][number % 3]
        contrast = (float(random.normal(2, 1)), float(random.normal(1, 1)))
        basis = Basis(0.0, 5.0, change, tempo, tempo, contrast, (windows[0], windows[1]))
        score = float(weights @ np.array(basis.features()))
        right = bool(random.random() < 1 / (1 + np.exp(-score)))
        kind = "inside" if right or number % 2 else "other songs"
        rows.append(
            Row(kind, "clean", 5.0, number, "a", "", None, score, "a", right, 0.0, "", basis)
        )
    return rows


TRUE = np.array([-9.0, 3.0, 2.0, -1.5, 2.0, -1.0, 1.2])


def test_known_weights_are_recovered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fitting, "WRONG_COUNTS", 1.0)
    rows = made_up(TRUE, 20_000)
    assert 0.1 < np.mean([row.right for row in rows]) < 0.9
    # As near as so many rows can tell: the standard errors are those of Fisher's information.
    features = np.array([row.basis.features() for row in rows if row.basis])
    chances = 1 / (1 + np.exp(-features @ TRUE))
    information = features.T @ (features * (chances * (1 - chances))[:, None])
    errors = np.sqrt(np.diag(np.linalg.inv(information)))
    assert errors.max() < 0.35
    assert (np.abs(fitting.fitted_to(rows) - TRUE) < 4 * errors).all()


def test_nothing_is_fitted_to_rows_that_tell_nothing() -> None:
    rows = made_up(TRUE, 50)
    with pytest.raises(ValueError, match="right and wrong"):
        fitting.fitted_to([row for row in rows if row.right])
    with pytest.raises(ValueError, match="score the snippets again"):
        fitting.fitted_to([replace(row, basis=None) for row in rows])


def test_the_command_prints_weights_beside_those_of_the_build(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = made_up(TRUE, 400)
    scorer.keep(rows[:200], tmp_path / "one.jsonl")
    scorer.keep(rows[200:], tmp_path / "two.jsonl")
    command.main(["fit", str(tmp_path / "one.jsonl"), str(tmp_path / "two.jsonl")])
    text = capsys.readouterr().out
    weights, least = fitting.of_the_build()
    for name, fitted, built in zip(WEIGHTS, fitting.fitted_to(rows), weights, strict=True):
        assert f"| {name} | {fitted:.3f} | {built:.3f} |" in text
    assert 0.5 < least < 1
    assert text.count("| least confidence |") == 2
