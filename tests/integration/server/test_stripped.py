"""P09: nothing of the server's security is an assertion, which ``python -O`` leaves out."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from support.supervised import TESTS

FOLDER = "tests/integration/server"
#: Keys, hosts, framing, forms, uploads, links, deadlines, fields.
SELECTED = ("test_routes.py", "test_answers.py", "test_forms.py", "test_lives.py",
            "test_peers.py", "test_uploads.py", "test_router.py")  # fmt: skip


@pytest.mark.slow
def test_the_server_without_assertions() -> None:
    """The same tests, against a package that was compiled without them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.stripped", "-p",
               "no:cacheprovider", *(f"{FOLDER}/{name}" for name in SELECTED)]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": os.fspath(TESTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
