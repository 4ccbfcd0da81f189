"""What `Catalogue.check` takes for damage, and what it does not."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux._util import sqlite
from polymux._util.sqlite import is_full

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@pytest.fixture
def filled(tmp_path: Path, music: Path) -> Path:
    folder = tmp_path / "catalogue"
    with polymux.Catalogue(folder) as catalogue:
        catalogue.add(music / "song 0.flac")
    return folder


@pytest.mark.parametrize("library", ["apsw", "sqlite3"])
def test_who_writes_meanwhile_is_no_damage(
    filled: Path, monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    if library == "sqlite3":
        monkeypatch.setattr(sqlite, "apsw", None)
    monkeypatch.setattr(sqlite, "_MAX_WAIT_MS", 50)
    with polymux.Catalogue(filled) as catalogue, polymux.Catalogue(filled) as other:
        assert catalogue.check().is_whole
        with other._database.transaction():
            other._database.writer.rows("UPDATE songs SET year = 1999")
            with pytest.raises(polymux.CatalogueError) as caught:
                catalogue.check()
        assert caught.value.code == "catalogue_busy"
        assert catalogue.check().is_whole


def test_a_full_disk_is_no_damage(filled: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with polymux.Catalogue(filled) as catalogue:
        rows = catalogue._database.writer.rows

        def full(statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
            if "integrity-check" in statement:
                raise is_full("of a test")
            return rows(statement, values)

        monkeypatch.setattr(catalogue._database.writer, "rows", full)
        with pytest.raises(polymux.CatalogueError) as caught:
            catalogue.check()
        assert caught.value.code == "storage_full"


def test_names_that_are_not_found_are_damage(filled: Path) -> None:
    """A song that the tables of the search by name do not have."""
    with polymux.Catalogue(filled) as catalogue:
        with catalogue._database.transaction():
            catalogue._database.writer.rows("UPDATE songs SET title_folded = 'else'")
        problems = catalogue.check().problems
        assert any("(words)" in one for one in problems)
        assert any("(trigrams)" in one for one in problems)
