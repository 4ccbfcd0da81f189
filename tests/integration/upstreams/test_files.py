"""Transcriptions and images with an upstream that has the OpenAI API."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest
from polymux.fetch.fetcher import FetchPolicy
from servers import media, steps
from servers.forms import body_of
from servers.misbehaving import MisbehavingServer
from support.polymux_server import form
from support.upstreams import CANARY, IMAGES, STT, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Answer, PolymuxServer

SOUND = b"RIFF....WAVE and samples"
SPEECH = "turian/insanely-fast-whisper-with-video"
LIGHTNING = "bytedance/sdxl-lightning-4step"
MODELS = {SPEECH: "whisper-large-v3", LIGHTNING: "their-painter"}
VERBOSE: dict[str, Any] = {
    "task": "transcribe", "language": "german", "duration": 2.5, "text": " Guten Tag.",
    "segments": [{"id": 0, "start": 0.0, "end": 1.0, "text": " Guten", "avg_logprob": -0.1},
                 {"id": 1, "start": 1.0, "end": None, "text": " Tag."}],
    "words": [{"word": "Guten", "start": 0.1, "end": 0.9}, {"word": "Tag.", "start": 1, "end": 2}],
    "x_groq": {"id": "req_1"},
}  # fmt: skip
PNG = media.png(8, 8)


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("files")
    operations = ("transcribe", "generate_image")
    made = upstream(
        folder, bad.url, models=MODELS, operations=operations, image_fields=("seed",), total_s=5
    )
    with gateway(folder, {"groq": made}) as running:
        yield running


def transcribed(server: PolymuxServer, *fields: tuple[str, str]) -> Answer:
    body, head = form(("audio", ("Rede.mp3", SOUND)), *fields)
    return server.ask("POST", STT, body, head)


def answers(value: Any) -> steps.Step:
    return steps.answer(200, json.dumps(value).encode())


def received(bad: MisbehavingServer) -> tuple[dict[str, str], bytes, str]:
    """The fields, file and file name of the last form."""
    body = body_of(bad.requests[-1])
    [file] = body.files
    return dict(body.fields), file.content, file.file_name


def test_a_transcription(server: PolymuxServer, bad: MisbehavingServer) -> None:
    bad.script(answers(VERBOSE))
    answer = transcribed(server, ("language", "German"), ("batch_size", "24"))
    assert answer.status == 200
    prediction = answer.json()
    assert prediction["output"] == {
        "text": "Guten Tag.",
        "chunks": [
            {"text": " Guten", "timestamp": [0.0, 1.0]},
            {"text": " Tag.", "timestamp": [1.0, None]},
        ],
        "language": "de",
    }
    assert prediction["metrics"]["audio_seconds"] == 2.5
    assert "batch_size" in prediction["logs"]
    fields, content, name = received(bad)
    assert fields == {
        "model": "whisper-large-v3",
        "response_format": "verbose_json",
        "language": "de",
        "timestamp_granularities[]": "segment",
    }
    assert (content, name) == (SOUND, "Rede.mp3")
    request = bad.requests[-1]
    assert request.path == "/v1/audio/transcriptions"
    assert request.header("authorization") == f"Bearer {CANARY}"
    assert request.header("content-length") is not None


def test_words(server: PolymuxServer, bad: MisbehavingServer) -> None:
    bad.script(answers(VERBOSE))
    prediction = transcribed(server, ("timestamp", "word")).json()
    assert prediction["output"]["chunks"] == [
        {"text": "Guten", "timestamp": [0.1, 0.9]},
        {"text": " Tag.", "timestamp": [1, 2]},
    ]
    assert "timestamp" not in prediction["output"]
    assert received(bad)[0]["timestamp_granularities[]"] == "word"
    for words in (None, []):
        bad.script(answers({**VERBOSE, "words": words}))
        prediction = transcribed(server, ("timestamp", "word")).json()
        assert [one["text"] for one in prediction["output"]["chunks"]] == [" Guten", " Tag."]
        assert prediction["output"]["timestamp"] == "chunk"
        assert "timestamp" in prediction["logs"]
    bad.script(answers({"text": "Hello"}))
    prediction = transcribed(server).json()
    assert prediction["output"]["chunks"] == [{"text": "Hello", "timestamp": [0.0, None]}]
    assert prediction["output"]["timestamp"] == "none"
    assert "timestamp" in prediction["logs"]
    bad.script(answers({"text": "", "words": [], "segments": []}))
    prediction = transcribed(server, ("timestamp", "word")).json()
    assert prediction["output"] == {"text": "", "chunks": []}


def test_a_model_that_tells_no_times(bad: MisbehavingServer, tmp_path: Path) -> None:
    """Plain text is requested. Missing timestamps: a warning, or an error if they are needed."""
    made = upstream(
        tmp_path, bad.url, models={SPEECH: "text-only"}, operations=("transcribe",),
        transcript_format="json",
    )  # fmt: skip
    with gateway(tmp_path, {"groq": made}) as server:
        bad.script(answers({"text": " Hello."}))
        prediction = transcribed(server, ("language", "en")).json()
        assert prediction["output"] == {
            "text": "Hello.",
            "chunks": [{"text": " Hello.", "timestamp": [0.0, None]}],
            "timestamp": "none",
        }
        assert "timestamp" in prediction["logs"]
        fields, _, _ = received(bad)
        assert fields == {"model": "text-only", "response_format": "json", "language": "en"}
        before = len(bad.requests)
        refused = transcribed(server, ("timestamp", "word"))
        assert (refused.status, refused.json()["param"]) == (501, "timestamp")
        assert len(bad.requests) == before


def test_a_translation(server: PolymuxServer, bad: MisbehavingServer) -> None:
    bad.script(answers(VERBOSE))
    prediction = transcribed(server, ("task", "translate"), ("language", "de")).json()
    assert prediction["status"] == "succeeded"
    assert "language" in prediction["logs"]
    assert bad.requests[-1].path == "/v1/audio/translations"
    assert received(bad)[0] == {"model": "whisper-large-v3", "response_format": "verbose_json"}
    before = len(bad.requests)
    answer = transcribed(server, ("task", "translate"), ("timestamp", "word"))
    assert (answer.status, answer.json()["param"]) == (501, "timestamp")
    assert len(bad.requests) == before


def test_a_recording_at_an_address(bad: MisbehavingServer, tmp_path: Path) -> None:
    """The gateway downloads the URL and forwards the file."""
    bad.script(answers(VERBOSE))
    made = upstream(tmp_path, bad.url, models={SPEECH: "whisper-1"}, operations=("transcribe",))
    with MisbehavingServer() as site:
        site.script(steps.answer(200, SOUND, content_type="audio/wav"), path="/a/talk.wav")
        policy = FetchPolicy(allowed_hosts=(f"127.0.0.1:{site.port}",))
        with gateway(tmp_path, {"groq": made}, fetch=policy) as server:
            body, head = form(("url", f"{site.url}/a/talk.wav"))
            answer = server.ask("POST", STT, body, head)
            assert (answer.status, answer.json()["output"]["text"]) == (200, "Guten Tag.")
            body, head = form(("url", f"{bad.url}/a/talk.wav"))
            refused = server.ask("POST", STT, body, head)
            assert (refused.status, refused.json()["code"]) == (400, "url_refused")
        [request] = site.requests
        assert request.header("authorization") is None
    assert received(bad)[1:] == (SOUND, "talk.wav")


@pytest.mark.parametrize(
    "value",
    [
        None, {"text": None}, {"segments": []}, {**VERBOSE, "segments": {"a": 1}},
        {**VERBOSE, "segments": [3]}, {**VERBOSE, "segments": [{"text": "x", "start": "0"}]},
        {**VERBOSE, "segments": [{"text": "x", "start": 0, "end": 1 << 70}]},
    ],
)  # fmt: skip
def test_what_is_no_transcript(server: PolymuxServer, bad: MisbehavingServer, value: Any) -> None:
    bad.script(answers(value))
    answer = transcribed(server)
    assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")


def drawn(server: PolymuxServer, **given: Any) -> Answer:
    asked = {"prompt": "a lighthouse", **given}
    return server.json(f"{IMAGES}?model={LIGHTNING}", asked)


def fetched(server: PolymuxServer, url: str) -> Answer:
    return server.ask("GET", url.removeprefix(server.url), key=None)


def test_pictures(server: PolymuxServer, bad: MisbehavingServer) -> None:
    encoded = base64.b64encode(PNG).decode()
    bad.script(answers({"created": 1, "data": [{"b64_json": encoded}, {"b64_json": encoded}]}))
    answer = drawn(
        server, num_outputs=2, width=512, height=768, seed=7, scheduler="DDIM", guidance_scale=2
    )
    prediction = answer.json()
    assert json.loads(bad.requests[-1].body) == {
        "model": "their-painter", "prompt": "a lighthouse", "n": 2, "size": "512x768",
        "response_format": "b64_json", "seed": 7,
    }  # fmt: skip
    assert {line.partition(":")[0] for line in prediction["logs"].split("\n")} == {
        "scheduler", "guidance_scale",
    }  # fmt: skip
    assert len(prediction["output"]) == 2
    for url in prediction["output"]:
        file = fetched(server, url)
        assert (file.headers["content-type"], file.body) == ("image/png", PNG)
    for head in ("", "data:image/png;base64,"):
        lines = f"{head}{base64.encodebytes(PNG).decode()}"
        bad.script(answers({"data": [{"b64_json": lines}]}))
        assert fetched(server, drawn(server).json()["output"][0]).body == PNG
    before = len(bad.requests)
    answer = server.ask("POST", f"{IMAGES}?model=lorenzomarines/astra", *form(("prompt", "a boat")))
    assert (answer.status, answer.json()["code"]) == (501, "no_backend")
    assert len(bad.requests) == before


@pytest.mark.parametrize("sent", [PNG, b"only a text"])
def test_what_is_no_recording_is_not_sent(
    server: PolymuxServer, bad: MisbehavingServer, sent: bytes
) -> None:
    before = len(bad.requests)
    body, head = form(("audio", ("Rede.mp3", sent)))
    answer = server.ask("POST", STT, body, head)
    assert (answer.status, answer.json()["param"]) == (415, "audio")
    assert "Rede.mp3" in answer.json()["error"]
    body, head = form(("file", ("Rede.mp3", sent)), ("model", "whisper-1"))
    answer = server.ask("POST", "/v1/audio/transcriptions", body, head)
    assert (answer.status, answer.json()["error"]["param"]) == (415, "file")
    assert len(bad.requests) == before


def test_pictures_by_address(server: PolymuxServer, bad: MisbehavingServer, tmp_path: Path) -> None:
    """Downloaded from the upstream's host with SSRF protection and without the API key."""
    bad.script(steps.answer(200, PNG, content_type="image/png"), path="/made/1.png")
    bad.script(answers({"data": [{"url": f"{bad.url}/made/1.png"}]}), path="/v1/images/generations")
    prediction = drawn(server).json()
    assert fetched(server, prediction["output"][0]).body == PNG
    assert bad.requests[-1].path == "/made/1.png"
    assert bad.requests[-1].header("authorization") is None


@pytest.mark.parametrize(
    "data",
    [
        [], [{}], [3], [{"b64_json": "?"}], [{"b64_json": "data:text/plain,x"}],
        [{"b64_json": base64.b64encode(b"<html>").decode()}],
        [{"b64_json": base64.b64encode(PNG[:-20]).decode()}],
        [{"b64_json": base64.b64encode(PNG).decode()}] * 2, [{"url": "HOST/cut"}],
        [{"url": "http://127.0.0.1:1/x.png"}], [{"url": "file:///etc/passwd"}],
        [{"url": "HOST/page"}], [{"url": "HOST/gone"}],
    ],
)  # fmt: skip
def test_what_is_no_picture(server: PolymuxServer, bad: MisbehavingServer, data: list[Any]) -> None:
    bad.script(steps.answer(200, b"<html>", content_type="text/html"), path="/page", times=None)
    bad.script(steps.answer(404, b""), path="/gone", times=None)
    bad.script(steps.answer(200, PNG[:-20]), path="/cut", times=None)
    value = json.loads(json.dumps({"data": data}).replace("HOST", bad.url))
    bad.script(answers(value), path="/v1/images/generations")
    answer = drawn(server)
    assert (answer.status, answer.json()["code"]) == (502, "upstream_failed")
    assert server.state.service.store.media.used_bytes == sum(
        one.stat().st_size for one in server.settings.store.folder.glob("media/*/*")
    )
    assert list(server.settings.store.folder.glob("drafts/*")) == []


def test_no_address_leads_into_this_network(server: PolymuxServer, bad: MisbehavingServer) -> None:
    """Covers URLs from the upstream and redirects from its host (I19)."""
    with MisbehavingServer() as decoy:
        picture = steps.answer(200, PNG, content_type="image/png")
        decoy.script(picture, times=None)
        bad.script(steps.redirect(302, f"{decoy.url}/x.png"), path="/moved", times=None)
        for url in (f"{decoy.url}/x.png", f"{bad.url}/moved"):
            bad.script(answers({"data": [{"url": url}]}), path="/v1/images/generations")
            assert drawn(server).status == 502
        assert decoy.connections == []


def test_pictures_that_begin_with_one(bad: MisbehavingServer, tmp_path: Path) -> None:
    """One model serves all variants and does not support response_format."""
    made = upstream(
        tmp_path, bad.url, models={"any": "painter"}, operations=("generate_image",),
        response_format=False,
    )  # fmt: skip
    with gateway(tmp_path, {"painter": made}) as server:
        path = f"{IMAGES}?model=lorenzomarines/astra"
        body, head = form(("prompt", "a boat"), ("image", ("a.png", PNG)))
        answer = server.ask("POST", path, body, head)
        assert (answer.status, answer.json()["param"]) == (501, "image")
        encoded = base64.b64encode(PNG).decode()
        bad.script(answers({"data": [{"b64_json": encoded}]}))
        body, head = form(("prompt", "a boat"))
        assert server.ask("POST", path, body, head).status == 200
        assert "response_format" not in json.loads(bad.requests[-1].body)
