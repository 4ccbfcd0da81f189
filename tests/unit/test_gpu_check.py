"""What `scripts/gpu_check` ends with, without a GPU: the decision, and that all of it is run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
STUB = """#!/bin/sh
echo "{name} $*" >> "$TOLD"
case "{name} $*" in *"$FAILS"*) exit 1;; esac
"""


@pytest.mark.parametrize(("fails", "status"), [("nothing of it", 0), ("--shape sd15", 1)])
def test_all_of_it_is_run_and_one_failure_is_enough(
    tmp_path: Path, fails: str, status: int
) -> None:
    for name in ("scripts/gpu_check", "scripts/lib/common.sh"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("scripts/bench", ".venv/bin/python"):
        stub = tmp_path / name
        stub.parent.mkdir(parents=True, exist_ok=True)
        stub.write_text(STUB.format(name=stub.name), "utf-8")
        stub.chmod(0o755)
    told = tmp_path / "told"
    done = subprocess.run(
        [tmp_path / "scripts" / "gpu_check"],
        env={**os.environ, "TOLD": str(told), "FAILS": fails},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == status, done.stderr
    lines = [one for one in told.read_text("utf-8").splitlines() if " -c " not in one]
    assert [one.split()[0] for one in lines] == ["python", "bench", "bench"]
