"""The full benchmark: sets of several seeds, both recognizers, costs and tables.

The tables are those of benchmarks/NOTES.md.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, NamedTuple

from benchmarks.song import costs, report, scorer, snippets, song_set
from benchmarks.song.recognizers import RECOGNIZERS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from benchmarks.song.scorer import Row
    from benchmarks.song.song_set import SongSet

REDUCED_SHARE = 0.6  # track length relative to a full set
REDUCED_TRACKS = 40
TRACKS = 300


class Plan(NamedTuple):
    """Size of the full benchmark.

    Attributes:
        seeds: Seeds of the sets, which are evaluated separately and together.
        each: Snippets per condition and length; the cells in the docs have 12.
        tracks: Tracks in each index; None for 300, or 40 if reduced.
        reduced: Shorter tracks, only the core conditions, and little music for the costs.
        folder: Folder for sets, rows and figures; existing ones are reused.
    """

    seeds: Sequence[int]
    each: int
    tracks: int | None
    reduced: bool
    folder: Path


def set_of(plan: Plan, seed: int, folder: Path | None = None) -> SongSet:
    """Generate a set unless it exists, below the plan's folder by default."""
    count = plan.tracks or (REDUCED_TRACKS if plan.reduced else TRACKS)
    name = f"song-{seed}-{count}{'-reduced' if plan.reduced else ''}"
    share = REDUCED_SHARE if plan.reduced else 1.0
    return song_set.generate(folder or plan.folder / name, seed, count, share)


def asked(plan: Plan, songs: SongSet, who: str) -> list[Row]:
    """Run a recognizer on a set.

    The snippets are cached, so the next recognizer gets the same ones.
    """
    cases = (snippets.reduced if plan.reduced else snippets.full)(songs, plan.each)
    print(f"{who}: {len(cases)} snippets of seed {songs.seed} ...", file=sys.stderr, flush=True)
    made = snippets.Snippets(songs, songs.folder / f"snippets-{plan.each}")
    rows = songs.folder / f"rows-{who}.jsonl"
    return scorer.score(made, RECOGNIZERS[who](songs), cases, rows)


def run(plan: Plan) -> str:
    """Run everything.

    Returns:
        The tables of benchmarks/NOTES.md: polymux's results for each seed, Chromaprint's at the
        thresholds most favorable to it, and the costs with the first seed's set.
    """
    sets = {f"seed {seed}": set_of(plan, seed) for seed in plan.seeds}
    ours = {name: asked(plan, songs, "polymux") for name, songs in sets.items()}
    peers = {name: asked(plan, songs, "chromaprint") for name, songs in sets.items()}
    least = {name: scorer.zero_false(rows) for name, rows in peers.items()}
    sizes = costs.REDUCED if plan.reduced else costs.Sizes()
    spent = costs.run(next(iter(sets.values())), sizes)
    kept = plan.folder / f"song-costs{'-reduced' if plan.reduced else ''}.json"
    kept.write_text(json.dumps(spent, indent=2, ensure_ascii=False))
    return "\n".join([
        f"Polymux, {plan.each} snippets for each condition and length of a seed:\n",
        report.summary(ours),
        "\nChromaprint about the same snippets, each length at its least threshold without a "
        "wrong answer (siblings and junk are spared):\n",
        report.summary(peers, least),
        "\nCosts, questions being the least of three repeats of clean snippets:\n",
        costs.table(spent),
    ])  # fmt: skip
