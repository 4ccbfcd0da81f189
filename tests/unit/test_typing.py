from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
#: Pages whose examples are checked.
PAGES = (
    "README", "docs/guides/python-client", "docs/guides/files-and-jobs",
    "docs/guides/timeouts-and-retries", "docs/guides/proxies-and-threads",
)  # fmt: skip
#: If mypy ignored the package's types, it would report no error here.
WRONG = """from typing import assert_type
import polymux
assert_type(polymux.probe('a').tags, list[str])
"""


def test_examples_have_the_expected_types(tmp_path: Path) -> None:
    text = "\n".join((ROOT / f"{name}.md").read_text() for name in PAGES)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(blocks) > 10
    for number, block in enumerate([WRONG, *blocks]):
        (tmp_path / f"block_{number}.py").write_text(block)
    code = [ROOT / "tests/typing/example.py", *tmp_path.iterdir()]
    done = subprocess.run(
        # With the options of scripts/lint, mypy reuses its cache.
        [sys.executable, "-m", "mypy", "--strict", "--config-file", ROOT / "pyproject.toml", *code],
        cwd=ROOT, env=os.environ | {"MYPYPATH": "python"}, capture_output=True,
        text=True, check=False, timeout=300,
    )  # fmt: skip
    assert f"(checked {len(code)} source files)" in done.stdout, done
    # The page does not compare optional members with None.
    [error] = [one for one in done.stdout.splitlines() if ": error: " in one and "None" not in one]
    assert "block_0.py" in error
    assert "dict[str, str]" in error
