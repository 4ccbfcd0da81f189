"""Containers, streams and references that lie: every invariant holds after each of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import hostile_cases

if TYPE_CHECKING:
    from pathlib import Path

    from support.hostile import Case
    from support.hostile_check import Laboratory

KINDS = {
    "V01": "inputs of a few bytes",
    "V02": "files of other kinds",
    "V03": "noise",
    "V04": "MP4 cut short",
    "V05": "MP4 atoms that lie",
    "V06": "MP4 tables that lie",
    "V08": "ID3 tags that lie",
    "V09": "WAV sizes that lie",
    "V10": "WAV formats that lie",
    "V11": "the shortest sounds",
    "V12": "FLAC bombs",
    "V13": "silence bombs of other codecs",
    "V14": "durations that lie",
    "V15": "media without audio",
    "V16": "too many streams, chapters and tags",
    "V17": "HLS playlists",
    "V18": "concat scripts",
    "V19": "manifests and carried playlists",
    "V20": "pictures and terminal art",
    "V21": "joined streams that change",
    "V22": "rare formats",
    "V23": "damaged frames",
    "V24": "encrypted media",
    "V25": "names that lie",
    "V31": "Matroska elements that lie",
    "V32": "polyglots",
}


@pytest.mark.parametrize("case", [case for one in KINDS for case in hostile_cases.of(one)], ids=str)
def test_invariants(case: Case, laboratory: Laboratory, tmp_path: Path) -> None:
    laboratory.check(case, tmp_path)
