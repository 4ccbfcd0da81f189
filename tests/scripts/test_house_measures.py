"""The measures of the package, on a small tree whose figures are known."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "scripts/checks/house_measures.py"

LAYERS = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["cli", "(engines) : service", "_util"]
"""
FILES = {
    "pyproject.toml": LAYERS,
    "scripts/generate": "#!/bin/sh\necho python/polymux/cli/made.py\n",
    "python/polymux/__init__.py": "from polymux.cli import run\n",
    "python/polymux/_media.pyi": "x: int\n" * 1500,
    "python/polymux/old.py": "",
    # A cycle of three files, one import of it in a function and one under TYPE_CHECKING.
    "python/polymux/_util/text.py": "def f():\n    import json\n"
    "    from polymux.service import jobs\n",
    "python/polymux/service/__init__.py": "",
    "python/polymux/service/jobs.py": "from typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n    from . import store\n",
    "python/polymux/service/store.py": "from polymux._util.text import f\nimport polymux\n",
    "python/polymux/engines/table.py": 'T = {"chat": 1, "speech": 2, "diffusion": 3}\n',
    "python/polymux/engines/two.py": 'T = {"chat": 1, "speech": 2}\n',
    "python/polymux/cli/__init__.py": "from polymux import _media\n",
    "python/polymux/cli/made.py": "x = 1\n" * 70,
    "python/polymux/cli/__pycache__/made.pyc": "",
    "python/polymux/page/app.js": "a\n" * 5000,
    "tests/test_a.py": "x = 1\n" * 9,
    "tests/data.json": "{}\n",
}


def test_known_figures(tmp_path: Path) -> None:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    (tmp_path / "scripts/generate").chmod(0o755)
    command = [sys.executable, str(SCRIPT), str(tmp_path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)
    rows = dict(line.strip("| ").split(" | ", 1) for line in done.stdout.splitlines()[2:])
    # Hand-written: 1 line of the package's __init__, 3 of _util, 5 of service, 2 of engines, 1 of
    # cli, and 4 lines of the stub beyond the 1,496 that were there before.
    assert rows["entries at the top of `python/polymux`"] == "8"
    assert rows["Python modules"] == "10"
    assert rows["largest import cycle"] == "3 files; between folders 3"
    assert rows["upward imports"] == "2; 1 modules not placed"
    assert rows["in-function imports"] == "1"
    assert rows["hand-written Python lines in the package"] == "16"
    assert rows["test lines, tests' wall time"].startswith("10; ")
    assert rows["engine tables"] == "1"
