"""`scripts/bench json`: JSON writers and validators of request bodies, as ratios."""

import argparse
import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks import publish
from benchmarks.json import environment, inputs
from benchmarks.json.rounds import Rounds, measure
from benchmarks.measure import BUILD, load_average, machine, spread

RESULTS = BUILD / "json.json"
BUFFER = "polymux, request buffer"
BYTES = "polymux, bytes"
READ = "polymux, with values"
CHECK = "polymux, verdict only"
PYDANTIC = "pydantic"
PEERS = ["orjson", "msgspec", "json.dumps"]
WRITE_GOAL = {"1 MiB English prose": 1.5}
CHECK_GOAL = 5.0
MAX_BYTES = 32 << 20


def writers() -> dict[str, Callable[[Any], Any]]:
    """Return the writers by name.

    All must produce the same text, which is checked before timing.
    """
    import msgspec
    import orjson
    from polymux._native import _core

    encoder = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))
    return {
        BUFFER: _core.JsonBuffer().write,
        BYTES: _core.write_json,
        "orjson": orjson.dumps,
        "msgspec": msgspec.json.Encoder().encode,
        "json.dumps": lambda value: encoder.encode(value).encode(),
    }


def check_same(functions: Mapping[str, Callable[[Any], Any]], value: Any) -> None:
    """Raise an error if the writers' outputs differ."""
    texts = {name: write(value) for name, write in functions.items() if name != BUFFER}
    if len(set(texts.values())) != 1:
        raise SystemExit(
            f"the texts differ: { ({name: len(text) for name, text in texts.items()}) }"
        )


def checkers() -> dict[str, Callable[[bytes], Any]]:
    """Return the validators by name.

    Each rejects what the contract rejects, as far as models can express it.
    """
    from polymux._native import _core

    from benchmarks.json.models import ChatRequest

    server = True
    return {
        READ: lambda body: _core.read_json("chat", None, body, server, MAX_BYTES),
        CHECK: lambda body: _core.check_json("chat", None, body, server, MAX_BYTES),
        PYDANTIC: ChatRequest.model_validate_json,
    }


def ratio(theirs: list[float], ours: list[float]) -> str:
    """Return the median and quartiles of the ratios of single rounds."""
    return str(spread([one / other for one, other in zip(theirs, ours, strict=True)]))


def table(measured: Mapping[str, Rounds], ours: str, peers: list[str]) -> list[str]:
    """Return a table of polymux's speed relative to each peer."""
    lines = [f"| input | polymux, us | {' | '.join(peers)} |", "| --- |" + " ---: |" * len(peers)]
    lines[1] += " ---: |"
    for case, rounds in measured.items():
        cells = [ratio(rounds[peer], rounds[ours]) for peer in peers]
        own = spread([one * 1e6 for one in rounds[ours]])
        lines.append(f"| {case} | {own.text(1)} | {' | '.join(cells)} |")
    return lines


def goals(written: Mapping[str, Rounds], checked: Mapping[str, Rounds]) -> list[str]:
    """Return a row for each goal, judged by the lower quartile."""
    lines = ["| goal | wanted | lower quartile | met |", "| --- | ---: | ---: | --- |"]

    def line(name: str, wanted: float, theirs: list[float], ours: list[float]) -> None:
        low = spread([one / other for one, other in zip(theirs, ours, strict=True)]).low
        met = "yes" if low >= wanted else "no"
        lines.append(f"| {name} | {wanted:g}x | {low:.2f}x | {met} |")

    for case, rounds in written.items():
        line(f"{case}, against orjson", WRITE_GOAL.get(case, 1.2), rounds["orjson"], rounds[BUFFER])
    for case, rounds in checked.items():
        for name in (READ, CHECK):
            title = f"{case}, {name.removeprefix('polymux, ')}, against pydantic"
            line(title, CHECK_GOAL, rounds[PYDANTIC], rounds[name])
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(prog="scripts/bench json", description=__doc__)
    parser.add_argument("--rounds", type=int, default=15, help="at least 7 (default: 15)")
    parser.add_argument("--publish", action="store_true", help=publish.HELP)
    options = parser.parse_args()
    rounds = max(7, options.rounds)
    versions = environment.prepare()
    before = load_average()
    written = {}
    for case, (make, calls) in inputs.makers().items():
        functions = writers()
        check_same(functions, make())
        written[case] = measure(functions, make, calls, rounds)
    body = json.dumps(inputs.chat(), separators=(",", ":")).encode()
    checked = {
        f"chat request of {len(body)} bytes": measure(
            checkers(), lambda: body[:1] + body[1:], 200, rounds
        )
    }
    load = [before, load_average()]
    facts = {"machine": machine(), "versions": versions, "load": load, "rounds": rounds}
    BUILD.mkdir(parents=True, exist_ok=True)
    RESULTS.write_text(json.dumps({**facts, "written": written, "checked": checked}) + "\n")
    tables = [*goals(written, checked), ""]
    for title, ours in (("writing", BUFFER), ("writing to bytes", BYTES)):
        tables += [f"### {title}", "", *table(written, ours, PEERS), ""]
    for title, ours in (("checking with values", READ), ("checking, verdict only", CHECK)):
        tables += [f"### {title}", "", *table(checked, ours, [PYDANTIC]), ""]
    note = f"load {load[0]:.1f} to {load[1]:.1f}"
    print(*tables, f"{machine()}; {versions}; {note}; {rounds} rounds", sep="\n")
    if options.publish:
        date = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d")
        kept = {"date": date, "rounds": rounds, "machine": machine(), "versions": versions}
        publish.save("json", {**kept, "notes": [note]}, "\n".join(tables))


if __name__ == "__main__":
    main()
