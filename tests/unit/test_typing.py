"""mypy sees the public interface as it is meant."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Were the package untyped to mypy, everything would pass.
WRONG = """from typing import assert_type
import polymux
assert_type(polymux.probe('a').tags, list[str])
"""


def check(*code: Path) -> list[str]:
    """Lines of mypy about these files, in one run."""
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", *code],
        cwd=ROOT, env=os.environ | {"MYPYPATH": str(ROOT / "python")}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert f"(checked {len(code)} source files)" in done.stdout, done
    return [line for line in done.stdout.splitlines() if ": error: " in line]


def test_the_example_has_the_expected_types(tmp_path: Path) -> None:
    wrong = tmp_path / "wrong.py"
    wrong.write_text(WRONG)
    [error] = check(ROOT / "tests/typing/example.py", wrong)
    assert "wrong.py" in error
    assert "dict[str, str]" in error


def test_the_examples_of_the_clients_page_are_typed(tmp_path: Path) -> None:
    """What the page shows, a type checker takes."""
    page = (ROOT / "docs/client.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 10
    for number, block in enumerate(blocks):
        (tmp_path / f"block_{number}.py").write_text(block)
    # A page with no error at all is summed up in other words.
    (tmp_path / "wrong.py").write_text(WRONG)
    errors = check(*sorted(tmp_path.iterdir()))
    # The page does not test each member that an answer may lack for None.
    assert [one for one in errors if "None" not in one and "wrong.py" not in one] == []
