"""Operations with the Replicate API: files in both directions, versions, progress and results."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from polymux.downloads.url_inputs import UrlFetcher
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.upstream_settings import upstreams_of
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import PolymuxServer, form
from support.replicate_service import (
    ASTRA,
    CLARITY,
    ESRGAN,
    LIGHTNING,
    MADE,
    MUSIC,
    PINNED,
    PLAYGROUND,
    SPEECH,
    VIDEO,
    ReplicateService,
    replicate,
    whole,
)
from support.upstreams import CANARY, IMAGES, STT, gateway, posted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.polymux_server import Answer

UPSCALE = "/api/v1/modelhost/imageupscale"
VIDEOS = "/api/v1/modelhost/videogeneration"
SONGS = "/api/v1/modelhost/musicgeneration"
PNG = media.png(8, 8)
SOUND = b"RIFF....WAVE and samples"
SPOKEN = {
    "text": " Guten Tag.",
    "chunks": [{"text": " Guten", "timestamp": [0.0, 1.0]},
               {"text": " Tag.", "timestamp": [1.0, None]}],
}  # fmt: skip


@pytest.fixture
def service(ports: list[int]) -> Iterator[ReplicateService]:
    with ReplicateService(port=ports[0]) as made:
        yield made


@pytest.fixture(scope="module")
def server(ports: list[int], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("replicate")
    with ReplicateService(port=ports[0]) as known:
        settings = replicate(folder, known)
    with gateway(folder, {"replicate": settings}) as running:
        yield running


def drawn(server: PolymuxServer, **given: Any) -> Answer:
    return server.json(f"{IMAGES}?model={LIGHTNING}", {"prompt": "a lighthouse", **given})


def file_of(server: PolymuxServer, url: str) -> tuple[str, bytes]:
    answer = server.ask("GET", url.removeprefix(server.url), key=None)
    assert answer.status == 200
    return answer.headers["content-type"], answer.body


def good(answer: Answer) -> Any:
    assert answer.status == 200, answer.body
    result = answer.json()
    assert result["status"] == "succeeded"
    return result


def test_pictures(server: PolymuxServer, service: ReplicateService) -> None:
    service.output(["HOST/made/one.png", "HOST/made/two.png"], metrics={"predict_time": 2.5})
    result = good(drawn(server, num_outputs=2, width=512, seed=7))
    [asked] = service.predictions
    assert (asked.model, asked.version) == (LIGHTNING, whole(PINNED[LIGHTNING]))
    # All standard fields with their defaults, and only the extension fields that the client gave.
    assert asked.input == {
        "prompt": "a lighthouse", "width": 512, "height": 1024, "num_outputs": 2,
        "scheduler": "K_EULER", "num_inference_steps": 4, "guidance_scale": 0.0, "seed": 7,
    }  # fmt: skip
    assert [file_of(server, one) for one in result["output"]] == [MADE["one.png"], MADE["two.png"]]
    assert result["version"] == whole(PINNED[LIGHTNING])
    assert result["metrics"]["predict_time"] == 2.5


def test_what_is_asked(service: ReplicateService, tmp_path: Path) -> None:
    """Only the service gets the API key, without a webhook. A version is looked up once."""
    service.output(["HOST/made/one.png"])
    with gateway(tmp_path, {"replicate": replicate(tmp_path, service)}) as server:
        good(drawn(server))
        good(drawn(server))
    versions = f"/models/{LIGHTNING}/versions"
    first, second = (one.id for one in service.predictions)
    assert service.asked == [
        f"GET {versions}", f"GET {versions}?cursor=2",
        "POST /predictions", f"GET /predictions/{first}", "GET /made/one.png",
        "POST /predictions", f"GET /predictions/{second}", "GET /made/one.png",
    ]  # fmt: skip
    for request in service.requests:
        wanted = None if request.path.startswith("/made/") else f"Bearer {CANARY}"
        assert request.header("authorization") == wanted
        assert CANARY not in request.target + request.body.decode()
    creation = next(one for one in service.requests if one.path == "/v1/predictions")
    assert set(json.loads(creation.body)) == {"version", "input"}
    assert creation.header("cancel-after") == "1900s"
    assert creation.header("prefer") is None


def test_pictures_from_pictures(server: PolymuxServer, service: ReplicateService) -> None:
    """Files are uploaded and the input refers to them by URL."""
    service.output(["HOST/made/one.png"])
    mask = media.png(3, 3)
    fields = [("prompt", "a boat"), ("image", ("Böot.png", PNG)), ("mask", ("m.png", mask))]
    good(posted(server, f"{IMAGES}?model={ASTRA}", *fields))
    sent = service.files.sent
    assert [(one.file_name, one.content_type, one.content) for one in sent.values()] == [
        ("Böot.png", "image/png", PNG), ("m.png", "image/png", mask),
    ]  # fmt: skip
    [asked] = service.predictions
    addresses = {asked.input[name] for name in ("image", "mask")}
    assert addresses == {f"{service.url}/v1/files/{name}" for name in sent}
    assert asked.input["apply_watermark"] is False
    assert asked.input["guidance_scale"] == 7.0
    assert "negative_prompt" not in asked.input


@pytest.mark.parametrize("status", ["succeeded", "failed"])
def test_files_do_not_stay_there(
    server: PolymuxServer, service: ReplicateService, status: str
) -> None:
    """They are deleted after every outcome of the prediction."""
    output = ["HOST/made/one.png"]
    service.stages = [{"status": "starting"}, {"status": status, "output": output}]
    fields = [("prompt", "a boat"), ("image", ("a.png", PNG)), ("mask", ("m.png", PNG))]
    posted(server, f"{IMAGES}?model={ASTRA}", *fields)
    assert len(service.files.sent) == 2
    assert sorted(service.files.removed) == sorted(service.files.sent)


def test_an_address_within_is_refused(server: PolymuxServer, service: ReplicateService) -> None:
    fields = ("prompt", "a boat"), ("replicate_weights", "http://169.254.169.254/latest")
    answer = posted(server, f"{IMAGES}?model={ASTRA}", *fields)
    body = answer.json()
    assert (answer.status, body["code"], body["param"]) == (400, "url_refused", "replicate_weights")
    assert service.requests == []


def test_a_field_that_the_model_lacks(server: PolymuxServer, service: ReplicateService) -> None:
    service.output("HOST/made/one.png")
    path = f"{IMAGES}?model={PLAYGROUND}"
    result = good(posted(server, path, ("prompt", "a boat"), ("lora_scale", "0.2")))
    assert "lora_scale" in result["logs"]
    assert len(result["output"]) == 1
    [asked] = service.predictions
    assert "lora_scale" not in asked.input
    assert asked.input["apply_watermark"] is False


@pytest.mark.parametrize(
    ("model", "output", "given"),
    [
        (CLARITY, "HOST/made/one.png", ("pattern", "true")),
        (ESRGAN, ["HOST/made/one.png"], ("face_enhance", "false")),
    ],
)
def test_larger_pictures(
    server: PolymuxServer, service: ReplicateService, model: str, output: Any, given: Any
) -> None:
    """One model returns a list, another a text. The result does not depend on the image format."""
    service.output(output)
    result = good(posted(server, f"{UPSCALE}?model={model}", ("image", ("a.png", PNG)), given))
    [asked] = service.predictions
    name, value = given
    assert asked.input[name] == {"true": True, "false": False}.get(value, value)
    assert isinstance(result["output"], str) == (model == ESRGAN)
    url = result["output"] if model == ESRGAN else result["output"][0]
    assert file_of(server, url) == MADE["one.png"]


def test_speech(server: PolymuxServer, service: ReplicateService) -> None:
    service.output(SPOKEN | {"speakers": 3})
    fields = [("audio", ("Rede.mp3", SOUND)), ("language", "de"), ("timestamp", "word")]
    result = good(posted(server, STT, *fields))
    assert result["output"] == {"text": "Guten Tag.", "chunks": SPOKEN["chunks"]}
    [asked] = service.predictions
    [(name, sent)] = service.files.sent.items()
    assert asked.input == {
        "audio": f"{service.url}/v1/files/{name}", "task": "transcribe", "batch_size": 64,
        "timestamp": "word", "language": "german",
    }  # fmt: skip
    assert (sent.file_name, sent.content) == ("Rede.mp3", SOUND)


def test_a_recording_at_an_address(service: ReplicateService, tmp_path: Path) -> None:
    """The gateway downloads the URL and sends a file. The URL is not forwarded."""
    service.output(SPOKEN)
    with MisbehavingServer() as site:
        site.script(steps.answer(200, SOUND, content_type="audio/wav"), path="/a/talk.wav")
        policy = FetchPolicy(allowed_hosts=(f"127.0.0.1:{site.port}",))
        url_fetcher = UrlFetcher(policy, 1 << 20)
        settings = {"replicate": replicate(tmp_path, service)}
        with PolymuxServer(
            tmp_path / "near", lambda: upstreams_of(settings, policy, (), url_fetcher)
        ) as server:
            good(posted(server, STT, ("url", f"{site.url}/a/talk.wav")))
            refused = posted(server, STT, ("url", f"{service.url}/made/one.wav"))
            assert (refused.status, refused.json()["code"]) == (400, "url_refused")
        [request] = site.requests
        assert request.header("authorization") is None
    # A gateway without a downloader.
    with PolymuxServer(
        tmp_path / "other", lambda: upstreams_of(settings, FetchPolicy(), ())
    ) as server:
        assert posted(server, STT, ("url", "https://media.example/a.mp3")).status == 501
    [sent] = service.files.sent.values()
    assert (sent.file_name, sent.content) == ("talk.wav", SOUND)
    assert "url" not in service.predictions[0].input


def test_videos(server: PolymuxServer, service: ReplicateService) -> None:
    service.output(["HOST/made/one.mp4", "HOST/made/one.mp4"])
    fields = [("prompt", "waves"), ("batch_size", "2"), ("num_inferences_steps", "30"),
              ("remove_watermark", "true"), ("video_model", "576w"),
              ("init_video", ("v.mp4", media.mp4()))]  # fmt: skip
    result = good(posted(server, VIDEOS, *fields))
    [asked] = service.predictions
    assert (asked.model, asked.input["num_inference_steps"]) == (VIDEO, 30)
    assert (asked.input["model"], asked.input["remove_watermark"]) == ("576w", True)
    assert asked.input["init_video"].startswith(f"{service.url}/v1/files/")
    assert [file_of(server, one) for one in result["output"]] == [MADE["one.mp4"]] * 2


def test_music(server: PolymuxServer, service: ReplicateService) -> None:
    service.output({"audio": "HOST/made/one.wav", "spectrogram": "HOST/made/one.png", "error": ""})
    result = good(posted(server, SONGS, ("prompt_a", "jazz"), ("seed", "3")))
    [asked] = service.predictions
    assert (asked.model, asked.input["prompt_a"], "seed" in asked.input) == (MUSIC, "jazz", False)
    assert "seed" in result["logs"]
    assert set(result["output"]) == {"audio", "spectrogram"}
    # The type follows from the bytes. Many services send audio/x-wav.
    assert file_of(server, result["output"]["audio"]) == ("audio/wav", MADE["one.wav"][1])
    assert file_of(server, result["output"]["spectrogram"]) == MADE["one.png"]


def test_what_a_prediction_tells_of_itself(
    server: PolymuxServer, service: ReplicateService
) -> None:
    """A log line appears once, when it is complete. Percentages become progress."""
    bar = "Using seed: 5\n 25%|##  | 1/4\r 50%|####"
    service.stages = [
        {"status": "starting"},
        {"status": "processing", "logs": "Using seed: 5\n"},
        {"status": "processing", "logs": bar},
        {"status": "processing", "logs": f"{bar}    | 2/4\nSaved http://10.0.0.7/x {CANARY}\n"},
        {"status": "succeeded", "output": ["HOST/made/one.png"],
         "logs": f"{bar}    | 2/4\nSaved http://10.0.0.7/x {CANARY}\nthe end"},
    ]  # fmt: skip
    body = json.dumps({"prompt": "a lighthouse"}).encode()
    fields = [("Content-Type", "application/json"), ("Prefer", "respond-async")]
    begun = server.ask("POST", f"{IMAGES}?model={LIGHTNING}", body, fields).json()
    events = server.ask("GET", f"/api/v1/predictions/{begun['id']}/events").body.decode()
    values = [
        json.loads(line.removeprefix("data: "))
        for line in events.splitlines()
        if line.startswith("data: ")
    ]
    assert 0.5 in [one.get("progress") for one in values]
    assert values[-1]["status"] == "succeeded"
    lines = values[-1]["logs"].split("\n")
    assert lines[0] == "Using seed: 5"
    assert lines[-2].startswith("Saved ... ***")
    assert lines[-1] == "the end"
    assert CANARY not in events
    assert lines.count("Using seed: 5") == 1


def test_models_of_ones_own(service: ReplicateService, tmp_path: Path) -> None:
    """A pinned version needs no lookup. Official models work, and others are rejected."""
    mine = whole("abcdef012345")
    service.versions["me/mine"] = [mine]
    service.output(["HOST/made/one.png"])
    models = {LIGHTNING: f"me/mine:{mine}", ASTRA: "stability/official"}
    with gateway(tmp_path, {"r": replicate(tmp_path, service, models=models)}) as server:
        assert good(drawn(server))["version"] == mine
        assert service.asked[0] == "POST /predictions"
        result = good(posted(server, f"{IMAGES}?model={ASTRA}", ("prompt", "a boat")))
        assert result["version"] == "hidden"
        official = next(one for one in service.requests if "official" in one.path)
        assert official.path == "/v1/models/stability/official/predictions"
        assert set(json.loads(official.body)) == {"input"}
        refused = posted(server, f"{IMAGES}?model={PLAYGROUND}", ("prompt", "a boat"))
        assert (refused.status, refused.json()["code"]) == (501, "no_backend")
        body, head = form(("prompt_a", "jazz"))
        assert server.ask("POST", SONGS, body, head).status == 501


def test_a_version_that_is_not_there(service: ReplicateService, tmp_path: Path) -> None:
    """The error is a plain server error, whether the lookup or the prediction fails."""
    models = {
        LIGHTNING: f"{LIGHTNING}:00112233", ESRGAN: "me/gone:00112233",
        SPEECH: f"{SPEECH}:{whole('aaaaaaaa')}",
    }  # fmt: skip
    with gateway(tmp_path, {"r": replicate(tmp_path, service, models=models)}) as server:
        answers = [
            drawn(server),
            posted(server, f"{UPSCALE}?model={ESRGAN}", ("image", ("a.png", PNG))),
            posted(server, STT, ("audio", ("a.wav", SOUND))),
        ]
    assert [(one.status, one.json()["code"]) for one in answers] == [(502, "upstream_failed")] * 3
    assert all(one in answers[0].json()["error"] for one in ("00112233", LIGHTNING))
    assert service.predictions == []
