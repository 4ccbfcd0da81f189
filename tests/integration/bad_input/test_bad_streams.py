"""Streams that are nothing, noise, bombs, joined, damaged, or only rare."""

from __future__ import annotations

from typing import TYPE_CHECKING

from support.hostile_cases import each

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile import Case
    from support.hostile_check import Laboratory


@each("V01")
def test_inputs_of_a_few_bytes(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V02")
def test_files_of_other_kinds(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V03")
def test_noise(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V11")
def test_the_shortest_sounds(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V12")
def test_flac_bombs_stop_at_the_cap(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V13")
def test_silence_bombs_of_other_codecs(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V14")
def test_durations_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V15")
def test_media_without_audio(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V21")
def test_joined_streams_that_change(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V22")
def test_rare_formats(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V23")
def test_damaged_frames(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)


@each("V25")
def test_names_that_lie(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)
