"""`scripts/bench song`: make sets, score how well recognizers identify their songs, and measure
costs.

The default command is `run`: all of these, and the tables of benchmarks/NOTES.md.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.measure import BUILD
from benchmarks.song import (
    calibration,
    costs,
    fitting,
    report,
    scorer,
    snippets,
    song_set,
    text_queries,
    whole,
)
from benchmarks.song.recognizers import RECOGNIZERS

COST_TRACKS = 60
COST_TRACKS_REDUCED = 15


def arguments(given: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench song", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    running = commands.add_parser("run", help="everything, and the tables of benchmarks/NOTES.md")
    running.add_argument(
        "--seeds", type=int, nargs="+", default=[7, 8, 9], help="seeds of the sets"
    )
    running.add_argument("--each", type=int, default=12, help="snippets for each cell")
    running.add_argument("--tracks", type=int, help="tracks per set (default: 300, reduced 40)")
    running.add_argument("--reduced", action="store_true", help="a smaller run")
    running.add_argument("--folder", type=Path, default=BUILD, help="(default: build/bench)")
    making = commands.add_parser("generate", help="make a set unless it exists")
    for one in (making, commands.add_parser("queries", help="print text queries as JSON lines")):
        one.add_argument("--seed", type=int, default=1)
    making.add_argument("--tracks", type=int, help="tracks in the index (default: 300, reduced 40)")
    making.add_argument("--reduced", action="store_true", help="shorter tracks, and fewer")
    making.add_argument("out", type=Path, nargs="?", help="folder (default: below build/bench)")
    scoring = commands.add_parser("score", help="run a recognizer on the snippets of a set")
    scoring.add_argument("folder", type=Path, help="of the set")
    scoring.add_argument("--recognizer", required=True, choices=sorted(RECOGNIZERS))
    scoring.add_argument("--reduced", action="store_true", help="only the core conditions")
    scoring.add_argument("--each", type=int, help="snippets per cell (default: 40, reduced 8)")
    scoring.add_argument(
        "--only", action="append", help="only conditions or kinds that contain this text"
    )
    scoring.add_argument("--rows", type=Path, help="file (default: rows-NAME.jsonl in the set)")
    scoring.add_argument("--keep", action="store_true", help="keep snippets for the next run")
    costing = commands.add_parser("costs", help="measure the costs for benchmarks/NOTES.md")
    costing.add_argument("--reduced", action="store_true", help="little music and few questions")
    costing.add_argument("folder", type=Path, nargs="?", help="a set (default: one is made)")
    telling = commands.add_parser("report", help="report a run again with other thresholds")
    telling.add_argument("rows", type=Path)
    for one in (scoring, telling):
        one.add_argument("--threshold", type=float, help="replaces the recognizer's thresholds")
        one.add_argument(
            "--zero-false", action="store_true", help="minimum threshold without wrong answers"
        )
        one.add_argument("--sweep", help="comma-separated thresholds")
    commands.choices["queries"].add_argument("folder", type=Path, help="of the set")
    commands.choices["queries"].add_argument("--count", type=int, default=240)
    fitting_it = commands.add_parser("fit", help="fit the decision's weights to rows")
    fitting_it.add_argument("rows", type=Path, nargs="+", help="polymux's rows, as JSON lines")
    fitting_it.add_argument("--one-window", action="store_true", help="ignore the second window")
    calibrating = commands.add_parser("calibrate", help="test the decision on your own music")
    calibrating.add_argument(
        "folder", type=Path, help="folder with music files, searched recursively"
    )
    calibrating.add_argument(
        "--files", type=int, default=200, help="maximum number of files (default: 200)"
    )
    calibrating.add_argument("--each", type=int, default=2, help="snippets per file and length")
    calibrating.add_argument("--seed", type=int, default=1, help="seed for files and positions")
    calibrating.add_argument("--rows", type=Path, help="(default: build/bench/calibration.jsonl)")
    asked_for_help = bool(given) and given[0] in {"-h", "--help"}
    default = not given or (given[0].startswith("-") and not asked_for_help)
    return parser.parse_args(["run", *given] if default else given)


def generate(options: argparse.Namespace) -> None:
    plan = whole.Plan([options.seed], 0, options.tracks, options.reduced, BUILD)
    print(whole.set_of(plan, options.seed, options.out).folder)


def score(options: argparse.Namespace) -> None:
    songs = song_set.SongSet(options.folder)
    chosen = snippets.reduced if options.reduced else snippets.full
    cases = chosen(songs, options.each) if options.each else chosen(songs)
    if options.only:
        cases = [
            case
            for case in cases
            if any(text in (case.kind, case.condition) for text in options.only)
        ]
    kept = options.folder / "snippets" if options.keep else None
    rows = options.rows or options.folder / f"rows-{options.recognizer}.jsonl"
    recognize = RECOGNIZERS[options.recognizer](songs)
    found = scorer.score(snippets.Snippets(songs, kept), recognize, cases, rows)
    tell(found, options)
    print(f"\nrows: {rows}", file=sys.stderr)


def tell(rows: Sequence[scorer.Row], options: argparse.Namespace) -> None:
    thresholds = {}
    if options.zero_false:
        thresholds = scorer.zero_false(rows)
        print("thresholds:", ", ".join(f"{s:g} s {t:.4g}" for s, t in thresholds.items()), "\n")
    elif options.threshold is not None:
        thresholds = {row.seconds: options.threshold for row in rows}
    print(report.whole(rows, thresholds))
    if options.sweep:
        print()
        print("\n".join(report.sweep(rows, [float(word) for word in options.sweep.split(",")])))


def cost(options: argparse.Namespace) -> None:
    count = COST_TRACKS_REDUCED if options.reduced else COST_TRACKS
    folder = options.folder or BUILD / f"song-1-{count}"
    songs = song_set.SongSet(folder) if options.folder else song_set.generate(folder, 1, count)
    found = costs.run(songs, costs.REDUCED if options.reduced else costs.Sizes())
    kept = BUILD / f"song-costs{'-reduced' if options.reduced else ''}.json"
    kept.write_text(json.dumps(found, indent=2, ensure_ascii=False))
    print(costs.table(found))
    print(f"\nfigures: {kept}", file=sys.stderr)


def print_queries(options: argparse.Namespace) -> None:
    known = song_set.SongSet(options.folder).indexed
    songs = [text_queries.Song(one.name, one.title, one.artist) for one in known]
    for query in text_queries.queries(options.seed, songs, options.count):
        line = {"text": query.text, "kind": query.kind, "expected": sorted(query.expected)}
        print(json.dumps(line, ensure_ascii=False))


def main(given: Sequence[str] | None = None) -> None:
    options = arguments(sys.argv[1:] if given is None else given)
    if options.command == "run":
        plan = whole.Plan(
            options.seeds, options.each, options.tracks, options.reduced, options.folder
        )
        print(whole.run(plan))
    elif options.command == "generate":
        generate(options)
    elif options.command == "score":
        score(options)
    elif options.command == "costs":
        cost(options)
    elif options.command == "fit":
        rows = [row for path in options.rows for row in scorer.load(path)]
        print(fitting.report(rows, one_window=options.one_window))
    elif options.command == "calibrate":
        settings = calibration.Settings(options.files, options.each, options.seed)
        kept = options.rows or BUILD / "calibration.jsonl"
        print(calibration.run(options.folder, settings, kept))
        print(f"\nrows: {kept}", file=sys.stderr)
    elif options.command == "report":
        tell(scorer.load(options.rows), options)
    else:
        print_queries(options)


if __name__ == "__main__":
    main()
