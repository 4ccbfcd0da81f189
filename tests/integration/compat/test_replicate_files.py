"""Files of /replicate/v1: upload, download, expiry, and sources of input files."""

from __future__ import annotations

import hashlib
import io
from typing import TYPE_CHECKING, Any

import pytest
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.settings import Limits
from replicate.exceptions import ModelError, ReplicateError
from servers import steps
from servers.misbehaving import MisbehavingServer
from support.polymux_server import Box, PolymuxServer, form
from support.replicate_compat import MP3, PICTURE, ScriptedModels, of, scripted_server
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASE = "/replicate/v1"
CONVERT = "polymux/convert-to-mp3"


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels()


@pytest.fixture(scope="module")
def elsewhere() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as running:
        yield running


@pytest.fixture(scope="module")
def settings(elsewhere: MisbehavingServer) -> dict[str, Any]:
    """The server may download from one other local server only."""
    policy = FetchPolicy(allowed_hosts=(f"127.0.0.1:{elsewhere.port}",))
    return {"fetch": policy, "limits": Limits(upload_bytes=1 << 20, image_bytes=100_000)}


def sent(server: PolymuxServer, data: bytes = b"samples", **more: Any) -> Any:
    file = io.BytesIO(data)
    file.name = "talk.wav"
    return of(server).files.create(file, **more)


def test_a_file_is_kept(server: PolymuxServer) -> None:
    client = of(server)
    metadata = {"of": "Ada", "numbers": [1, 2.5], "nested": {"\u00e9": None}}
    made = sent(server, b"samples" * 900, metadata=metadata)
    assert (made.name, made.size) == ("talk.wav", 6300)
    assert made.content_type in ("audio/wav", "audio/x-wav")
    assert made.checksums == {"sha256": hashlib.sha256(b"samples" * 900).hexdigest()}
    assert made.metadata == metadata
    assert made.created_at < made.expires_at
    assert made.urls["get"] == f"{server.url}{BASE}/files/{made.id}"
    assert client.files.get(made.id) == made
    other = sent(server, b"")
    assert (other.size, other.metadata) == (0, {})
    assert [one.id for one in client.files.list()] == [other.id, made.id]
    assert client.files.delete(made.id)
    assert client.files.list() == [other]
    for ask in (client.files.get, client.files.delete):
        with pytest.raises(ReplicateError) as refused:
            ask(made.id)
        assert (refused.value.status, refused.value.title) == (404, "Not found")
    assert not any((server.settings.store.folder / "drafts").iterdir())


def test_a_file_is_read(server: PolymuxServer) -> None:
    """The owner can read it fully or in part. Browsers never run it."""
    body, headers = form(("content", ("page.html", b"<script>0123456789", "text/html; x=y")))
    made = server.ask("POST", f"{BASE}/files", body, headers).json()
    path = made["urls"]["download"].removeprefix(server.url)
    whole = server.ask("GET", path)
    assert (whole.status, whole.body) == (200, b"<script>0123456789")
    assert whole.headers["content-type"] == made["content_type"] == "text/html"
    assert whole.headers["content-disposition"].startswith("attachment")
    assert "sandbox" in whole.headers["content-security-policy"]
    part = server.ask("GET", path, headers=[("Range", "bytes=8-11")])
    assert (part.status, part.body) == (206, b"0123")
    head = server.ask("HEAD", path)
    assert (head.headers["content-length"], head.body) == ("18", b"")
    assert server.ask("GET", path, key=None).status == 401


def test_files_of_others(server: PolymuxServer, backend: ScriptedModels, other_key: str) -> None:
    made = sent(server)
    other = of(server, key=other_key)
    assert other.files.list() == []
    for method, path in (("GET", ""), ("DELETE", ""), ("GET", "/download")):
        answer = server.ask(method, f"{BASE}/files/{made.id}{path}", key=other_key)
        assert answer.status == 404
    for url in (made.urls["get"], made.urls["download"], f"{server.url}/media/{made.id}"):
        with pytest.raises(ReplicateError, match="422"):
            other.run(CONVERT, input={"file": url})
    assert backend.began == []
    # Outputs of predictions are not uploaded files.
    of(server).run(CONVERT, input={"file": made.urls["get"]})
    name = of(server).predictions.list()[0].output.partition("?")[0].rpartition("/")[2]
    assert server.ask("DELETE", f"{BASE}/files/{name}").status == 404
    blind, _ = server.keys.add("counters", scopes=("metrics",))
    assert server.ask("GET", f"{BASE}/files", key=blind).status == 403


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ((), "content"),
        ((("content", ("a", b"x")), ("content", ("b", b"y"))), "content"),
        ((("content", ("a", b"x")), ("colour", "red")), "colour"),
        ((("content", ("a", b"x")), ("metadata", "[1]")), "metadata"),
        ((("content", ("a", b"x")), ("metadata", '{"a": "' + "x" * 20_000 + '"}')), "metadata"),
        ((("content", ("a", b"x")), ("metadata", '{"a":' * 3_000)), "metadata"),
        ((("content", ("a", b"x")), ("filename", "\u00e9" * 200)), "filename"),
    ],
)
def test_forms_that_are_wrong(server: PolymuxServer, fields: Any, param: str) -> None:
    body, headers = form(*fields)
    answer = server.ask("POST", f"{BASE}/files", body, headers)
    assert (answer.status, answer.json()["param"]) == (422, param)
    assert of(server).files.list() == []
    assert not any((server.settings.store.folder / "drafts").iterdir())


def test_files_that_are_too_long(server: PolymuxServer, backend: ScriptedModels) -> None:
    with pytest.raises(ReplicateError) as refused:
        sent(server, b"x" * (2 << 20))
    assert (refused.value.status, refused.value.title) == (413, "Content too large")
    # The file is valid for other operations, but too large for an image.
    made = sent(server, b"x" * 200_000)
    for url in (made.urls["get"], "data:image/png," + "x" * 200_000):
        with pytest.raises(ReplicateError) as too_long:
            of(server).run("nightmareai/real-esrgan", input={"image": url})
        assert too_long.value.status in (413, 422)
    assert backend.began == []
    answer = server.json(f"{BASE}/files", {})
    assert (answer.status, answer.json()["title"]) == (415, "Unsupported media type")


def test_files_outlive_the_server_and_expire(tmp_path: Path) -> None:
    box = Box()
    with scripted_server(tmp_path, box) as server:
        made = sent(server, metadata={"a": 1})
        key = server.key
    with scripted_server(tmp_path, box) as server:
        assert of(server, key=key).files.get(made.id).metadata == {"a": 1}
    with scripted_server(tmp_path, box, store={"retention_s": 0.2}) as server:
        brief = sent(server)
        until(lambda: server.ask("GET", f"{BASE}/files/{brief.id}").status == 404)
        with pytest.raises(ReplicateError, match="422"):
            of(server).run(CONVERT, input={"file": brief.urls["get"]})
        assert of(server).files.list() == []


def test_a_file_may_go_once_it_is_asked_for(server: PolymuxServer, backend: ScriptedModels) -> None:
    """The job has its own copy, and the server makes no request to itself."""
    made = sent(server)
    backend.gate.clear()
    held = of(server).predictions.create(version=CONVERT, input={"file": made.urls["get"]})
    until(lambda: backend.began)
    (work,) = backend.began
    of(server).files.delete(made.id)
    assert work.values["file"].path.read_bytes() == b"samples"
    server.loop.call_soon_threadsafe(backend.gate.set)
    held.wait()
    assert held.status == "succeeded"
    assert not work.values["file"].path.exists()


def test_outputs_are_inputs(server: PolymuxServer, backend: ScriptedModels, other_key: str) -> None:
    """A signed link works for any key. An unsigned URL works only for its owner."""
    of(server).run(CONVERT, input={"file": "data:,x"})
    link = of(server).predictions.list()[0].output
    other = of(server, key=other_key)
    other.run(CONVERT, input={"file": link})
    of(server).run(CONVERT, input={"file": link.partition("?")[0]})
    assert backend.files[1:] == [{"file": MP3}] * 2
    with pytest.raises(ReplicateError, match="422"):
        other.run(CONVERT, input={"file": link.partition("?")[0]})


def test_files_at_addresses(
    server: PolymuxServer, backend: ScriptedModels, elsewhere: MisbehavingServer
) -> None:
    """Downloaded before the job gets a concurrency slot, also for operations without URL inputs."""
    elsewhere.script(steps.answer(200, PICTURE, [("Content-Type", "image/png")]))
    url = f"{elsewhere.url}/a/letter.png?size=large"
    made = of(server).run("polymux/read-text", input={"file": url})
    assert made == {"text": "read"}
    assert backend.files == [{"file": PICTURE}]
    (work,) = backend.began
    assert work.values["file"].file_name == "letter.png"
    request = elsewhere.requests[-1]
    assert request.header("authorization") is None
    prediction = of(server).predictions.list()[0]
    assert prediction.input == {"file": url}
    assert prediction.logs is not None
    assert str(len(PICTURE)) in prediction.logs
    elsewhere.script(steps.answer(200, PICTURE, []), times=2)
    images = {"image": f"{elsewhere.url}/1", "mask": f"{elsewhere.url}/2", "prompt": "x"}
    of(server).run("lorenzomarines/astra", input=images)
    assert backend.files[1] == {"image": PICTURE, "mask": PICTURE}
    until(lambda: not any((server.settings.store.folder / "drafts").iterdir()))


def test_addresses_with_nothing_good(
    server: PolymuxServer, backend: ScriptedModels, elsewhere: MisbehavingServer
) -> None:
    decoy = MisbehavingServer()
    with decoy:
        for url in (decoy.url, f"{server.url}/metrics", "http://user:pw@127.0.0.1/"):
            with pytest.raises(ModelError):
                of(server).run("polymux/read-text", input={"file": url})
        elsewhere.script(steps.redirect(302, decoy.url))
        with pytest.raises(ModelError):
            of(server).run("polymux/read-text", input={"file": elsewhere.url})
        assert decoy.connections == []
    for status, body in ((500, b""), (200, b"x" * 200_000), (200, b"<!doctype html>")):
        elsewhere.script(steps.answer(status, body))
        with pytest.raises(ModelError):
            of(server).run("polymux/read-text", input={"file": elsewhere.url})
    assert backend.began == []
    failed = server.ask("GET", "/api/v1/predictions").json()["results"]
    codes = ["unsupported_media", "too_large", "upstream_failed", *["url_refused"] * 4]
    assert [(one["status"], one["error_code"]) for one in failed] == [
        ("failed", one) for one in codes
    ]
    assert not any((server.settings.store.folder / "drafts").iterdir())


def test_addresses_of_this_server_that_are_no_files(
    server: PolymuxServer, backend: ScriptedModels
) -> None:
    """URLs that only look like files of this server reveal nothing."""
    base = f"{server.url}{BASE}/files"
    for url in (f"{base}/", f"{base}/x", f"{base}/../../../etc/passwd", f"{server.url}/media/x",
                f"{server.url}/media/{'0' * 40}.mp3?exp=9999999999&sig=x"):  # fmt: skip
        with pytest.raises(ReplicateError, match="422"):
            of(server).run(CONVERT, input={"file": url})
    assert backend.began == []
