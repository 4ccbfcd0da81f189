"""`polymux songs`, and identify-song and search-music with a song index."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from support.commands import call


def polymux(*words: str | Path, stdin: bytes = b"", **environment: str) -> tuple[int, str, str]:
    done = call(*words, cwd=Path.cwd(), stdin=stdin, code=None, **environment)
    return done.returncode, done.stdout.decode(), done.stderr.decode()


def test_songs_are_listed_counted_checked_exported(filled: Path, tmp_path: Path) -> None:
    code, out, _ = polymux("songs", "list", "--json", "--song-index", filled)
    listed = [json.loads(line) for line in out.splitlines()]
    assert (code, {one["title"] for one in listed}) == (0, {f"Title {n}" for n in range(4)})
    code, out, _ = polymux("songs", "stats", "--json", POLYMUX_SONG_INDEX=str(filled))
    assert (code, json.loads(out)["songs"]) == (0, 4)
    assert polymux("songs", "check", "--song-index", filled)[0] == 0
    code, out, _ = polymux("songs", "export", "--format", "csv", "--song-index", filled)
    assert (code, len(out.splitlines())) == (0, 5)
    words = ("songs", "export", "--format", "csv", "--song-index", filled)
    code, _, errors = polymux(*words, tmp_path / "old.csv")
    assert (code, "deprecated" in errors) == (0, True)
    code, _, errors = polymux(*words, "--output", tmp_path / "new.csv", "-q")
    assert (code, errors) == (0, "")
    assert (tmp_path / "new.csv").read_bytes() == (tmp_path / "old.csv").read_bytes()


def test_the_configuration_names_the_index(filled: Path, tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f'[songs]\nindex_dir = "{filled}"\n')
    code, out, _ = polymux("songs", "list", POLYMUX_CONFIG=str(file))
    assert (code, len(out.splitlines())) == (0, 4)
    file.write_text("[songs]\nindex_dir = 5\n")
    assert polymux("songs", "list", POLYMUX_CONFIG=str(file))[0] == 2


def test_songs_are_added_removed_and_scanned(
    filled_from_music: Path, tmp_path: Path, music: Path
) -> None:
    filled = filled_from_music
    code, out, _ = polymux("songs", "add", music, "--json", "--song-index", tmp_path / "new")
    assert (code, json.loads(out.splitlines()[-1])["added"]) == (0, 4), out
    assert polymux("songs", "rm", music / "song 1.mp3", "--song-index", filled)[0] == 0
    code, _, errors = polymux("songs", "rm", "99", "--song-index", filled)
    assert code == 5
    assert "99" in errors
    code, out, _ = polymux("songs", "rescan", "--json", "--song-index", filled)
    summary = json.loads(out.splitlines()[-1])
    assert (code, summary["added"], summary["unchanged"]) == (0, 1, 3)
    (music / "bad.mp3").write_text("no music")
    code, _, errors = polymux("songs", "add", music, "--song-index", filled)
    assert code == 1
    assert "bad.mp3" in errors


def test_songs_are_identified(filled: Path, snippets: list[Path]) -> None:
    code, out, _ = polymux("identify-song", snippets[2], "--song-index", filled)
    assert (code, out.split("\t")[0]) == (0, "Title 2 - Artist 2")
    code, out, _ = polymux(
        "songid", "-", "--local", "--json",
        stdin=snippets[0].read_bytes(), POLYMUX_SONG_INDEX=str(filled),
    )  # fmt: skip
    assert (code, json.loads(out)["song"]["title"]) == (0, "Title 0")
    code, out, _ = polymux("identify-song", snippets[4], "--song-index", filled)
    assert (code, out) == (5, "")
    assert polymux("identify-song", "--song-index", filled)[0] == 2
    code, _, errors = polymux("identify-song", "x", "--song-index", filled, "--server", "http://x")
    assert (code, "--server" in errors) == (2, True)


@pytest.mark.parametrize(
    ("words", "how", "option"),
    [
        (("identify-song", "x"), ("--local",), ("--timeout", "5")),
        (("search-music", "x"), ("--song-index", "."), ("--server-proxy", "http://x")),
    ],
)
def test_options_that_the_index_has_no_use_for(
    filled: Path, words: tuple[str, ...], how: tuple[str, ...], option: tuple[str, str]
) -> None:
    code, out, errors = polymux(*words, *how, *option, POLYMUX_SONG_INDEX=str(filled))
    assert (code, out) == (2, "")
    assert ("usage: " in errors, option[0] in errors) == (False, True)


def test_songs_are_searched(filled: Path, tmp_path: Path) -> None:
    code, out, _ = polymux("search-music", "titel 3", "--limit", "1", "--song-index", filled)
    assert (code, out.split("\t")[0]) == (0, "Title 3 - Artist 3")
    code, out, errors = polymux("search-music", "x", "--song-index", tmp_path / "empty")
    assert (code, out) == (0, "")
    assert errors.count("\n") == 1


def recorders(folder: Path, programs: dict[str, str]) -> str:
    folder.mkdir()
    for name, script in programs.items():
        (folder / name).write_text(f"#!/bin/sh\n{script}")
        (folder / name).chmod(0o755)
    return str(folder)


FAILS = "echo 'no such device' >&2\nexit 1\n"
HEARS = "/bin/cp '{heard}' \"$last\"\n"
#: Like recorders that run until they get SIGTERM.
GOES_ON = HEARS + "trap 'exit 0' TERM\nwhile :; do /bin/sleep 0.1; done\n"
ONLY_ALSA = 'case "$*" in *pulse*) exit 1 ;; esac\n' + HEARS


@pytest.mark.parametrize(
    "programs",
    [
        {"parecord": GOES_ON},
        {"ffmpeg": ONLY_ALSA},
        {"arecord": FAILS, "parecord": FAILS, "pw-record": GOES_ON},
        # A recorder that exits by itself has failed, whatever its exit code is.
        {"parecord": HEARS, "ffmpeg": HEARS},
    ],
)
def test_listening_with_any_recorder(
    filled: Path, tmp_path: Path, snippets: list[Path], programs: dict[str, str]
) -> None:
    def script(name: str, act: str) -> str:
        begin = f"echo \"$*\" >>'{tmp_path}/{name}.words'\nfor last; do :; done\n"
        return begin + act.format(heard=snippets[2])

    path = recorders(tmp_path / "bin", {name: script(name, act) for name, act in programs.items()})
    code, out, errors = polymux("identify-song", "--listen", "1", "--song-index", filled, PATH=path)
    assert (code, out.split("\t")[0]) == (0, "Title 2 - Artist 2"), errors
    for name in programs:
        words = (tmp_path / f"{name}.words").read_text().splitlines()
        assert all(line.endswith(".wav") for line in words)
        assert ("-t 1 " in words[-1]) == (name == "ffmpeg")


def test_listening_that_nobody_can(filled: Path, tmp_path: Path) -> None:
    words = ("identify-song", "--listen", "1", "--song-index", filled)
    code, _, errors = polymux(*words, PATH=recorders(tmp_path / "none", {}))
    assert code == 3
    assert "arecord" in errors
    names = ("arecord", "parecord", "pw-record", "ffmpeg")
    failing = {name: f"echo 'none for {name}' >&2\nexit 1\n" for name in names}
    code, _, errors = polymux(*words, PATH=recorders(tmp_path / "failing", failing))
    assert code == 1
    assert all(f"none for {name}" in errors for name in names)
    assert polymux("identify-song", "--listen", "0")[0] == 2
