"""`scripts/bench mp3`: measure, print Markdown tables and, with --publish, update the docs."""

import argparse
import datetime
import json
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import publish
from benchmarks.measure import BUILD, ROOT, load_average, machine, raise_priority
from benchmarks.mp3 import (
    cases,
    clips,
    conversions,
    environment,
    inputs,
    instructions,
    memory,
    report,
)
from benchmarks.mp3.peers import every, ffmpeg, polymux
from benchmarks.mp3.peers.base import Peer

RESULTS = BUILD / "mp3.json"
BASELINE = ROOT / "benchmarks" / "mp3" / "baseline.json"


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench mp3", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="per converter (default: 5)")
    parser.add_argument(
        "--only",
        action="append",
        choices=("conversions", "long", "clips", "memory"),
        help="measure only this part and keep the other parts of the last run; repeatable",
    )
    parser.add_argument("--peer", action="append", help="measure only polymux and ffmpeg")
    parser.add_argument(
        "--callgrind", action="store_true", help="also count instructions (requires valgrind)"
    )
    parser.add_argument(
        "--program", type=Path, help="the C++ example convert_to_mp3 (default: if built, build/*/)"
    )
    parser.add_argument(
        "--publish", action="store_true", help=f"{publish.HELP}, and write mp3/baseline.json"
    )
    parser.add_argument(
        "--report", action="store_true", help="report the last run without measuring"
    )
    return parser.parse_args()


def example_program(given: Path | None) -> Path | None:
    """Return the given C++ example, or the newest one below build/."""
    if given is not None:
        return given.resolve()
    found = (ROOT / "build").glob("**/convert_to_mp3")
    programs = sorted((p for p in found if p.is_file()), key=lambda p: p.stat().st_mtime)
    return programs[-1] if programs else None


def chosen(names: list[str] | None) -> tuple[Peer, ...]:
    """Return the peers to measure; ffmpeg and all variants of polymux are always included."""
    always = {peer.name for peer in (*ffmpeg.PEERS, *polymux.PEERS)}
    return tuple(peer for peer in every() if not names or peer.name in {*names, *always})


def measure(options: argparse.Namespace, peers: tuple[Peer, ...]) -> None:
    """Run the selected parts and write each one to RESULTS when it is done."""
    raised = raise_priority()
    broken = environment.prepare([peer for peer in peers if peer.packages])
    files = inputs.prepare()
    program = example_program(options.program)
    results: dict[str, Any] = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    results.update(
        date=datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        machine=machine(),
        priority_raised=raised,
        rounds=options.rounds,
        build=environment.build_info(),
        versions=environment.versions(peers),
    )
    parts = {
        "conversions": partial(
            conversions.measure, cases.short(files), peers, broken, options.rounds
        ),
        "long": partial(conversions.measure, cases.long(files), peers, broken, options.rounds),
        "clips": partial(clips.measure, files, options.rounds),
        "memory": partial(memory.measure, files, peers, program),
    }
    if options.callgrind:
        if program is None:
            raise SystemExit("--callgrind counts the C++ example: build it or name it (--program)")
        parts["instructions"] = partial(instructions.measure, files, program)
    for name, part in parts.items():
        if options.only and name not in (*options.only, "instructions"):
            continue
        before = load_average()
        results[name] = part()
        results.setdefault("load", {})[name] = [before, load_average()]
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")


def main() -> None:
    """Measure, unless only a report is requested, and print the report."""
    options = arguments()
    peers = chosen(options.peer)
    if not options.report:
        measure(options, peers)
    results = json.loads(RESULTS.read_text())
    measured = report.render(results, peers)
    print(measured)
    if options.publish:
        publish.save("mp3", report.facts(results), measured)
        lines = (f"{json.dumps(key)}: {json.dumps(value)}" for key, value in results.items())
        BASELINE.write_text("{\n" + ",\n".join(lines) + "\n}\n")
        print(f"written: benchmarks/published/mp3.json, {BASELINE.relative_to(ROOT)}, the docs")


if __name__ == "__main__":
    main()
