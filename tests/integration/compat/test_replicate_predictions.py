"""Predictions of /replicate/v1: create, get, list, cancel and ownership."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.server.compat.replicate import predictions
from polymux.service.model import Estimate
from replicate.exceptions import ReplicateError
from support.polymux_server import Box, PolymuxServer
from support.replicate_compat import ScriptedModels, of, scripted_server
from support.server_process import until

if TYPE_CHECKING:
    from pathlib import Path

BASE = "/replicate/v1"
CONVERT = "polymux/convert-to-mp3"
FILE = {"file": "data:,x"}


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


def create(server: PolymuxServer, body: dict[str, Any], *headers: tuple[str, str], **more: Any
           ) -> Any:  # fmt: skip
    answer = server.json(f"{BASE}/predictions", body, headers, **more)
    assert answer.status == 201, answer.body
    return answer.json()


def release(server: PolymuxServer, backend: ScriptedModels) -> None:
    server.loop.call_soon_threadsafe(backend.gate.set)


def test_all_ways_to_name_a_model(server: PolymuxServer, backend: ScriptedModels) -> None:
    client = of(server)
    model = client.models.get(CONVERT)
    version = model.latest_version
    assert version is not None
    for wanted in (version, version.id, CONVERT, f"{CONVERT}:{version.id}"):
        made = client.predictions.create(version=wanted, input=FILE)
        assert (made.model, made.version, made.input) == (CONVERT, version.id, FILE)
    made = client.models.predictions.create(model=model, input=FILE)
    assert (made.model, made.version) == (CONVERT, version.id)
    assert client.predictions.create(model=CONVERT, input=FILE).status == "starting"
    until(lambda: len(backend.began) == 6)


def test_what_a_prediction_is(server: PolymuxServer) -> None:
    prediction = create(server, {"version": CONVERT, "input": FILE}, ("Prefer", "wait"))
    base = f"{server.url}{BASE}/predictions/{prediction['id']}"
    assert prediction["urls"] == {"get": base, "cancel": f"{base}/cancel"}
    assert prediction["status"] == "succeeded"
    assert prediction["error"] is None
    assert prediction["source"] == "api"
    assert prediction["data_removed"] is False
    assert prediction["logs"] == "begun"
    assert prediction["created_at"] <= prediction["started_at"] <= prediction["completed_at"]
    assert "webhook" not in prediction
    assert server.ask("GET", base.removeprefix(server.url)).json() == prediction


def test_ignored_fields_are_reported(server: PolymuxServer) -> None:
    """At once and at the end; of a chat as well as of another operation."""
    given = {"prompt": "Hi", "top_p9": 1}
    for version, input_ in ((CONVERT, FILE | {"top_p9": 1}), ("polymux/chat", given)):
        for headers in ([], [("Prefer", "wait")]):
            body = {"version": version, "input": input_}
            answer = server.json(f"{BASE}/predictions", body, headers)
            assert answer.status == 201
            assert "top_p9" in answer.headers["polymux-warnings"]


@pytest.mark.parametrize(
    ("prefer", "waits"),
    [
        (None, False), ("wait", True), ("respond-async, wait=5", True), ("wait=0", False),
    ],
)  # fmt: skip
def test_who_waits(
    server: PolymuxServer, backend: ScriptedModels, prefer: str | None, waits: bool
) -> None:
    """With "Prefer: wait" the response has the result, otherwise the initial status."""
    if not waits:
        backend.gate.clear()
    headers = () if prefer is None else (("Prefer", prefer),)
    answer = server.json(f"{BASE}/predictions", {"version": CONVERT, "input": FILE}, headers)
    prediction = answer.json()
    assert (answer.status, answer.headers["location"]) == (201, prediction["urls"]["get"])
    assert prediction["status"] == ("succeeded" if waits else "starting")
    release(server, backend)


def test_lists_in_pages(server: PolymuxServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(predictions, "_ON_A_PAGE", 3)
    client = of(server)
    ids = [client.predictions.create(version=CONVERT, input=FILE).id for _ in range(7)][::-1]
    pages = [client.predictions.list()]
    while pages[-1].next:
        pages.append(client.predictions.list(pages[-1].next))
    assert [[one.id for one in page] for page in pages] == [ids[:3], ids[3:6], ids[6:]]
    assert pages[0].previous is None
    back = client.predictions.list(pages[2].previous)
    assert [one.id for one in back] == ids[3:6]
    assert [one.id for one in client.predictions.list(back.next)] == ids[6:]
    first = client.predictions.list(back.previous)
    assert [one.id for one in first] == ids[:3]
    assert first.previous is None
    for wrong in ("x", "b2xkZXIgeA", "Li4vLi4v", "%ff"):
        answer = server.ask("GET", f"{BASE}/predictions?cursor={wrong}")
        assert (answer.status, answer.json()["param"]) == (400, "cursor")


def test_a_list_truncates_long_inputs(server: PolymuxServer) -> None:
    long = {"prompt": "x" * 100_000}
    created = create(server, {"version": "polymux/chat", "input": long}, ("Prefer", "wait"))
    answer = server.ask("GET", f"{BASE}/predictions")
    (listed,) = answer.json()["results"]
    assert len(answer.body) < 10_000
    assert listed["id"] == created["id"]
    assert long["prompt"].startswith(listed["input"]["prompt"].rstrip("…"))
    assert server.ask("GET", f"{BASE}/predictions/{created['id']}").json()["input"] == long


def test_cancel(server: PolymuxServer, backend: ScriptedModels) -> None:
    backend.gate.clear()
    client = of(server)
    held = client.predictions.create(version=CONVERT, input=FILE)
    until(lambda: backend.began)
    held.cancel()
    assert held.status == "canceled"
    assert held.completed_at is not None
    assert backend.ended == ["cancelled"]
    held.cancel()
    assert held.status == "canceled"
    drafts = server.settings.store.folder / "drafts"
    assert not any(drafts.iterdir())
    release(server, backend)
    done = client.predictions.create(version=CONVERT, input=FILE)
    done.wait()
    done.cancel()
    assert done.status == "succeeded"


def test_cancel_after(
    server: PolymuxServer, backend: ScriptedModels, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "_MIN_LIFETIME_S", 1)
    backend.gate.clear()
    headers = (("Prefer", "wait"), ("Cancel-After", "1s"))
    prediction = create(server, {"version": CONVERT, "input": FILE}, *headers)
    assert prediction["status"] == "canceled"
    assert prediction["metrics"]["total_time"] >= 1
    release(server, backend)
    assert create(server, {"version": CONVERT, "input": FILE}, *headers)["status"] == "succeeded"
    for wrong in ("soon", "0s", "-1s", "1d", "", "1e3"):
        answer = server.json(
            f"{BASE}/predictions", {"version": CONVERT, "input": FILE}, [("Cancel-After", wrong)]
        )
        assert (answer.status, answer.json()["param"]) == (422, "Cancel-After")


def test_idempotency(server: PolymuxServer, backend: ScriptedModels) -> None:
    """Files at URLs are compared by their URL. A deleted job is not recreated."""
    body = {"version": CONVERT, "input": FILE}
    key = ("Idempotency-Key", "k")
    first = create(server, body, key, ("Prefer", "wait"))
    assert create(server, body, key)["id"] == first["id"]
    for file in ("data:,y", "http://files.example/a"):
        answer = server.json(f"{BASE}/predictions", body | {"input": {"file": file}}, [key])
        assert (answer.status, answer.json()["title"]) == (409, "Conflict")
    assert server.ask("DELETE", f"/api/v1/predictions/{first['id']}").status == 204
    answer = server.json(f"{BASE}/predictions", body, [key])
    assert (answer.status, answer.json()["title"]) == (404, "Not found")
    assert (answer.json()["code"], answer.json()["param"]) == ("gone", "Idempotency-Key")
    assert len(backend.began) == 1
    for path, status in (("a", 201), ("a", 201), ("b", 409)):
        body = {"version": CONVERT, "input": {"file": f"http://127.0.0.1/{path}"}}
        answer = server.json(f"{BASE}/predictions", body, [("Idempotency-Key", "other")])
        assert answer.status == status


def test_others_see_nothing(server: PolymuxServer, other_key: str) -> None:
    client, other = of(server), of(server, key=other_key)
    mine = client.predictions.create(version=CONVERT, input=FILE)
    chat = client.predictions.create(version="polymux/chat", input={"prompt": "Hi"})
    assert other.predictions.list().results == []
    for one in (mine, chat):
        for ask in (other.predictions.get, other.predictions.cancel):
            with pytest.raises(ReplicateError) as refused:
                ask(one.id)
            assert (refused.value.status, refused.value.title) == (404, "Not found")
    answer = server.ask("GET", f"{BASE}/predictions/{chat.id}/stream", key=other_key)
    assert (answer.status, answer.json()["status"]) == (404, 404)


def test_scopes_and_quotas(server: PolymuxServer, backend: ScriptedModels) -> None:
    """Those of the operations apply. A missing scope is an error before the body is read."""
    key, _ = server.keys.add("narrow", scopes=("convert_to_mp3", "predictions"))
    narrow = of(server, key=key)
    narrow.run(CONVERT, input=FILE)
    assert len(narrow.predictions.list().results) == 1
    with pytest.raises(ReplicateError) as refused:
        narrow.predictions.create(version="polymux/chat", input={"prompt": "Hi"})
    assert (refused.value.status, refused.value.title) == (403, "Forbidden")
    head = f"POST {BASE}/models/polymux/chat/predictions HTTP/1.1\r\nHost: 127.0.0.1\r\n"
    head += f"Authorization: Bearer {key}\r\nContent-Type: application/json\r\n"
    answer = server.raw(f"{head}Content-Length: 100\r\n\r\n".encode())
    assert answer.status == 403
    blind, _ = server.keys.add("blind", scopes=("convert_to_mp3",))
    assert of(server, key=blind).models.predictions.create(CONVERT, FILE).id
    for path in ("predictions", "webhooks/default/secret"):
        assert server.ask("GET", f"{BASE}/{path}", key=blind).status == 403
    rare, _ = server.keys.add("rare", requests_per_minute=1)
    assert server.ask("GET", f"{BASE}/models", key=rare).status == 200
    answer = server.ask("GET", f"{BASE}/models", key=rare)
    assert (answer.status, answer.json()["title"]) == (429, "Too many requests")
    assert int(answer.headers["retry-after"]) > 0
    limited, _ = server.keys.add("limited", max_estimate_s=1)
    backend.expected = Estimate(5.0, None, "a script")
    with pytest.raises(ReplicateError) as too_long:
        of(server, key=limited).run(CONVERT, input=FILE)
    assert too_long.value.status == 422
    assert "5" in str(too_long.value.detail)


def test_jobs_of_the_other_apis(server: PolymuxServer) -> None:
    """Jobs of other APIs are predictions here, and vice versa."""
    with polymux.Client(server.url, server.key) as client:
        client.generate_image("a boat", num_outputs=2)
        job = of(server).predictions.list().results[0]
        assert (job.model, job.status) == ("bytedance/sdxl-lightning-4step", "succeeded")
        model = of(server).models.get(job.model)
        assert model.latest_version is not None
        assert job.version == model.latest_version.id
        assert job.input is not None
        assert job.input["prompt"] == "a boat"
        assert len(job.output) == 2
        pieces = of(server).run("polymux/chat", input={"prompt": "Hi"})
        assert pieces == ["Hel", "lo ", "there"]
        newest = next(iter(client.predictions.list()))
        assert (newest.model, newest.output) == ("chat", pieces)


def test_they_outlive_the_server(tmp_path: Path) -> None:
    box = Box()
    with scripted_server(tmp_path, box, shutdown_timeout_s=0.2) as server:
        done = of(server).predictions.create(version="polymux/chat", input={"prompt": "Hi"})
        done.wait()
        box.backend.gate.clear()
        held = of(server).predictions.create(version=CONVERT, input=FILE)
        until(lambda: len(box.backend.began) == 2)
        key = server.key
    with scripted_server(tmp_path, box) as server:
        again = of(server, key=key).predictions.get(done.id)
        assert (again.output, again.input, again.version) == (done.output, done.input, done.version)
        lost = of(server, key=key).predictions.get(held.id)
        assert (lost.status, bool(lost.error)) == ("failed", True)
