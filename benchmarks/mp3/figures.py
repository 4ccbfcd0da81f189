"""What tables and goals have in common: ratios of rounds, and whether an answer counts at all."""

from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.measure import Spread, spread

#: Encoders differ by a frame or two in how they pad the end; more is another piece of audio.
TOLERATED_FRAMES = 2

Rounds = Sequence[Mapping[str, Any]]


def column(rounds: Rounds, key: str, part: str | None = None) -> list[float]:
    """One figure of every round, from the whole process or from its own account (`part`)."""
    return [float((one[part] if part and part in one else one)[key]) for one in rounds]


def by_round(rounds: Rounds, key: str, part: str | None) -> dict[int, float]:
    """Number of the round to one figure of it."""
    numbers = [one.get("round", place) for place, one in enumerate(rounds)]
    return dict(zip(numbers, column(rounds, key, part), strict=True))


def ratio(
    above: Rounds, below: Rounds, key: str, part: str | None = None, below_part: str | None = None
) -> Spread:
    """Round by round, so that a slow minute of the machine touches both sides of a ratio.

    Args:
        above: The rounds of one contender.
        below: Of another; only rounds in which both ran are compared.
        key: The figure.
        part: `inside` for the account of the process itself, of the first contender.
        below_part: The same for the second.
    """
    dividends, divisors = by_round(above, key, part), by_round(below, key, below_part)
    common = [number for number in dividends if number in divisors]
    return spread([dividends[number] / divisors[number] for number in common])


def objection(entry: Mapping[str, Any]) -> str | None:
    """Why a converter's figures do not count: an error, or audio of another length."""
    if entry["error"]:
        return f"not measured: {entry['error']}"
    outcome = entry["identity"]
    if "problem" in outcome:
        return f"not counted: its file cannot be parsed: {outcome['problem']}"
    if abs(outcome["frames"] - outcome["expected"]) > TOLERATED_FRAMES:
        return f"not counted: {outcome['frames']:,} frames instead of {outcome['expected']:,}"
    return None


def frames_cell(entry: Mapping[str, Any]) -> str:
    """How a file's frames compare with ffmpeg's; and at how many places it was joined."""
    outcome = entry["identity"]
    if outcome["equal"]:
        seams = entry["rounds"][-1].get("inside", {}).get("seams", 0)
        joined = f", {seams} seam{'s' if seams > 1 else ''}" if seams else ""
        return f"all {outcome['frames']:,}{joined}"
    return f"{outcome['same']:,} of {outcome['frames']:,}"


def wrong(entry: Mapping[str, Any]) -> str | None:
    """Why figures of polymux meet no goal: one frame that differs is enough, in any round."""
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
