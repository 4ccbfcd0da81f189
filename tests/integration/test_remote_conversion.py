"""`polymux convert-to-mp3` uses a server only with `--server`."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest
from servers import media
from support.commands import call

if TYPE_CHECKING:
    from pathlib import Path

    from servers.reference import ReferenceServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("one.wav", "two.wav"):
        (tmp_path / name).write_bytes(media.wav())
    return tmp_path


def test_no_file_leaves_this_computer_unasked(server: ReferenceServer, folder: Path) -> None:
    config = folder / "c.toml"
    config.write_text(f'base_url = "{server.url}"\n')
    call("convert-to-mp3", "one.wav", cwd=folder, server=server, POLYMUX_CONFIG=str(config))
    assert server.connections == []
    assert (folder / "one.mp3").stat().st_size > 0


def test_on_a_server(server: ReferenceServer, folder: Path) -> None:
    words = (
        "one.wav",
        "two.wav",
        "--output-dir",
        "made",
        "--bitrate",
        "128k",
        "--audio-stream",
        "0",
    )
    done = call("convert-to-mp3", *words, "--server", server.url, cwd=folder, server=server)
    assert done.stdout == b""
    for line in (r"one\.wav -> made/one\.mp3 .*1\.3 kB", r"\b2\b.*\b0\b.*\b0\b"):
        assert re.search(line, done.stderr.decode())
    assert (folder / "made/two.mp3").read_bytes() == media.mp3()
    assert server.calls[0].body.get("bitrate") == "128k"
    assert server.calls[0].body.get("stream") == "0"
    assert server.calls[1].body.file("file").file_name == "two.wav"


def test_as_json(server: ReferenceServer, folder: Path) -> None:
    words = ("one.wav", "missing.wav", "--json", "--server", server.url)
    done = call("convert-to-mp3", *words, cwd=folder, server=server, code=1)
    converted, failed, summary = [json.loads(line) for line in done.stdout.splitlines()]
    assert (converted["status"], converted["output"]) == ("converted", "one.mp3")
    assert converted["url"].startswith(f"{server.url}/media/")
    assert (failed["status"], failed["error"]["code"]) == ("failed", "input_not_found")
    assert summary == {"status": "summary", "converted": 1, "failed": 1, "skipped": 0}
    assert done.stderr == b""


def test_by_address(server: ReferenceServer, folder: Path) -> None:
    address = "https://files.example/talks/first%20talk.mp4?x=1"
    words = ("convert-to-mp3", "--server", server.url, "--url", address)
    call(*words, cwd=folder, server=server)
    assert server.calls[0].body.get("url") == address
    assert (folder / "first-talk.mp3").read_bytes() == media.mp3()
    assert call(*words, "-o", "-", cwd=folder, server=server).stdout == media.mp3()
    assert call(*words, "one.wav", cwd=folder, server=server, code=2).stderr


def test_existing_outputs(server: ReferenceServer, folder: Path) -> None:
    (folder / "one.mp3").write_bytes(b"mine")
    words = ("convert-to-mp3", "one.wav", "--server", server.url)
    assert b"--overwrite" in call(*words, cwd=folder, server=server, code=1).stderr
    call(*words, "--skip-existing", cwd=folder, server=server)
    assert server.calls == []
    assert (folder / "one.mp3").read_bytes() == b"mine"
    call(*words, "--overwrite", cwd=folder, server=server)
    assert (folder / "one.mp3").read_bytes() == media.mp3()


@pytest.mark.parametrize(
    "option", ["--abr", "--recursive", "--preset best", "--tag a=b", "--cover none",
               "--id3v2-version 4", "--input-limit streams=1", "--threads 1", "-j 1"],
)  # fmt: skip
def test_options_that_only_this_computer_has(
    server: ReferenceServer, folder: Path, option: str
) -> None:
    words = ["convert-to-mp3", "one.wav", *option.split(), "--server", server.url]
    assert b"--server" in call(*words, cwd=folder, server=server, code=2).stderr
    assert server.requests == []


def test_failures(server: ReferenceServer, folder: Path) -> None:
    """For a single input, the error sets the exit code and no output folder is created."""
    server.fail(422, "no sound in it", headers=[], times=None)
    words = ("convert-to-mp3", "--server", server.url, "one.wav")
    done = call(*words, "-o", "a/b/one.mp3", cwd=folder, server=server, code=6)
    assert b"no sound in it" in done.stderr
    assert not (folder / "a").exists()
    done = call(*words, "two.wav", cwd=folder, server=server, code=1)
    assert done.stderr.count(b"no sound in it") == 2
    assert not (folder / "one.mp3").exists()
    seen = len(server.requests)
    done = call(*words, "-o", "two.wav/one.mp3", cwd=folder, server=server, code=1)
    assert b"'two.wav'" in done.stderr
    assert len(server.requests) == seen
