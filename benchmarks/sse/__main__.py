"""`scripts/bench sse`: decoding of chat streams, compared with parsers and clients, as Markdown."""

import argparse
import datetime
import subprocess
import sys
from collections import defaultdict

from benchmarks import publish
from benchmarks.environment import Environment
from benchmarks.measure import (
    BUILD,
    ROOT,
    load_average,
    machine,
    raise_priority,
    run,
    spread,
)
from benchmarks.sse.consumers import CONSUMERS

PROGRAM = BUILD / "native" / "cpp" / "bench" / "bench_stream"

#: Goals for the lower quartile of the ratios of single rounds, at reads of 16 KiB or, in Python, 4
#: KiB.
GOALS_NATIVE = {"ondemand": 3.6, "dom": 6.0, "memcpy": 0.6}
GOALS_PYTHON = {
    "orjson": 12, "msgspec": 9, "pydantic": 30, "httpx-sse": 60, "openai": 700, "groq": 500,
}  # fmt: skip


def build() -> None:
    """Build the C++ program in the benchmarks' build folder."""
    options = ("-DCMAKE_BUILD_TYPE=Release", "-DPOLYMUX_MEDIA=OFF", "-DPOLYMUX_BENCH=ON")
    folder = str(BUILD / "native")
    subprocess.run(["cmake", "-S", str(ROOT), "-B", folder, "-G", "Ninja", *options], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "bench_stream"], check=True)


def ratios(figures: dict[str, list[float]]) -> dict[str, list[float]]:
    """Return the ratio of each contender's CPU time to polymux's, round by round."""
    ours = figures["polymux"]
    return {
        name: [theirs / own for theirs, own in zip(values, ours, strict=True)]
        for name, values in figures.items()
        if name != "polymux"
    }


def native(rounds: int) -> list[str]:
    """Return the C++ table."""
    figures: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    done = run([str(PROGRAM), str(rounds)])
    if done.status != 0:
        raise SystemExit(f"bench_stream: {done.error}")
    for line in done.stdout.splitlines():
        kind, read, variant, _, nanoseconds = line.split()
        figures[kind, int(read)][variant].append(float(nanoseconds))
    lines = [
        "| stream | read of bytes | polymux, ns a chunk | memcpy | events split alone "
        "| simdjson on-demand | simdjson DOM | goals met |",
        "| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |",
    ]
    for (kind, read), variants in figures.items():
        found = {name: spread(values).low for name, values in ratios(variants).items()}
        met = all(found[name] >= goal for name, goal in GOALS_NATIVE.items())
        columns = [f"{found[name]:.2f}x" for name in ("memcpy", "split", "ondemand", "dom")]
        verdict = ("yes" if met else "no") if read > 10_000 else ""
        lines.append(f"| {kind} | {read:,} | {spread(variants['polymux']).text(0)} | "
                     f"{' | '.join(columns)} | {verdict} |")  # fmt: skip
    return lines


def python(rounds: int, interpreter: str) -> list[str]:
    """Return the Python table; the peers are installed in the environment of `interpreter`."""
    figures: dict[str, list[float]] = defaultdict(list)
    hashes = set()
    for _ in range(rounds):
        for name in CONSUMERS:
            program = sys.executable if name == "polymux" else interpreter
            done = run([program, str(ROOT / "benchmarks" / "sse" / "consumers.py"), name])
            if done.status != 0:
                raise SystemExit(f"{name}: {done.error}")
            nanoseconds, text = done.stdout.split()
            figures[name].append(float(nanoseconds))
            hashes.add(text)
    if len(hashes) != 1:
        raise SystemExit("the consumers returned different texts")
    lines = ["| consumer | ns a chunk | times polymux | wanted |", "| --- | ---: | ---: | ---: |"]
    lines.append(f"| polymux | {spread(figures['polymux']).text(0)} | 1 | |")
    for name, values in ratios(figures).items():
        lines.append(f"| {name} | {spread(figures[name]).text(0)} | {spread(values).low:.1f}x | "
                     f"{GOALS_PYTHON[name]}x |")  # fmt: skip
    return lines


def main() -> None:
    """Build, measure and print. Ratios are lower quartiles of the ratios of single rounds."""
    parser = argparse.ArgumentParser(prog="scripts/bench sse", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="at least 7 (default: 9)")
    parser.add_argument("--publish", action="store_true", help=publish.HELP)
    options = parser.parse_args()
    raised = raise_priority()
    build()
    environment = Environment("sse")
    environment.prepare()
    before = load_average()
    tables = ["### C++", "", *native(options.rounds), ""]
    tables += ["### Python", "", *python(options.rounds, environment.python)]
    priority = "raised" if raised else "normal"
    note = f"{priority} priority; load {before:.1f} to {load_average():.1f}"
    print(*tables, "", note, sep="\n")
    if options.publish:
        facts = {
            "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
            "rounds": options.rounds,
            "machine": machine(),
            "versions": environment.versions(),
            "notes": [note, "ratios are the lower quartiles of the ratios of single rounds"],
        }
        publish.save("sse", facts, "\n".join(tables))


if __name__ == "__main__":
    main()
