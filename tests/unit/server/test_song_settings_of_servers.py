"""`[songs]` and `[song_recognition]` in a server's settings."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.runtime.build import backends_of
from polymux.server.settings.settings import ServerSettings, read_settings

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def read(folder: Path, text: str) -> ServerSettings:
    path = folder / "polymux.toml"
    path.write_text(text)
    return read_settings(path)


def test_what_is_said_is_kept(tmp_path: Path) -> None:
    text = (
        f"[songs]\ncatalogue = '{tmp_path}/music'\nempty_when_unknown = true\n"
        "min_confidence = 0.9\n"
        "[song_recognition]\nproviders = ['shazam']\n[limits]\nsong_bytes = 5\n"
    )
    settings = read(tmp_path, text)
    assert settings.songs.catalogue == tmp_path / "music"
    assert settings.songs.empty_when_unknown is True
    assert settings.songs.min_confidence == 0.9
    assert read(tmp_path, "").songs.min_confidence is None
    assert settings.song_recognition.providers == ("shazam",)
    assert settings.limits.song_bytes == 5


def test_the_catalogue_comes_before_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYMUX_CATALOGUE", str(tmp_path / "none"))
    others = "[song_recognition]\nproviders = ['shazam']\n[song_search]\nproviders = ['itunes']\n"

    def names(text: str) -> list[str]:
        made = backends_of(read(tmp_path, f"{text}{others}[engines]\n"))
        return [one.name for one in made if one.name.startswith("song")]

    assert names("") == ["song_recognition", "song_search"]
    named = f"[songs]\ncatalogue = '{tmp_path}/music'\n"
    assert names(named) == ["songs", "song_recognition", "song_search"]
