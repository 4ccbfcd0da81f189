"""mypy sees the public interface as it is meant."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check(code: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", code],
        cwd=ROOT,
        env=os.environ | {"MYPYPATH": str(ROOT / "python")},
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )


def test_the_example_has_the_expected_types() -> None:
    done = check(ROOT / "tests/typing/example.py")
    assert done.returncode == 0, done.stdout + done.stderr


def test_a_wrong_expectation_is_found(tmp_path: Path) -> None:
    """Were the package untyped to mypy, everything would pass."""
    wrong = tmp_path / "wrong.py"
    wrong.write_text(
        "from typing import assert_type\n"
        "import polymux\n"
        "assert_type(polymux.probe('a').tags, list[str])\n"
    )
    done = check(wrong)
    assert done.returncode == 1
    assert "dict[str, str]" in done.stdout
