"""mypy sees the public interface as it is meant."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def check(*code: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", *code],
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


def test_the_examples_of_the_clients_page_are_typed(tmp_path: Path) -> None:
    """What the page shows, a type checker takes."""
    page = (ROOT / "docs/client.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 10
    for number, block in enumerate(blocks):
        (tmp_path / f"block_{number}.py").write_text(block)
    done = check(*sorted(tmp_path.iterdir()))
    # The page does not test each member that an answer may lack for None.
    wrong = [one for one in done.stdout.splitlines() if ": error: " in one and "None" not in one]
    assert not wrong
    assert done.stdout.splitlines()[-1].endswith(f"(checked {len(blocks)} source files)"), done
