"""Benchmarks whose contenders take turns: each round runs every contender once in a new process."""

from __future__ import annotations

import argparse
import datetime
import json
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from benchmarks import publish, verdicts
from benchmarks.floors.programs import awake_cores
from benchmarks.measure import BUILD, load_average, machine, raise_priority, run
from benchmarks.verdicts import CPU, Figure, Goal, Rounds

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

MIN_ROUNDS = 7
OURS = "polymux"


@dataclass(frozen=True)
class Variant:
    """A contender: a command that prints one line of JSON.

    Attributes:
        name: Name in the tables.
        command: Program and arguments.
        ours: Whether it is polymux or a floor. The benchmark stops if it fails.
        env: Changes to the environment.
        figures: Computes the figures from the process's resource usage, if the program prints none.
    """

    name: str
    command: tuple[str, ...]
    ours: bool = False
    env: Mapping[str, str] = field(default_factory=dict)
    figures: Callable[[Any], dict[str, Any]] | None = None


@dataclass(frozen=True)
class Case:
    """Contenders to compare, with the columns and goals of their table.

    Attributes:
        title: Title of the table.
        variants: The contenders.
        figures: Columns of the table.
        goals: Goals to check.
        reference: Contender that the ratios are relative to.
        who: Title of the first column.
        min_rounds: Minimum number of rounds, even if the command line requests fewer.
        notes: Paragraphs below the table: figures that peers published and that were not measured
            here.
    """

    title: str
    variants: tuple[Variant, ...]
    figures: tuple[Figure, ...] = (CPU,)
    goals: tuple[Goal, ...] = ()
    reference: str = OURS
    who: str = "client"
    min_rounds: int = 0
    notes: tuple[str, ...] = ()

    def rounds(self, wanted: int) -> int:
        return wanted if wanted == 1 else max(wanted, self.min_rounds)


def arguments(name: str, about: str, given: Sequence[str] | None = None) -> argparse.Namespace:
    """Parse the command line that all benchmarks share."""
    parser = argparse.ArgumentParser(prog=f"scripts/bench {name}", description=about)
    parser.add_argument("--rounds", type=int, default=9, help="default: 9; to publish, at least 7")
    parser.add_argument("--only", action="append", help="only cases whose title contains this text")
    parser.add_argument(
        "--quick",
        action="store_true",
        help="run one small round of polymux and the floors, as a check",
    )
    parser.add_argument(
        "--peers", action="store_true", help="with --quick: also run the peers (installs them)"
    )
    parser.add_argument("--halting", action="store_true", help="do not keep cores from halting")
    parser.add_argument("--publish", action="store_true", help=publish.HELP)
    options = parser.parse_args(given)
    options.rounds = 1 if options.quick else options.rounds
    if options.publish and (options.rounds < MIN_ROUNDS or options.only):
        parser.error(f"publishing requires all cases and {MIN_ROUNDS} or more rounds")
    options.with_peers = options.peers or not options.quick
    return options


def chosen(cases: Sequence[Case], options: argparse.Namespace) -> list[Case]:
    """Return the selected cases, without peers if the command line excludes them."""
    found = []
    for case in cases:
        if options.only and not any(text in case.title for text in options.only):
            continue
        variants = tuple(one for one in case.variants if options.with_peers or one.ours)
        found.append(replace(case, variants=variants))
    return found


def once(variant: Variant) -> dict[str, Any]:
    """Run a contender once and return its figures, or `error`."""
    try:
        usage = run(variant.command, env=variant.env)
    except OSError as error:
        return {"error": str(error.strerror)}
    if usage.status != 0:
        return {"error": usage.error}
    if variant.figures is not None:
        return variant.figures(usage)
    measured: dict[str, Any] = json.loads(usage.stdout.splitlines()[-1])
    for name in ("requests", "events"):
        if name in measured:
            measured["count"] = measured.pop(name)
    return measured


def measure(cases: Sequence[Case], rounds: int) -> dict[str, Rounds]:
    """Return the figures of each round, by case and contender.

    A peer that fails is not run again. It stays in the table with its error.

    Raises:
        SystemExit: polymux or a floor failed.
    """
    results: dict[str, Rounds] = {case.title: {} for case in cases}
    most = max(case.rounds(rounds) for case in cases)
    for number in range(most):
        print(f"round {number + 1} of {most} ...", flush=True)
        for case in [one for one in cases if number < one.rounds(rounds)]:
            found = results[case.title]
            turn = number % len(case.variants)
            for variant in case.variants[turn:] + case.variants[:turn]:
                known = found.setdefault(variant.name, [])
                if known and "error" in known[0]:
                    continue
                measured = once(variant)
                if variant.ours and "error" in measured:
                    raise SystemExit(f"{case.title}: {variant.name}: {measured['error']}")
                known.append(measured)
    return results


def compete(
    name: str,
    cases: Sequence[Case],
    options: argparse.Namespace,
    versions: Mapping[str, str],
    *,
    waits: bool = False,
) -> None:
    """Measure, print the tables, save the figures and publish them if requested.

    With `waits`, cores are kept from halting, because the contenders often wait for each other.
    """
    awake = waits and not options.halting
    raised = raise_priority(alone=not waits)
    cases = chosen(cases, options)
    before = load_average()
    with awake_cores() if awake else nullcontext():
        results = measure(cases, options.rounds)
    load = (before, load_average())
    facts = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d"),
        "machine": machine(),
        "versions": dict(versions),
        "load": load,
        "rounds": options.rounds,
        "priority_raised": raised,
        "awake": awake,
    }
    BUILD.mkdir(parents=True, exist_ok=True)
    kept = BUILD / f"{name}{'-quick' if options.quick else ''}.json"
    kept.write_text(json.dumps({**facts, "results": results}) + "\n")
    lines = verdicts.goals_table([(case.goals, results[case.title], case) for case in cases])
    for case in cases:
        rounds = case.rounds(options.rounds)
        more = "" if rounds == options.rounds else f" ({rounds} rounds)"
        lines += ["", f"### {case.title}{more}", ""]
        lines += verdicts.case_table(
            results[case.title],
            [one.name for one in case.variants],
            case.figures,
            case.reference,
            case.who,
        )
        for note in case.notes:
            lines += ["", note]
    lines += ["", *circumstances(facts)]
    measured = "\n".join(lines)
    print(measured)
    if options.publish:
        publish.save(name, published(facts, cases), measured)
        print(f"written: benchmarks/published/{name}.json, docs/benchmarks.md and its charts")


def published(facts: Mapping[str, Any], cases: Sequence[Case]) -> dict[str, Any]:
    """Return the parts of a published results file other than its tables."""
    kept = {key: facts[key] for key in ("date", "rounds", "machine", "versions")}
    load, awake = facts["load"], "; cores kept awake, which counts as load"
    priority = "raised" if facts["priority_raised"] else "normal"
    note = f"{priority} priority; load {load[0]:.1f} to {load[1]:.1f}"
    notes = [note + (awake if facts["awake"] else "")]
    for case in cases:
        rounds = case.rounds(facts["rounds"])
        notes += [f"{case.title}: {rounds} rounds"] if rounds != facts["rounds"] else []
        notes += case.notes
    return {**kept, "notes": notes}


def circumstances(facts: Mapping[str, Any]) -> list[str]:
    """Return the machine, load and versions as one paragraph."""
    known = facts["machine"]
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    cores = "; cores kept awake, which counts as load" if facts["awake"] else ""
    priority = "raised" if facts["priority_raised"] else "normal"
    return [
        f"{facts['date']}. {known['processor']} ({known['architecture']}), {known['cores']} cores, "
        f"{known['memory_gib']} GiB, {known['kernel']}, Python {known['python']}. "
        f"{facts['rounds']} rounds at {priority} priority; load {facts['load'][0]:.1f} to "
        f"{facts['load'][1]:.1f}{cores}. {versions}."
    ]
