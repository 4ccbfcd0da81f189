"""Upstreams that fail in transcriptions, image generation, or downloads of their images."""

from __future__ import annotations

import base64
import json
import time
from typing import TYPE_CHECKING, Any

import pytest
from servers import media, steps
from support.polymux_server import form
from support.upstream_faults import FAILED, LATE, LIMITS, NO_ANSWER, broken, of
from support.upstreams import CANARY, IMAGES, STT, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from support.polymux_server import Answer, PolymuxServer
    from support.upstream_faults import Fault

#: Tolerance for the deadline on a busy machine, in seconds.
LATE_S = 15.0
SPEECH = "turian/insanely-fast-whisper-with-video"
LIGHTNING = "bytedance/sdxl-lightning-4step"
OPERATIONS = ("transcribe", "generate_image")
#: The path of each operation at the upstream.
PATHS = {"transcribe": "/v1/audio/transcriptions", "generate_image": "/v1/images/generations"}
PNG = media.png(8, 8)
TRANSCRIPT = json.dumps({"text": "Hello", "segments": [{"text": "Hello", "start": 0, "end": 1}]})
#: Complete, valid responses: only the fault can cause an error.
GOOD = {
    "transcribe": TRANSCRIPT.encode(),
    "generate_image": json.dumps({"data": [{"b64_json": base64.b64encode(PNG).decode()}]}).encode(),
}
STATUSES: dict[str, Fault] = {
    "400": ([steps.answer(400, b'{"error": {"message": "odd"}}')], (400, "invalid_request")),
    "401": ([steps.answer(401, f'{{"error": {{"message": "{CANARY}"}}}}'.encode())], FAILED),
    "413": ([steps.answer(413, b"{}")], (413, "too_large")),
    "429": ([steps.answer(429, b"{}", [("Retry-After", "2")])], (429, "rate_limited")),
    "500": ([steps.answer(500, b'{"error": {"message": "x"}}')], FAILED),
}
#: Complete responses, after which the connection may be reused.
WHOLE = {*STATUSES, "page"}
FAULTS = {
    name: STATUSES | of(NO_ANSWER, "reset", "silent")
    | of(broken(good), "shorter", "stalled", "page", "bomb")
    for name, good in GOOD.items()
}  # fmt: skip


@pytest.fixture(scope="module")
def server(
    bad: MisbehavingServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("faults")
    models = {SPEECH: "whisper", LIGHTNING: "painter"}
    made = upstream(folder, bad.url, models=models, operations=OPERATIONS, **LIMITS)
    with gateway(folder, {"groq": made}) as running:
        yield running


def asked(server: PolymuxServer, operation: str) -> Answer:
    if operation == "generate_image":
        given = {"prompt": "a lighthouse", "num_outputs": 2}
        return server.json(f"{IMAGES}?model={LIGHTNING}", given)
    body, head = form(("audio", ("Rede.wav", media.wav())))
    return server.ask("POST", STT, body, head)


def assert_failed(
    server: PolymuxServer, bad: MisbehavingServer, answer: Answer, expected: tuple[int, str]
) -> None:
    """Check the status and code, that the job has the same error, and that no result is stored."""
    assert (answer.status, answer.json()["code"]) == expected, answer.body
    assert ("retry-after" in answer.headers) == (expected[0] in (429, 503))
    assert "groq" in answer.json()["error"]
    body = answer.json()
    job = server.ask("GET", f"/api/v1/predictions/{body['id']}").json()
    assert (job["status"], job["error_code"]) == ("failed", expected[1])
    assert job.get("output") is None
    for text in (json.dumps(job), answer.body.decode()):
        for secret in (CANARY, str(bad.port), "/made/"):
            assert secret not in text
    folder = server.settings.store.folder
    assert list(folder.glob("drafts/*")) == []
    kept = sum(one.stat().st_size for one in folder.glob("media/*/*"))
    assert server.state.service.store.media.used_bytes == kept == 0


@pytest.mark.parametrize("operation", OPERATIONS)
@pytest.mark.parametrize("fault", FAULTS["transcribe"])
def test_asked_for_a_transcript_or_a_picture(
    server: PolymuxServer, bad: MisbehavingServer, operation: str, fault: str
) -> None:
    """The error arrives in time without retries, nothing is stored, and the connection ends or is
    reused (C01 to C04, C08 to C10 and C12 to C14 in docs/development/testing.md).
    """
    play, expected = FAULTS[operation][fault]
    bad.script(*play)
    before = len(bad.requests)
    began = time.monotonic()
    answer = asked(server, operation)
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S
    assert_failed(server, bad, answer, expected)
    [request] = bad.requests[before:]
    assert request.path == PATHS[operation]
    if fault not in WHOLE:
        bad.wait_closed(request.connection, 15)


#: Faults in the download of the second of two images that a response lists by URL.
PICTURES: dict[str, Fault] = (
    of(NO_ANSWER, "silent") | of(broken(PNG, "image/png"), "shorter", "page")
    | {
        "500": ([steps.answer(500, PNG, content_type="image/png")], FAILED),
        "bomb": ([steps.gzip_bomb(1 << 20, layers=20)], FAILED),
        "a sound": ([steps.answer(200, media.wav(), content_type="image/png")], FAILED),
        "drips": ([steps.split(1, 0.4), steps.answer(200, PNG, content_type="image/png")], LATE),
        "declared too large": (
            [steps.head(200, [("Content-Type", "image/png"), ("Content-Length", 1 << 40)]),
             steps.stall()], FAILED,
        ),
    }
)  # fmt: skip


def name_two(bad: MisbehavingServer) -> None:
    good = steps.answer(200, PNG, content_type="image/png")
    bad.script(good, path="/made/1.png")
    data = {"data": [{"url": f"{bad.url}/made/{number}.png"} for number in (1, 2)]}
    bad.script(steps.answer(200, json.dumps(data).encode()), path=PATHS["generate_image"])


@pytest.mark.parametrize("fault", PICTURES)
def test_a_picture_at_an_address(server: PolymuxServer, bad: MisbehavingServer, fault: str) -> None:
    """Although the first image is complete, neither is stored."""
    play, expected = PICTURES[fault]
    name_two(bad)
    bad.script(*play, path="/made/2.png")
    began = time.monotonic()
    answer = asked(server, "generate_image")
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S
    assert_failed(server, bad, answer, expected)
    asked_last = bad.requests[-1]
    assert asked_last.path == "/made/2.png"
    bad.wait_closed(asked_last.connection, 15)


def test_pictures_are_what_they_are_and_not_what_they_are_called(
    bad: MisbehavingServer, tmp_path: Path
) -> None:
    """The link's content type follows the bytes of the image."""
    name_two(bad)
    bad.script(steps.answer(200, PNG, content_type="text/html"), path="/made/2.png")
    made = upstream(
        tmp_path, bad.url, models={LIGHTNING: "painter"}, operations=("generate_image",)
    )
    with gateway(tmp_path, {"groq": made}) as server:
        prediction: dict[str, Any] = asked(server, "generate_image").json()
        assert prediction["status"] == "succeeded", prediction
        for url in prediction["output"]:
            file = server.ask("GET", url.removeprefix(server.url), key=None)
            assert (file.headers["content-type"], file.body) == ("image/png", PNG)
