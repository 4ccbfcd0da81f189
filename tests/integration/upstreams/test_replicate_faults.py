"""A Replicate service fails in every way and phase of a prediction. Case IDs: testing.md."""

from __future__ import annotations

import itertools
import json
import logging
import time
from typing import TYPE_CHECKING, Any

import pytest
from polymux.upstreams.replicate import predictions
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import form
from support.replicate_service import BASE, LIGHTNING, MADE, ReplicateService, problem, replicate
from support.upstream_faults import FAILED, LATE, LIMITS, NO_ANSWER, broken, of
from support.upstreams import CANARY, IMAGES, STT, gateway

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from servers.steps import Step
    from support.polymux_server import Answer, PolymuxServer
    from support.upstream_faults import Fault

#: Tolerance for the deadline on a busy machine, in seconds.
LATE_S = 15.0
CREATE, FILES = f"{BASE}/predictions", f"{BASE}/files"
VERSIONS = f"{BASE}/models/{LIGHTNING}/versions"
PICTURE = "/made/one.png"
SECRETS = f"{CANARY} {CANARY[:20]} org-8abc12 https://api.replicate.example/x 10.0.0.7:99"
PRIVATE = [CANARY, CANARY[:20], "org-8abc12", "api.replicate.example", "10.0.0.7", "127.0.0.1"]
NUMBERS = itertools.count(1)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    """Polling fails after eight tries. Short pauses make the test fast."""
    monkeypatch.setattr(predictions, "_FIRST_PAUSE_S", 0.02)
    monkeypatch.setattr(predictions, "_MAX_PAUSE_S", 0.02)


@pytest.fixture(scope="module")
def bad() -> Iterator[ReplicateService]:
    with ReplicateService() as server:
        yield server


@pytest.fixture
def service(bad: ReplicateService) -> ReplicateService:
    """The service in its initial state. The ID of its next prediction is known."""
    bad.renew(f"n{next(NUMBERS)}")
    return bad


@pytest.fixture(scope="module")
def server(
    bad: ReplicateService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("faults")
    with gateway(folder, {"replicate": replicate(folder, bad, **LIMITS)}) as running:
        yield running


def drawn(server: PolymuxServer, **given: Any) -> Answer:
    return server.json(f"{IMAGES}?model={LIGHTNING}", {"prompt": "a lighthouse", **given})


def spoken(server: PolymuxServer) -> Answer:
    body, head = form(("audio", ("a.wav", media.wav())))
    return server.ask("POST", STT, body, head)


def error_answer(status: int, text: str = SECRETS, *fields: tuple[str, str]) -> Step:
    body = json.dumps(problem(status, "Something", text)[1]).encode()
    return steps.answer(status, body, fields)


def assert_good_failure(
    server: PolymuxServer, bad: MisbehavingServer, answer: Answer, status: int, code: str
) -> None:
    """Check the status and code, that no private text appears, and that no data remains."""
    assert (answer.status, answer.json()["code"]) == (status, code), answer.body
    text = answer.body.decode() + "\n".join(answer.lines)
    own_address = server.url.removeprefix("http://")
    text = text.replace(own_address, "")
    for secret in (*PRIVATE, str(bad.port)):
        assert secret not in text
    job = server.ask("GET", f"/api/v1/predictions/{answer.json()['id']}")
    assert CANARY not in job.body.decode()
    assert list(server.settings.store.folder.glob("drafts/*")) == []
    kept = sum(one.stat().st_size for one in server.settings.store.folder.glob("media/*/*"))
    assert server.state.service.store.media.used_bytes == kept


#: Faults in place of a response.
BEFORE: dict[str, Fault] = {
    "400": ([error_answer(400)], (400, "invalid_request")),
    "401": ([error_answer(401)], FAILED),
    "404": ([error_answer(404)], FAILED),
    "422": ([error_answer(422)], (400, "invalid_request")),
    "429": ([error_answer(429, SECRETS, ("Retry-After", "1"))], (429, "rate_limited")),
    "500": ([error_answer(500)], FAILED),
    "504": ([error_answer(504)], LATE),
    "null": ([steps.answer(200, b"null")], FAILED),
    **of(NO_ANSWER, "redirect", "closed", "silent"),
    **of(broken(b'{"id":'), "shorter", "page"),
}
#: Faults after which the gateway polls the prediction again.
PASSING = BEFORE.keys() - {"400", "401", "404", "422", "redirect"}
#: Invalid predictions.
NO_PREDICTIONS: list[Any] = [
    {"id": "../files", "status": "starting"}, {"id": "", "status": "starting"},
    {"status": "starting"}, {"id": "a", "status": 3}, {"id": "a"},
]  # fmt: skip


@pytest.mark.parametrize("fault", BEFORE)
def test_when_a_prediction_is_asked_for(
    server: PolymuxServer, service: ReplicateService, fault: str
) -> None:
    """The error arrives in time. There is no retry, because the prediction may have started."""
    play, (status, code) = BEFORE[fault]
    service.script(*play, path=CREATE)
    before = len(service.requests)
    began = time.monotonic()
    answer = drawn(server)
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S
    assert_good_failure(server, service, answer, status, code)
    assert [one.path for one in service.requests[before:]].count(CREATE) == 1
    assert ("retry-after" in answer.headers) == (status == 429)


def test_what_is_no_prediction(server: PolymuxServer, service: ReplicateService) -> None:
    """A 422 error about the input is returned without private parts."""
    for value in NO_PREDICTIONS:
        service.script(steps.answer(201, json.dumps(value).encode()), path=CREATE)
        assert_good_failure(server, service, drawn(server), 502, "upstream_failed")
    service.script(error_answer(422, f"- input.width: too wide, see {SECRETS}\n"), path=CREATE)
    answer = drawn(server)
    assert_good_failure(server, service, answer, 400, "invalid_request")
    assert "- input.width: too wide, see" in answer.json()["error"]


@pytest.mark.parametrize("fault", ["422", "silent"])
def test_when_a_file_is_sent(server: PolymuxServer, service: ReplicateService, fault: str) -> None:
    play, (status, code) = BEFORE[fault]
    service.script(*play, path=FILES)
    before = len(service.requests)
    assert_good_failure(server, service, spoken(server), status, code)
    assert CREATE not in [one.path for one in service.requests[before:]]


def test_files_that_are_kept_elsewhere(server: PolymuxServer, service: ReplicateService) -> None:
    """URLs must use https or the service's host. Otherwise no prediction uses the file."""
    before = len(service.predictions)
    for address in (
        "http://files.example/f1", "file:///etc/passwd", "https://me:secret@files.example/f1",
        "https:///f1", "https://[::1", "https://files.example/" + "x" * 5000,
    ):  # fmt: skip
        service.file_address = address
        assert_good_failure(server, service, spoken(server), 502, "upstream_failed")
    assert len(service.predictions) == before
    service.file_address = "https://files.example/f1?sig=1"
    service.output({"text": "Hi", "chunks": []})
    assert spoken(server).status == 200
    assert service.predictions[-1].input["audio"] == service.file_address


@pytest.mark.parametrize("fault", BEFORE)
def test_when_it_is_asked_after_once(
    server: PolymuxServer, service: ReplicateService, fault: str
) -> None:
    """Temporary errors are retried. Permanent ones end the prediction on the service, too."""
    service.script(*BEFORE[fault][0], path=f"{CREATE}/{service.next_id}")
    answer = drawn(server)
    if fault in PASSING:
        assert answer.status == 200, answer.body
        assert not service.predictions[-1].canceled
        return
    assert_good_failure(server, service, answer, 502, "upstream_failed")
    assert service.predictions[-1].canceled


def test_when_it_can_be_asked_after_no_more(
    server: PolymuxServer, service: ReplicateService
) -> None:
    """The gateway gives up and cancels the prediction on the service."""
    path = f"{CREATE}/{service.next_id}"
    service.script(error_answer(500), path=path, times=None)
    assert_good_failure(server, service, drawn(server), 502, "upstream_failed")
    assert service.predictions[-1].canceled
    asked = [one for one in service.requests if one.path == path]
    assert 8 <= len(asked) <= 16


@pytest.mark.parametrize(
    "stage",
    [
        {"status": "failed", "error": f"CUDA ran out, see {SECRETS}"},
        {"status": "failed", "error": {"a": CANARY}},
        {"status": "canceled"},
        {"status": "aborted"},
        {"status": "succeeded", "output": None, "data_removed": True},
    ],
)
def test_predictions_that_come_to_no_good(
    server: PolymuxServer, service: ReplicateService, stage: dict[str, Any]
) -> None:
    service.stages = [{"status": "starting"}, stage]
    answer = drawn(server)
    assert_good_failure(server, service, answer, 502, "upstream_failed")
    assert ("CUDA ran out, see" in answer.json()["error"]) == ("CUDA" in str(stage))
    assert not service.predictions[-1].canceled


NEARLY: dict[str, Any] = {"status": "processing", "logs": " 98%|#########8|\n 99%|#########9|\n"}
MADE_ONE: dict[str, Any] = {"status": "succeeded", "output": ["HOST/made/one.png"]}
FAILED_THERE: dict[str, Any] = {"status": "failed", "error": "on second thoughts"}


def test_one_that_fails_at_last(server: PolymuxServer, service: ReplicateService) -> None:
    """No output is stored. The prediction's own error message is reported (O06)."""
    service.stages = [NEARLY, FAILED_THERE]
    answer = drawn(server)
    assert_good_failure(server, service, answer, 502, "upstream_failed")
    assert "on second thoughts" in answer.json()["error"]
    job = server.ask("GET", f"/api/v1/predictions/{answer.json()['id']}").json()
    assert (job["status"], job["progress"]) == ("failed", 0.99)
    assert "output" not in job
    assert "99%" in job["logs"]


#: Outputs that are not images. HOST stands for the service.
OUTPUTS: list[Any] = [
    None, [], [3], ["HOST/gone"], ["HOST/made/one.wav"], ["HOST/made/one.png"] * 2,
    ["file:///etc/passwd"], ["http://127.0.0.1:1/x.png"], ["data:image/png;base64,PGh0bWw+"],
]  # fmt: skip


@pytest.mark.parametrize("second", [FAILED_THERE, {"status": "processing"}])
def test_one_that_ends_twice(
    server: PolymuxServer, service: ReplicateService, second: dict[str, Any]
) -> None:
    """The first final status counts: no more polls or downloads, and one result (O06)."""
    service.stages = [{"status": "starting"}, MADE_ONE, second]
    before = len(service.asked)
    answer = drawn(server)
    assert answer.status == 200
    job = server.ask("GET", f"/api/v1/predictions/{answer.json()['id']}").json()
    assert job["status"] == "succeeded"
    assert len(job["output"]) == 1
    assert service.predictions[-1].asked == 1
    assert service.asked[before:].count("GET /made/one.png") == 1


@pytest.mark.parametrize("output", OUTPUTS, ids=lambda one: str(one)[:40])
def test_what_is_no_picture(server: PolymuxServer, service: ReplicateService, output: Any) -> None:
    service.script(steps.answer(404, b""), path="/gone", times=None)
    service.output(output)
    assert_good_failure(server, service, drawn(server), 502, "upstream_failed")


#: Outputs that are not transcripts.
SPOKEN: list[Any] = [
    None, "Hello", {"text": 3}, {"text": "a", "chunks": 3}, [3], [{"text": "a", "timestamp": [1]}],
    {"text": "a", "chunks": [{"text": 1}]},
    {"text": "a", "chunks": [{"text": "a", "timestamp": ["0", 1]}]},
    {"text": "a", "chunks": [{"text": "a", "timestamp": [0, 1 << 70]}]},
]  # fmt: skip


def test_what_is_no_transcript(server: PolymuxServer, service: ReplicateService) -> None:
    for output in SPOKEN:
        service.output(output)
        assert_good_failure(server, service, spoken(server), 502, "upstream_failed")


PNG = MADE["one.png"][1]
FILE_FAULTS = of(BEFORE, "silent") | of(broken(PNG, "image/png"), "shorter", "page")


@pytest.mark.parametrize("fault", FILE_FAULTS)
def test_when_a_result_is_fetched(
    server: PolymuxServer, service: ReplicateService, fault: str
) -> None:
    play, (status, code) = FILE_FAULTS[fault]
    service.script(*play, path=PICTURE, times=None)
    began = time.monotonic()
    assert_good_failure(server, service, drawn(server), status, code)
    assert time.monotonic() - began < LIMITS["total_s"] + LATE_S


def test_no_address_leads_into_this_network(
    server: PolymuxServer, service: ReplicateService
) -> None:
    """URLs in an output, after a redirect, or of the next page of a list. None is requested."""
    with MisbehavingServer() as decoy:
        decoy.script(steps.answer(200, PNG, content_type="image/png"), times=None)
        elsewhere = f"{decoy.url}/x.png"
        service.script(steps.redirect(302, elsewhere), path="/moved", times=None)
        for url in (elsewhere, "HOST/moved"):
            service.output([url])
            assert_good_failure(server, service, drawn(server), 502, "upstream_failed")
        service.output(["HOST/made/one.png"])
        for path in (CREATE, f"{CREATE}/{service.next_id}"):
            service.script(steps.redirect(307, elsewhere), path=path)
            assert_good_failure(server, service, drawn(server), 502, "upstream_failed")
        assert decoy.connections == []


#: Invalid lists of versions, and lists whose next page is elsewhere.
LISTS: list[dict[str, Any]] = [
    {"next": "DECOY/v1/models/x/y/versions?cursor=2"}, {"next": "HOST/v1/other?cursor=2"},
    {"next": "HOST@DECOY?c=1"}, {"next": f"HOST{VERSIONS}/../../?c=1"}, {"next": 3},
    {"results": 5}, {"results": {"id": "0" * 64}},
]  # fmt: skip


def test_lists_that_are_none(service: ReplicateService, tmp_path: Path) -> None:
    """The API key goes only to the list's URL, with at most 100 requests."""
    settings = {"replicate": replicate(tmp_path, service)}
    with MisbehavingServer() as decoy, gateway(tmp_path, settings) as server:
        for listed in LISTS:
            text = json.dumps({"results": [{"id": "0" * 64}]} | listed)
            text = text.replace("HOST", service.url).replace("DECOY", decoy.url)
            service.script(steps.answer(200, text.encode()), path=VERSIONS)
            answer = drawn(server)
            assert_good_failure(server, service, answer, 502, "upstream_failed")
        assert decoy.connections == []
        text = json.dumps({"next": f"{service.url}{VERSIONS}?cursor=1", "results": []})
        service.script(steps.answer(200, text.encode()), path=VERSIONS, times=None)
        before = len(service.requests)
        assert_good_failure(server, service, drawn(server), 502, "upstream_failed")
        assert len(service.requests) - before == 100


def test_keys_are_nowhere_but_in_requests(
    server: PolymuxServer, service: ReplicateService, caplog: pytest.LogCaptureFixture
) -> None:
    """Logs, texts, file names, versions and metrics lack it, even if the service repeats it."""
    caplog.set_level(logging.DEBUG)
    service.stages = [
        {"status": "starting", "logs": f"{CANARY}\n"},
        {"status": "succeeded", "output": ["HOST/made/one.png"], "version": CANARY,
         "metrics": {CANARY: 1, "predict_time": 2, "odd": CANARY}, "logs": f"{CANARY}\nx"},
    ]  # fmt: skip
    answer = drawn(server)
    assert answer.status == 200
    prediction = answer.json()
    assert prediction["metrics"]["predict_time"] == 2
    service.output({"text": f"the key is {CANARY}", "chunks": []})
    other = spoken(server)
    assert other.json()["output"]["text"].startswith("the key is ***")
    for text in (answer.body.decode(), other.body.decode(), caplog.text, *answer.lines):
        assert CANARY not in text
