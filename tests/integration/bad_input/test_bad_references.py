"""Files that name other files or hosts: nothing they name is ever opened."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.hostile_cases import each

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile import Case
    from support.hostile_check import Laboratory


@each("V17")
def test_hls_playlists(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V18")
def test_concat_scripts(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V19")
def test_manifests_and_carried_playlists(
    case: Case, laboratory: Laboratory, tmp_path: Path
) -> None:
    laboratory.check(case, tmp_path)


@each("V20")
def test_pictures_and_terminal_art(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)
