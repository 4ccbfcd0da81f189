"""Several servers of one account: programs find a running server, and each by its URL."""

from __future__ import annotations

import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

import polymux
from polymux.config import configuration
from support.serve_command import ServeCommand

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    import pytest


@contextmanager
def serving(home: Path, name: str) -> Iterator[str]:
    """Run a server with its own keys and store. Returns its URL."""
    folder = home / name
    with ServeCommand(folder, f'[store]\nfolder = "{folder}/store"\n', whole=True) as program:
        yield program.start(environment=os.environ).url
        assert program.stop() == 0


def found(*address: str) -> str:
    """The server that a program of this account finds, with or without a given URL."""
    with polymux.Client(*address) as client:
        assert list(client.predictions.list()) == []
    return configuration(*address).base_url


def test_each_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [one for one in os.environ if one.startswith("POLYMUX_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with serving(tmp_path, "one") as one:
        assert found() == one
        with serving(tmp_path, "two") as two:
            # Without a URL, the server that started last.
            assert found() == two
            assert [found(each) for each in (one, two)] == [one, two]
        assert found() == one
    place = tmp_path / "state" / "polymux" / "local-key"
    assert place.stat().st_mode & 0o777 == 0o600
