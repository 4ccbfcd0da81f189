"""Engines that are named by module and class in the settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.errors import InvalidRequestError
from polymux.runtime.build import backends_of
from polymux.server.auth.api_keys import KeyFile
from polymux.server.settings.settings import read_settings

if TYPE_CHECKING:
    from pathlib import Path

OWN = '[engines.mine]\nfamily = "mine.engines:MyEngine"\n'


def test_it_does_what_it_is_said_to_do(tmp_path: Path) -> None:
    path = tmp_path / "polymux.toml"
    path.write_text(f'{OWN}operations = ["chat", "generate_image"]\nmax_concurrency = 3\n')
    backend, *_ = backends_of(read_settings(path))
    assert (backend.name, backend.max_concurrency) == ("mine", 3)
    assert backend.operations == {"chat", "generate_image"}


@pytest.mark.parametrize(
    ("more", "words"),
    [("", "operations is missing"), ('operations = ["juggle"]\n', "unknown operation 'juggle'")],
)
def test_what_is_missing_or_wrong_is_told(tmp_path: Path, more: str, words: str) -> None:
    path = tmp_path / "polymux.toml"
    path.write_text(OWN + more)
    with pytest.raises(InvalidRequestError, match=words):
        read_settings(path)


def test_a_key_counts_when_its_owner_has_it(tmp_path: Path) -> None:
    """What cannot be told is not kept; what a process that was killed has left is removed."""
    file = KeyFile(tmp_path / "keys.json")
    left = tmp_path / ".keys.json.0123abcd.part"
    left.touch()

    def fail(text: str) -> None:
        assert file.keys() == ()
        raise OSError(text)

    with pytest.raises(OSError, match="pmx_"):
        file.add("local", before=fail)
    assert file.keys() == ()
    assert not left.exists()
    told: list[str] = []
    text, _ = file.add("local", before=told.append)
    assert told == [text]
