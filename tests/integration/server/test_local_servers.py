"""Several servers of one account: its commands find one that runs, and each by its address."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

from support.serving import ServedProgram

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CODE = """
import polymux, sys
from polymux.config import configuration
polymux.Client(*sys.argv[1:]).predictions.list()
print(configuration(*sys.argv[1:]).base_url)
"""


def environment(home: Path) -> dict[str, str]:
    kept = {name: one for name, one in os.environ.items() if not name.startswith("POLYMUX_")}
    return kept | {"HOME": str(home), "XDG_STATE_HOME": str(home / "state")}


@contextmanager
def serving(home: Path, name: str) -> Iterator[str]:
    """A server with keys and a store of its own; its address."""
    folder = home / name
    with ServedProgram(folder, f'[store]\nfolder = "{folder}/store"\n', whole=True) as program:
        yield program.start(environment=environment(home)).url
        assert program.stop() == 0


def found(home: Path, *address: str) -> str:
    """The server that a program of this account finds, by its address or without."""
    command = [sys.executable, "-c", CODE, *address]
    done = subprocess.run(
        command, env=environment(home), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_each_is_found(tmp_path: Path) -> None:
    with serving(tmp_path, "one") as one:
        assert found(tmp_path) == one
        with serving(tmp_path, "two") as two:
            # The one that was started last; the other by its address.
            assert found(tmp_path) == two
            assert [found(tmp_path, each) for each in (one, two)] == [one, two]
        assert found(tmp_path) == one
    place = tmp_path / "state" / "polymux" / "local-key"
    assert place.stat().st_mode & 0o777 == 0o600
    # Started again, somewhere else, each has the key that it had.
    for name in ("one", "two", "one"):
        with serving(tmp_path, name) as again:
            assert found(tmp_path) == found(tmp_path, again) == again
