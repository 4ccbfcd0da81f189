"""Containers whose headers, tables and tags lie."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.hostile_cases import each

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile import Case
    from support.hostile_check import Laboratory


@each("V04")
def test_mp4_cut_short(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V05")
def test_mp4_atoms_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V06")
def test_mp4_tables_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V08")
def test_id3_tags_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V09")
def test_wav_sizes_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V10")
def test_wav_formats_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V16")
def test_too_many_streams_chapters_and_tags(
    case: Case, laboratory: Laboratory, tmp_path: Path
) -> None:
    laboratory.check(case, tmp_path)


@each("V24")
def test_encrypted_media(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V31")
def test_matroska_elements_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V32")
def test_polyglots(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)
