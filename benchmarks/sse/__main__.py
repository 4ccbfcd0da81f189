"""`scripts/bench sse`: decoding of chat streams against parsers and clients, as Markdown."""

import argparse
import subprocess
import sys
from collections import defaultdict

from benchmarks.measure import BUILD, ROOT, load_average, raise_priority, run, spread
from benchmarks.sse.consumers import CONSUMERS

REQUIREMENTS = ROOT / "benchmarks" / "sse" / "requirements.txt"
VENV = BUILD.parent / "bench-sse-venv"
PROGRAM = BUILD / "native" / "cpp" / "bench" / "bench_stream"

#: Lower quartile of the ratios by rounds that is wanted, at reads of 16 KiB or, in Python, 4 KiB.
GOALS_NATIVE = {"ondemand": 3.6, "dom": 6.0, "memcpy": 0.6}
GOALS_PYTHON = {
    "orjson": 12, "msgspec": 9, "pydantic": 30, "httpx-sse": 60, "openai": 700, "groq": 500,
}  # fmt: skip


def build() -> None:
    """The C++ program, in the benchmarks' own folder."""
    options = ("-DCMAKE_BUILD_TYPE=Release", "-DPOLYMUX_MEDIA=OFF", "-DPOLYMUX_BENCH=ON")
    folder = str(BUILD / "native")
    subprocess.run(["cmake", "-S", str(ROOT), "-B", folder, "-G", "Ninja", *options], check=True)
    subprocess.run(["cmake", "--build", folder, "--target", "bench_stream"], check=True)


def prepare() -> None:
    """The peers' environment."""
    stamp = VENV / "requirements.txt"
    wanted = REQUIREMENTS.read_text()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(VENV)], check=True)
    pip = [str(VENV / "bin" / "python"), "-m", "pip", "install", "-q"]
    subprocess.run([*pip, "-r", str(REQUIREMENTS)], check=True)
    stamp.write_text(wanted)


def ratios(figures: dict[str, list[float]]) -> dict[str, list[float]]:
    """How many times polymux's CPU time each other one took, round by round."""
    ours = figures["polymux"]
    return {
        name: [theirs / own for theirs, own in zip(values, ours, strict=True)]
        for name, values in figures.items()
        if name != "polymux"
    }


def native(rounds: int) -> None:
    """Prints the C++ table."""
    figures: dict[tuple[str, int], dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    done = run([str(PROGRAM), str(rounds)])
    if done.status != 0:
        raise SystemExit(f"bench_stream: {done.error}")
    for line in done.stdout.splitlines():
        kind, read, variant, _, nanoseconds = line.split()
        figures[kind, int(read)][variant].append(float(nanoseconds))
    print("\n| stream | read | polymux ns | memcpy | split alone | on-demand | DOM | goals met |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |")
    for (kind, read), variants in figures.items():
        found = {name: spread(values).low for name, values in ratios(variants).items()}
        met = all(found[name] >= goal for name, goal in GOALS_NATIVE.items())
        columns = [f"{found[name]:.2f}x" for name in ("memcpy", "split", "ondemand", "dom")]
        verdict = ("yes" if met else "no") if read > 10_000 else ""
        print(f"| {kind} | {read} | {spread(variants['polymux']).median:.0f} | "
              f"{' | '.join(columns)} | {verdict} |")  # fmt: skip


def python(rounds: int) -> None:
    """Prints the Python table."""
    figures: dict[str, list[float]] = defaultdict(list)
    hashes = set()
    for _ in range(rounds):
        for name in CONSUMERS:
            program = sys.executable if name == "polymux" else str(VENV / "bin" / "python")
            done = run([program, str(ROOT / "benchmarks" / "sse" / "consumers.py"), name])
            if done.status != 0:
                raise SystemExit(f"{name}: {done.error}")
            nanoseconds, text = done.stdout.split()
            figures[name].append(float(nanoseconds))
            hashes.add(text)
    if len(hashes) != 1:
        raise SystemExit("the consumers do not agree on the text")
    print("\n| consumer | ns a chunk | times polymux | wanted |")
    print("| --- | ---: | ---: | ---: |")
    print(f"| polymux | {spread(figures['polymux']).median:.0f} | 1 | |")
    for name, values in ratios(figures).items():
        print(f"| {name} | {spread(figures[name]).median:.0f} | {spread(values).low:.1f}x | "
              f"{GOALS_PYTHON[name]}x |")  # fmt: skip


def main() -> None:
    """Builds, measures, prints; ratios are lower quartiles of those of single rounds."""
    parser = argparse.ArgumentParser(prog="scripts/bench sse", description=__doc__)
    parser.add_argument("--rounds", type=int, default=9, help="at least 7 (default: 9)")
    rounds = parser.parse_args().rounds
    raise_priority()
    build()
    prepare()
    print(f"load average before: {load_average():.2f}")
    native(rounds)
    python(rounds)
    print(f"\nload average after: {load_average():.2f}")


if __name__ == "__main__":
    main()
