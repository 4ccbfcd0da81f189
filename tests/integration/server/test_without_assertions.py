"""No security check of the server is an assertion, because ``python -O`` removes those (P09)."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.supervised_engine import TESTS

FOLDER = "tests/integration/server"
#: Checks of keys, hosts, origins and links.
SELECTED = ("-k", "not foreign", f"{FOLDER}/test_authentication.py",
            f"{FOLDER}/test_host_header.py",
            f"{FOLDER}/test_link_expiry.py::test_unknown_files_are_all_alike")  # fmt: skip
#: Slow tests, which do not run for every change.
OTHERS = ("tests/unit/server", "tests/unit/service", "tests/integration/lifecycle",
          "tests/integration/compat", "tests/integration/engines/test_supervisor.py",
          "tests/integration/engines/test_media_engines.py",
          *(f"{FOLDER}/{path.name}" for path in sorted(Path(__file__).parent.glob("test_*.py"))
            if path.name != Path(__file__).name))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "paths",
    [SELECTED, pytest.param(OTHERS, marks=pytest.mark.long)],
    ids=["quick", "others"],
)
def test_the_server_without_assertions(paths: tuple[str, ...], tmp_path: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.without_assertions", "-p",
               "no:cacheprovider", *paths]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=TESTS.parent,
        # pytest makes its temporary root private, but some tests need it readable.
        env={**os.environ, "PYTHONPATH": os.fspath(TESTS), "PYTEST_DEBUG_TEMPROOT": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
