"""Fits the weights of the decision to the rows of a run.

It uses the logistic regression that `Decision` in polymux/song/parameters.hpp describes: was the
first candidate of a snippet the right song? Wrong answers count ten times. With few rows, many
weights can separate right from wrong, and larger weights always fit better. The weights are
therefore regularized towards those of the build.
"""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from benchmarks.measure import ROOT
from benchmarks.song import confidences
from benchmarks.song.basis import WEIGHTS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from benchmarks.song.scorer import Row

HEADER = ROOT / "cpp/include/polymux/song/parameters.hpp"
WRONG_COUNTS = 10.0
DRAWN = 0.3  # strength: a deviation of 1 in a weight costs as much as half this number of rows
SECOND_WINDOW = WEIGHTS.index("strength[1]")
Weights = npt.NDArray[np.float64]


def of_the_build() -> tuple[Weights, float]:
    """Return the weights in parameters.hpp, in the order of WEIGHTS, and its minimum confidence."""
    text = HEADER.read_text(encoding="utf-8")
    body = text[text.index("struct Decision") :]
    strengths = re.search(r"strength = \{(.*?)F, (.*?)F\};", body)
    found = dict(re.findall(r"float (\w+) = (-?[\d.]+)F?;", body))
    if strengths is None:
        raise ValueError(f"{HEADER.name} has no weights of both windows")
    found["strength[0]"], found["strength[1]"] = strengths.groups()
    return np.array([float(found[name]) for name in WEIGHTS]), float(found["accepted"])


def fit(
    features: npt.NDArray[np.float64],
    right: npt.NDArray[np.bool_],
    *,
    to: Weights | None = None,
    drawn: float = DRAWN,
) -> Weights:
    """Return the maximum-likelihood weights, found by Newton's method.

    Args:
        features: A row per answer, a column per weight.
        right: Whether the answer was right.
        to: Weights to regularize towards; default zeros.
        drawn: Strength of the regularization.

    Raises:
        ValueError: All answers are right, or all are wrong.
    """
    if right.all() or not right.any():
        raise ValueError("fitting weights requires both right and wrong answers")
    counts = np.where(right, 1.0, WRONG_COUNTS)
    home = np.zeros(features.shape[1]) if to is None else to

    def loss_at(weights: Weights) -> float:
        scores = features @ weights
        unlikely = counts @ np.logaddexp(0.0, np.where(right, -scores, scores))
        return float(unlikely + drawn / 2 * np.sum((weights - home) ** 2))

    weights = home.copy()
    for _ in range(200):
        chances = 1.0 / (1.0 + np.exp(-np.clip(features @ weights, -500, 500)))
        slope = features.T @ (counts * (right - chances)) - drawn * (weights - home)
        curve = features.T @ (features * (counts * chances * (1 - chances))[:, None])
        step = np.linalg.solve(curve + drawn * np.eye(len(home)), slope)
        before = loss_at(weights)
        # Far from the optimum a full step may overshoot, so halve it until the loss falls.
        while loss_at(weights + step) > before and np.abs(step).max() > 1e-9:
            step = step / 2
        weights = weights + step
        if np.abs(step).max() < 1e-7:
            break
    return weights


def fitted_to(rows: Sequence[Row], *, one_window: bool = False) -> Weights:
    """Fit the weights to the rows of one or more runs.

    Args:
        rows: Rows without a basis, or with too few found peaks, are left out.
        one_window: Ignore the second window; its weight is then 0.

    Raises:
        ValueError: No row has a basis, or all answers are right, or all are wrong.
    """
    known = confidences.decided(rows)
    if not known:
        raise ValueError("no row has a basis. Score the snippets again with polymux")
    features = np.array([row.basis.features() for row in known if row.basis])
    to, _ = of_the_build()
    if one_window:
        features[:, SECOND_WINDOW] = to[SECOND_WINDOW] = 0.0
    return fit(features, np.array([row.right for row in known]), to=to)


def judged(rows: Sequence[Row], weights: Weights, least: float) -> list[Row]:
    """Return the same rows, decided with other weights."""
    found = []
    for row in rows:
        if row.basis is None:
            found.append(row)
            continue
        score = float(weights @ np.array(row.basis.features()))
        basis = replace(row.basis, confidence=1.0 / (1.0 + math.exp(-min(max(score, -500), 500))))
        decided = replace(row, score=score, basis=basis)
        named = confidences.confidence(decided) >= least
        found.append(replace(decided, song=row.first if named else None))
    return found


def report(rows: Sequence[Row], *, one_window: bool = False) -> str:
    """Return the fitted weights in the format of parameters.hpp, those of the build, and the
    results of both."""
    before, least = of_the_build()
    weights = fitted_to(rows, one_window=one_window)
    lines = ["| weight | fitted | in parameters.hpp |", "|---|---|---|"]
    lines += [
        f"| {name} | {new:.3f} | {old:.3f} |"
        for name, new, old in zip(WEIGHTS, weights, before, strict=True)
    ]
    for name, one in (("fitted", weights), ("in parameters.hpp", before)):
        lines += ["", f"By the weights {name}:", ""]
        lines += confidences.choices(judged(rows, one, least))
    return "\n".join(lines)
