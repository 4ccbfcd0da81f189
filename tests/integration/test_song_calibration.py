"""`python -m benchmarks.song calibrate` on a small library of real files."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest
from support import generated_songs, programs

sys.path.append(str(Path(__file__).resolve().parents[2]))

from benchmarks.song import __main__ as command
from benchmarks.song import scorer
from benchmarks.song.basis import WEIGHTS

LENGTH_S = 16.0
KINDS = ("wav", "mp3", "flac", "ogg", "m4a")


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five recordings in five formats, a duplicate, and files that calibration must skip."""
    folder = tmp_path_factory.mktemp("library")
    for seed, kind in enumerate(KINDS):
        generated_songs.song(folder / "all" / f"{seed} \u00e4 'song.{kind}", 300 + seed, LENGTH_S)
    programs.ffmpeg("-i", folder / "all" / "2 \u00e4 'song.flac", folder / "copy.opus")
    generated_songs.song(folder / "jingle.wav", 400, 4.0)
    (folder / "text.mp3").write_text("no music at all\n" * 100)
    (folder / "gone.mp3").symlink_to(folder / "nowhere")
    return folder


def columns(text: str, heading: str) -> list[list[str]]:
    table = text[text.index(f"| {heading} |") :].split("\n\n")[0]
    return [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]


def test_a_library_of_real_files_is_tried(
    library: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = tmp_path / "rows.jsonl"
    command.main(["calibrate", str(library), "--each", "1", "--seed", "3", "--rows", str(kept)])
    captured = capsys.readouterr()
    counts = re.match(r"(\d+)\b\D+(\d+)\b\D+(\d+)\b", captured.out)
    assert counts is not None
    inside, outside, snippets = (int(one) for one in counts.groups())
    assert (inside + outside, snippets) == (6, 6 * 3)
    assert re.search(r"jingle\.wav.*\b4\.0 s\b", captured.err)
    assert "text.mp3" in captured.err

    rows = scorer.load(kept)
    assert len(rows) == snippets
    assert not any(row.error for row in rows)
    clean = [row for row in rows if row.inside and row.condition == "clean"]
    assert clean
    assert all(row.right for row in clean)
    assert all(row.song is not None for row in clean if row.seconds >= 5)
    # No snippet of a held-out song may match, because the index contains no copy of it.
    assert outside
    assert {row.kind for row in rows if not row.inside} == {"other songs"}
    assert not any(row.right or row.song for row in rows if not row.inside)

    binned = columns(captured.out, "confidence")
    assert sum(int(one[1]) for one in binned) <= snippets
    assert int(binned[-1][1]) >= int(binned[-1][2]) > 0
    choices = columns(captured.out, "least confidence")
    assert [one[0] for one in choices if one[0] in {"0.5", "0.85"}] == ["0.5", "0.85"]
    recalls = [float(one[1]) for one in choices]
    assert recalls == sorted(recalls, reverse=True)
    assert {one[3].split(" of ")[1] for one in choices} == {str(outside * 3)}

    # Weights can be fitted to the saved results.
    command.main(["fit", str(kept)])
    fitted = capsys.readouterr().out
    assert all(f"| {name} |" in fitted for name in WEIGHTS)
