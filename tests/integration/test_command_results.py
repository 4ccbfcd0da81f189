"""Commands keep their results if a file cannot be downloaded or written."""

from __future__ import annotations

import json
import os
import re
from typing import TYPE_CHECKING

import pytest
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.commands import call

if TYPE_CHECKING:
    from pathlib import Path

    from servers.reference import ReferenceServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "talk.wav").write_bytes(media.wav())
    return tmp_path


def test_a_transcript_that_cannot_be_written_is_not_asked_for(
    server: ReferenceServer, folder: Path
) -> None:
    (folder / "folder").mkdir()
    (folder / "link").symlink_to("talk.wav")
    words = ("transcribe", "talk.wav", "--overwrite", "-o")
    for name, word in (("none/x.txt", b"none"), ("folder", b"folder"), ("link", b"link")):
        assert word in call(*words, name, cwd=folder, server=server, code=1).stderr
    assert not server.calls
    assert sorted(os.listdir(folder)) == ["folder", "link", "talk.wav"]  # noqa: PTH208


def test_a_transcript_that_cannot_be_written_any_more_is_printed(folder: Path) -> None:
    """The output folder is removed while the server works."""
    body = json.dumps({"id": "a", "status": "succeeded", "output": {"text": "Ask not"}}).encode()
    (folder / "gone").mkdir()
    with MisbehavingServer() as server:

        async def removed(_: object) -> None:
            (folder / "gone").rmdir()

        server.script(steps.Step(removed), steps.answer(200, body))
        words = ("transcribe", "talk.wav", "-o", "gone/x.txt")
        done = call(*words, cwd=folder, server=server, code=1)
    assert done.stdout == b"Ask not\n"
    assert b"gone/x.txt" in done.stderr


def test_a_transcript_to_standard_output(server: ReferenceServer, folder: Path) -> None:
    """ "-" means standard output, as in `convert-to-mp3 -o -`, and never a file name."""
    words = ("transcribe", "talk.wav", "-o", "-", "--overwrite")
    assert call(*words, cwd=folder, server=server).stdout == b"This is a test.\n"
    assert os.listdir(folder) == ["talk.wav"]  # noqa: PTH208


@pytest.mark.parametrize("as_json", [False, True])
def test_a_file_that_is_gone_keeps_no_other_from_being_saved(
    server: ReferenceServer, folder: Path, *, as_json: bool
) -> None:
    server.fail(404, path="/media/000001-1.png")
    words = ["generate-image", "x", "--num-outputs", "3", "--output-dir", "d"]
    done = call(*words, *(["--json"] * as_json), cwd=folder, server=server, code=5)
    assert len(os.listdir(folder / "d")) == 2  # noqa: PTH208
    assert f"{server.url}/media/000001-1.png?exp=".encode() in done.stderr
    assert not re.search(rb"000001-[02]\.png", done.stderr)
    assert len(re.findall(rb"\b404\b", done.stderr)) == 1
    if not as_json:
        assert done.stdout.splitlines() == [b"d/x.png", b"d/x-2.png"]


@pytest.mark.parametrize("end", ["", "/", "/api/v1", "/api/v1/"])
def test_a_server_below_a_path(folder: Path, end: str) -> None:
    """Every form of the server URL keeps the prefix. File downloads have no API key."""
    with MisbehavingServer() as server:
        made = {"id": "a", "status": "succeeded", "output": [f"{server.url}/pre/a.png"]}
        server.script(steps.answer(200, json.dumps(made).encode()))
        server.script(steps.answer(200, b"a picture", content_type="image/png"))
        words = ("generate-image", "x", "--server", f"{server.url}/pre{end}", "--output-dir", "d")
        call(*words, cwd=folder, POLYMUX_API_KEY="a-key")
        assert (folder / "d/x.png").read_bytes() == b"a picture"
        assert [(one.path, one.header("authorization")) for one in server.requests] == [
            ("/pre/api/v1/modelhost/imagegeneration", "Bearer a-key"), ("/pre/a.png", None),
        ]  # fmt: skip
