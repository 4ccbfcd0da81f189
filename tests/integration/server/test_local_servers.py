"""Several servers of one account: its commands find one that runs, and each by its address."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING

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
    configuration = home / f"{name}.toml"
    configuration.write_text(f'[store]\nfolder = "{home}/{name}"\n')
    command = [sys.executable, "-m", "polymux", "serve", "--port", "0"]
    process = subprocess.Popen(
        [*command, "--config", str(configuration)],
        stderr=subprocess.PIPE,
        text=True,
        env=environment(home),
    )
    try:
        assert process.stderr is not None
        said = []
        for line in process.stderr:
            said.append(line)
            if "serving on " in line:
                break
        assert "serving on " in said[-1], said
        yield said[-1].split("serving on ")[1].split(";")[0]
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


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
