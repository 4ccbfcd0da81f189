#!/usr/bin/env python3
"""clang_tidy.py [--changed] BUILD_FOLDER...: runs clang-tidy on the library and bindings of builds.

With --changed, only files that differ from the last commit are checked.

Two files run at a time. A file is skipped if its content, the repository's headers and the settings
are those of its last successful check; build/clang-tidy has a record of these.
"""

import hashlib
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PASSED = ROOT / "build/clang-tidy"


def sources_of(build: Path) -> list[Path]:
    """The repository's files in the build's compilation database, without tests."""
    entries = json.loads((build / "compile_commands.json").read_text())
    files = {(Path(entry["directory"]) / entry["file"]).resolve() for entry in entries}
    shipped = (ROOT / "cpp/src", ROOT / "bindings")
    return sorted(path for path in files if any(path.is_relative_to(top) for top in shipped))


def changed_files() -> set[Path]:
    """Files that differ from the last commit, including new ones."""
    command = ["git", "ls-files", "--modified", "--others", "--exclude-standard"]
    staged = ["git", "diff", "--name-only", "--cached"]
    names = [
        subprocess.run(one, check=True, capture_output=True, text=True, cwd=ROOT).stdout.split("\n")
        for one in (command, staged)
    ]
    return {(ROOT / name).resolve() for name in (*names[0], *names[1]) if name}


def shared_state(build: Path) -> bytes:
    """The inputs of every file's result: the tool, its settings, and the repository's headers."""
    version = subprocess.run(["clang-tidy", "--version"], check=True, capture_output=True).stdout
    headers = sorted(path for top in ("cpp", "bindings") for path in (ROOT / top).rglob("*.hpp"))
    parts = [path.read_bytes() for path in (ROOT / ".clang-tidy", *headers)]
    return version + b"\0".join(parts) + build.name.encode()


def check(build: Path, source: Path, shared: bytes) -> str:
    """Return the findings, or an empty text."""
    state = hashlib.sha256(shared + source.read_bytes()).hexdigest()
    mark = PASSED / state
    if mark.exists():
        return ""
    command = ["clang-tidy", "--quiet", f"-p={build}", "--extra-arg=-Wno-unknown-warning-option"]
    result = subprocess.run([*command, str(source)], capture_output=True, text=True, check=False)
    if result.returncode == 0:
        mark.touch()
        return ""
    return result.stdout + (result.stderr if not result.stdout else "")


def main() -> None:
    PASSED.mkdir(parents=True, exist_ok=True)
    arguments = sys.argv[1:]
    only_changed = "--changed" in arguments
    builds = [Path(name).resolve() for name in arguments if name != "--changed"]
    wanted = changed_files() if only_changed else None
    seen: set[Path] = set()
    jobs = []
    for build in builds:
        shared = shared_state(build)
        for source in sources_of(build):
            if source not in seen and (wanted is None or source in wanted):
                seen.add(source)
                jobs.append((build, source, shared))
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = [text for text in pool.map(lambda job: check(*job), jobs) if text]
    print(*findings, sep="\n")
    print(f"clang-tidy: {len(jobs)} files, findings in {len(findings)}")
    sys.exit(bool(findings))


if __name__ == "__main__":
    main()
