"""coverage_report.py FOLDER: combines the records of scripts/coverage into a table per folder."""

from __future__ import annotations

import json
import sys
from collections import defaultdict
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import coverage

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).resolve().parents[2]
PYTHON, CPP = "python/polymux", "cpp/src"
LIMITS = """\
A line counts as covered if any test runs it, in the test's own process or in a child process.
The measurement misses:
- Python: processes that end with their parent (PR_SET_PDEATHSIG), that hang in native code when
  they get SIGKILL, or that end by another signal without a handler; before Python 3.12 also lines
  on threads that native code creates.
- C++: processes that end by SIGKILL or os._exit (every engine process), and processes that may not
  write files (Landlock)."""


class Lines(NamedTuple):
    """The number of executable lines, and of executed ones."""

    covered: int
    total: int

    @property
    def percent(self) -> float:
        return 100 * self.covered / self.total if self.total else 100.0

    def as_json(self) -> dict[str, float]:
        return {"covered": self.covered, "total": self.total, "percent": round(self.percent, 2)}


def main() -> None:
    results = Path(sys.argv[1])
    executed, processes, broken = read_records(results / "records")
    files = measure_python(executed, results) | measure_cpp(results)
    by_folder: dict[str, list[Lines]] = defaultdict(list)
    for name, lines in files.items():
        by_folder[folder_of(name)].append(lines)
    folders = {folder: add(by_folder[folder]) for folder in sorted(by_folder)}
    totals = {
        root: add(lines for name, lines in files.items() if name.startswith(f"{root}/"))
        for root in (PYTHON, CPP)
    }

    print(f"{'folder':<36} {'lines':>7} {'covered':>8} {'percent':>8}")
    for folder, lines in folders.items():
        print(f"{folder:<36} {lines.total:>7} {lines.covered:>8} {lines.percent:>8.1f}")
    print(f"\n{LIMITS}\n\nPython processes with records: {processes}; incomplete records: {broken}")
    for root, lines in totals.items():
        print(f"line coverage of {root}: {lines.percent:.2f} % ({lines.covered}/{lines.total})")
    summary = {
        "totals": {root: lines.as_json() for root, lines in totals.items()},
        "folders": {folder: lines.as_json() for folder, lines in folders.items()},
        "files": {name: lines.as_json() for name, lines in sorted(files.items())},
        "python_processes": processes,
        "incomplete_records": broken,
    }
    (results / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")


def read_records(folder: Path) -> tuple[dict[str, set[int]], int, int]:
    """The executed lines of each file, the number of processes, and of incomplete records."""
    executed: dict[str, set[int]] = defaultdict(set)
    processes = broken = 0
    for path in folder.glob("*.jsonl"):
        with path.open("rb") as records:
            processes += path.stat().st_size > 0
            for record in records:
                try:
                    lines_by_file = json.loads(record)
                except ValueError:  # The process was killed while it wrote.
                    broken += 1
                    continue
                for file, lines in lines_by_file.items():
                    executed[file].update(lines)
    return executed, processes, broken


def measure_python(executed: dict[str, set[int]], results: Path) -> dict[str, Lines]:
    data_file, report = results / "python.coverage", results / "python.json"
    data = coverage.CoverageData(data_file)
    data.add_lines(executed)
    # Files that no test imports count too.
    data.touch_files([str(path) for path in (ROOT / PYTHON).rglob("*.py")])
    data.close()
    measured = coverage.Coverage(data_file, config_file=False, messages=False)
    measured.load()
    measured.json_report(outfile=str(report))
    files = json.loads(report.read_text("utf-8"))["files"]
    counts = {name: file["summary"] for name, file in files.items()}
    return {
        name: Lines(count["covered_lines"], count["num_statements"])
        for name, count in counts.items()
    }


def measure_cpp(results: Path) -> dict[str, Lines]:
    files = json.loads((results / "cpp.json").read_text("utf-8"))["files"]
    return {file["filename"]: Lines(file["line_covered"], file["line_total"]) for file in files}


def folder_of(name: str) -> str:
    """The first folder below a source root; the table has a row for each."""
    folders = name.split("/")[:-1]
    return "/".join(folders[:3])


def add(counts: Iterable[Lines]) -> Lines:
    covered, total = 0, 0
    for lines in counts:
        covered, total = covered + lines.covered, total + lines.total
    return Lines(covered, total)


if __name__ == "__main__":
    main()
