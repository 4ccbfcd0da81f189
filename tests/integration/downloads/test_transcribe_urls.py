"""Transcription of URLs with a real model: a media file, and a page that shows it."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from support import programs
from support.commands import run
from support.media_url_server import allowing
from support.polymux_server import PolymuxServer, form
from support.video_site import Site
from support.weights import whisper

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Server

STT = "/api/v1/modelhost/stt"
SENTENCE = "The weather is fine today."
HEARD = {"fine", "today"}


@pytest.fixture(scope="module")
def speaking(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("speaking")
    sound = folder / "speech.wav"
    subprocess.run(["espeak-ng", "-s", "140", "-w", str(sound), SENTENCE], check=True)
    programs.ffmpeg(
        "-f", "lavfi", "-i", "testsrc=size=192x144:rate=10", "-i", sound, "-c:v", "mpeg4",
        "-c:a", "aac", "-shortest", folder / "speech.mp4",
    )  # fmt: skip
    with Site(folder).server() as running:
        yield running


@pytest.fixture(scope="module")
def engines(tmp_path_factory: pytest.TempPathFactory) -> dict[str, EngineSettings]:
    model = whisper(tmp_path_factory.mktemp("model"))
    speech = {"model": str(model), "compute": "int8", "beam": 1}
    return {
        "media": EngineSettings("media", threads=1),
        "speech": EngineSettings("speech", speech, threads=1),
    }


def test_every_way_in(speaking: Server, engines: dict[str, EngineSettings], tmp_path: Path) -> None:
    file, page = speaking.url("/speech.wav"), speaking.url("/silent/speech.mp4")
    policy = allowing(speaking)
    with PolymuxServer(tmp_path / "s", engines=engines, fetch=policy) as server:
        server.answer_within_s = 120.0
        body, headers = form(("url", file), ("language", "en"))
        answer = server.ask("POST", STT, body, headers)
        assert answer.status == 200, answer.body
        assert heard(answer.json()["output"]["text"]) >= HEARD

        with polymux.Client(server.url, server.key) as client:
            assert heard(client.transcribe(url=page, language="en").text) >= HEARD
        given = {"POLYMUX_BASE_URL": server.url, "POLYMUX_API_KEY": server.key}
        words = ["transcribe", "--url", file, "--language", "en", "--format", "json"]
        done = run(*words, cwd=tmp_path, **given)
        assert json.loads(done.stdout)["text"] == answer.json()["output"]["text"]
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


def heard(text: str) -> set[str]:
    return set(text.lower().strip(" .").split())
