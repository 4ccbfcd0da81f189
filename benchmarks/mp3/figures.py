"""Functions shared by tables and goals: ratios of rounds, and whether a result is valid."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import Spread, spread

#: Encoders differ by a frame or two in their padding at the end. A larger difference is an error.
TOLERATED_FRAMES = 2

Rounds = Sequence[Mapping[str, Any]]


def column(rounds: Rounds, key: str, part: str | None = None) -> list[float]:
    """Return one figure of every round, of the whole process or of `part`."""
    return [float((one[part] if part and part in one else one)[key]) for one in rounds]


def by_round(rounds: Rounds, key: str, part: str | None) -> dict[int, float]:
    """Return one figure by the number of the round."""
    numbers = [one.get("round", place) for place, one in enumerate(rounds)]
    return dict(zip(numbers, column(rounds, key, part), strict=True))


def ratio(
    above: Rounds, below: Rounds, key: str, part: str | None = None, below_part: str | None = None
) -> Spread:
    """Return the ratios of single rounds. A slow minute of the machine then affects both sides.

    Args:
        above: Rounds of one contender.
        below: Rounds of the other; only rounds with both are compared.
        key: Figure.
        part: `inside` for the first contender's figures without interpreter and imports.
        below_part: The same for the second contender.
    """
    dividends, divisors = by_round(above, key, part), by_round(below, key, below_part)
    common = [number for number in dividends if number in divisors]
    return spread([dividends[number] / divisors[number] for number in common])


def objection(entry: Mapping[str, Any]) -> str | None:
    """Return why a converter's figures do not count: an error, or audio of a different length."""
    if entry["error"]:
        return f"not measured: {entry['error']}"
    outcome = entry["identity"]
    if "problem" in outcome:
        return f"not counted: its file cannot be parsed: {outcome['problem']}"
    if abs(outcome["frames"] - outcome["expected"]) > TOLERATED_FRAMES:
        return f"not counted: {outcome['frames']:,} frames instead of {outcome['expected']:,}"
    return None


def frames_cell(entry: Mapping[str, Any]) -> str:
    """Return how a file's frames compare with ffmpeg's, and the number of its joins."""
    outcome = entry["identity"]
    if outcome["equal"]:
        seams = entry["rounds"][-1].get("inside", {}).get("seams", 0)
        joined = f", {seams} seam{'s' if seams > 1 else ''}" if seams else ""
        return f"all {outcome['frames']:,}{joined}"
    return f"{outcome['same']:,} of {outcome['frames']:,}"


def wrong(entry: Mapping[str, Any]) -> str | None:
    """Return why polymux's result is invalid: a single different frame in any round is enough."""
    if problem := objection(entry):
        return problem
    if not entry["identity"]["equal"]:
        return f"only {frames_cell(entry)} frames equal"
    if not entry["identity"]["always_the_same"]:
        return "another file in another round"
    return None


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table."""
    rule = ["---", *["---:" for _ in header[1:]]]
    return [f"| {' | '.join(cells)} |" for cells in (header, rule, *rows)]
