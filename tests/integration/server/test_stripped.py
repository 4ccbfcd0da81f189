"""P09: nothing of the server's security is an assertion, which ``python -O`` leaves out."""

from __future__ import annotations

import os
import subprocess
import sys

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
OTHERS = ("tests/integration/lifecycle", "tests/integration/engines/test_supervisor.py",
          "tests/integration/engines/test_media_engines.py",
          f"{FOLDER}/test_large_headers.py", f"{FOLDER}/test_wrong_keys.py",
          f"{FOLDER}/test_crowds.py", f"{FOLDER}/test_slow_readers.py",
          f"{FOLDER}/test_readers_of_files.py", f"{FOLDER}/test_pictures.py",
          f"{FOLDER}/test_faces.py", f"{FOLDER}/test_program.py", f"{FOLDER}/test_tls.py",
          f"{FOLDER}/test_tracing.py")  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize(
    "paths",
    [
        tuple(f"{FOLDER}/{name}" for name in SELECTED),
        pytest.param((*UNITS, *OTHERS), marks=pytest.mark.long),
    ],
    ids=["quick", "others"],
)
def test_the_server_without_assertions(paths: tuple[str, ...]) -> None:
    """The same tests, against a package that was compiled without them."""
    command = [sys.executable, "-m", "pytest", "-q", "-p", "support.stripped", "-p",
               "no:cacheprovider", *paths]  # fmt: skip
    done = subprocess.run(
        command,
        cwd=TESTS.parent,
        env={**os.environ, "PYTHONPATH": os.fspath(TESTS)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=3600,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert " passed" in done.stdout
