"""P09: nothing of the server's security is an assertion, which ``python -O`` leaves out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support.supervised import TESTS

FOLDER = "tests/integration/server"
#: Keys, hosts, framing, forms, uploads, links, deadlines, fields: what is over soon.
SELECTED = ("test_routes.py", "test_authentication.py", "test_answers.py", "test_forms.py",
            "test_lives.py", "test_peers.py", "test_uploads.py", "test_router.py",
            "test_fields.py", "test_odd_requests.py", "test_small_promises.py",
            "test_links_over_time.py", "test_keys_command.py")  # fmt: skip
UNITS = ("tests/unit/server", "tests/unit/service")
#: What takes too long for every change.
OTHERS = ("tests/integration/lifecycle", "tests/integration/doors",
          "tests/integration/engines/test_supervisor.py",
          "tests/integration/engines/test_media_engines.py",
          *(f"{FOLDER}/{path.name}" for path in sorted(Path(__file__).parent.glob("test_*.py"))
            if path.name not in (*SELECTED, Path(__file__).name)))  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "paths",
    [
        tuple(f"{FOLDER}/{name}" for name in SELECTED),
        pytest.param((*UNITS, *OTHERS), marks=pytest.mark.long),
    ],
    ids=["quick", "others"],
)
def test_the_server_without_assertions(paths: tuple[str, ...], tmp_path: Path) -> None:
    """The same tests, against a package that was compiled without them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.stripped", "-p",
               "no:cacheprovider", *paths]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=TESTS.parent,
        # It shuts the folder that its temporary ones are in to others, and some tests need it open.
        env={**os.environ, "PYTHONPATH": os.fspath(TESTS), "PYTEST_DEBUG_TEMPROOT": str(tmp_path)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
