"""`polymux convert-to-mp3 --server`: on a server only when the command line says so."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from servers import media
from servers.reference import ReferenceServer
from support.commands import Terminal, run

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def server() -> Iterator[ReferenceServer]:
    with ReferenceServer() as server:
        yield server


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one.wav", "two.wav"):
        (tmp_path / name).write_bytes(media.wav())
    return tmp_path


def test_no_file_leaves_this_computer_unasked(server: ReferenceServer, folder: Path) -> None:
    config = folder / "c.toml"
    config.write_text(f'base_url = "{server.url}"\n')
    run("convert-to-mp3", "one.wav", cwd=folder, server=server, POLYMUX_CONFIG=str(config))
    assert server.connections == []
    assert (folder / "one.mp3").stat().st_size > 0


def test_on_a_server(server: ReferenceServer, folder: Path) -> None:
    words = ("one.wav", "two.wav", "-o", "made", "--bitrate", "128k", "--audio-stream", "0")
    done = run("convert-to-mp3", *words, "--server", server.url, cwd=folder, server=server)
    assert done.stdout == b""
    assert done.stderr.decode() == (
        "one.wav -> made/one.mp3  (1.3 kB)\ntwo.wav -> made/two.mp3  (1.3 kB)\n"
        "2 converted, 0 failed, 0 skipped\n"
    )
    assert (folder / "made/two.mp3").read_bytes() == media.mp3()
    assert (server.calls[0].body.get("bitrate"), server.calls[0].body.get("stream")) == (
        "128k",
        "0",
    )
    assert server.calls[1].body.file("file").file_name == "two.wav"


def test_as_json(server: ReferenceServer, folder: Path) -> None:
    words = ("one.wav", "missing.wav", "--json", "--server", server.url)
    done = run("convert-to-mp3", *words, cwd=folder, server=server, code=1)
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert [line["status"] for line in lines] == ["converted", "failed", "summary"]
    assert lines[0]["output"] == "one.mp3"
    assert lines[0]["url"].startswith(f"{server.url}/media/")
    assert lines[1]["error"]["code"] == "input_not_found"
    assert lines[2] == {"status": "summary", "converted": 1, "failed": 1, "skipped": 0}
    assert done.stderr == b""


def test_by_address(server: ReferenceServer, folder: Path) -> None:
    address = "https://files.example/talks/first%20talk.mp4?x=1"
    words = ("convert-to-mp3", "--server", server.url, "--url", address)
    run(*words, cwd=folder, server=server)
    assert server.calls[0].body.get("url") == address
    assert (folder / "first-talk.mp3").read_bytes() == media.mp3()
    assert run(*words, "-o", "-", cwd=folder, server=server).stdout == media.mp3()
    assert run(*words, "one.wav", cwd=folder, server=server, code=2).stderr


def test_streams(server: ReferenceServer, folder: Path) -> None:
    words = ("convert-to-mp3", "-", "--server", server.url)
    done = run(*words, cwd=folder, server=server, stdin=media.wav())
    assert done.stdout == media.mp3()
    assert server.calls[0].body.file("file").size_bytes == len(media.wav())
    with Terminal(*words, cwd=folder, server=server) as terminal:
        terminal.wait_for("an MP3 is not written to a terminal")
        assert terminal.end() == 2


def test_existing_outputs(server: ReferenceServer, folder: Path) -> None:
    (folder / "one.mp3").write_bytes(b"mine")
    words = ("convert-to-mp3", "one.wav", "--server", server.url)
    assert b"--overwrite" in run(*words, cwd=folder, server=server, code=1).stderr
    run(*words, "--skip-existing", cwd=folder, server=server)
    assert server.calls == []
    assert (folder / "one.mp3").read_bytes() == b"mine"
    run(*words, "--overwrite", cwd=folder, server=server)
    assert (folder / "one.mp3").read_bytes() == media.mp3()


@pytest.mark.parametrize(
    "words",
    [["--abr"], ["--recursive"], ["--preset", "best"], ["--tag", "a=b"], ["--cover", "none"],
     ["--id3v2-version", "4"], ["--limit", "streams=1"], ["--threads", "1"], ["-j", "1"]],
    ids=lambda words: words[0],
)  # fmt: skip
def test_options_that_only_this_computer_has(
    server: ReferenceServer, folder: Path, words: list[str]
) -> None:
    words = ["convert-to-mp3", "one.wav", *words, "--server", server.url]
    assert b"without --server" in run(*words, cwd=folder, server=server, code=2).stderr
    assert server.requests == []


def test_one_failure_gives_its_code(server: ReferenceServer, folder: Path) -> None:
    server.fail(422, "no sound in it", headers=[], times=None)
    words = ("convert-to-mp3", "--server", server.url, "one.wav")
    assert b"no sound in it" in run(*words, cwd=folder, server=server, code=6).stderr
    assert b"2 failed" in run(*words, "two.wav", cwd=folder, server=server, code=1).stderr
    assert not (folder / "one.mp3").exists()


def test_folders_for_outputs(server: ReferenceServer, folder: Path) -> None:
    server.fail(422, headers=[], times=None)
    words = ("convert-to-mp3", "--server", server.url, "one.wav", "-o")
    run(*words, "a/b/one.mp3", cwd=folder, server=server, code=6)
    assert not (folder / "a").exists()
    done = run(*words, "two.wav/one.mp3", cwd=folder, server=server, code=1)
    assert b"cannot write into 'two.wav'" in done.stderr
    assert len(server.requests) == 1
