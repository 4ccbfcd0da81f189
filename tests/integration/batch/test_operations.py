"""Batches of every operation on a server, with its rate limits and errors, and on local engines."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract
from polymux.batches.manifest import report_of
from polymux.batches.spec import BatchSpec
from polymux.errors import AuthenticationError, NoBackendError, OverloadedError
from servers import steps
from servers.misbehaving import MisbehavingServer
from servers.reference import ReferenceServer
from support.batch_kills import noise
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

TEXT_RESULT = steps.answer(200, b'{"response":"fine"}')
#: Operation -> the file name endings of its outputs for one input.
ENDINGS = {
    "chat": [".txt"],
    "free_chat": [".txt"],
    "search_music": [".json"],
    "generate_image": [".png"],
    "upscale_image": [".png"],
    "transcribe": [".txt", ".json"],
    "generate_video": [".mp4"],
    "generate_music": [".wav", "-spectrogram.jpg"],
    "identify_song": [".json"],
    "download_video": [".mp4"],
    "summarize_video": [".txt"],
    "download_music": [".mp3"],
    "convert_to_mp3": [".mp3"],
    "read_text": [".txt"],
}


@pytest.mark.parametrize("operation", [one.name for one in contract.operations()])
def test_every_operation_on_a_server(tmp_path: Path, operation: str) -> None:
    subject = BatchSpec(operation, {})
    inputs: list[Any] = ["https://files.example/a", "https://files.example/b"]
    if subject.is_file:
        inputs = [tmp_path / "a.wav", tmp_path / "b.wav"]
        for number, path in enumerate(inputs):
            path.write_bytes(noise(number))
    fields = {"model": "philz1337x/clarity-upscaler"} if operation == "upscale_image" else {}
    with ReferenceServer() as server, polymux.Client(server.url, server.token) as client:
        given = {"output_dir": tmp_path / "out", "client": client, **fields}
        report = polymux.batch(operation, inputs, **given)
        items = list(report.items())
        assert report.is_complete, items
        count = len(server.calls)
        again = polymux.batch(operation, inputs, resume=True, **given)
        assert (again.kept, len(server.calls)) == (2, count)
        if operation == "generate_image":  # The files of one item are numbered.
            given["output_dir"] = tmp_path / "three"
            (item,) = polymux.batch(operation, ["A boat"], num_outputs=3, **given).items()
            names = [path.name for path in item.outputs]
            assert names == [f"000001-a-boat-{number}.png" for number in (1, 2, 3)]
    for item in items:
        stem = item.outputs[0].stem
        endings = [path.name.removeprefix(stem) for path in item.outputs]
        assert endings == ENDINGS[operation]
        assert all(path.stat().st_size > 0 for path in item.outputs)
    if operation == "transcribe":
        text, whole = (path.read_text() for path in items[0].outputs)
        assert text == "This is a test.\n"
        assert json.loads(whole)["text"] == "This is a test."
        assert json.loads(whole)["chunks"]


def test_a_server_that_asks_for_a_pause_is_given_it_by_all(tmp_path: Path) -> None:
    paused: list[float] = []
    texts = [f"text {number}" for number in range(6)]
    with MisbehavingServer() as server, polymux.Client(server.url, "key") as client:
        for status in (429, 503):
            headers = [("Retry-After", "1")]
            server.script(steps.answer(status, b'{"error":"later"}', headers))
        server.script(TEXT_RESULT, times=None)
        report = polymux.batch(
            "free_chat", texts, output_dir=tmp_path, client=client, workers=2,
            on_progress=lambda now: paused.append(now.paused_s),
        )  # fmt: skip
        count = len(server.requests)
    assert report.is_complete
    assert [item.tries for item in report.items()] == [1] * 6
    assert count == 6 + 2
    assert max(paused) > 0
    # No request is sent before the pause ends, including those that were not refused.
    assert report.elapsed_s >= 0.95


def test_a_wrong_key_ends_it_at_once_and_spoils_nothing(tmp_path: Path) -> None:
    texts = [f"text {number}" for number in range(50)]
    with ReferenceServer() as server:
        with (
            polymux.Client(server.url, "nobody-has-it") as client,
            pytest.raises(AuthenticationError),
        ):
            polymux.batch("free_chat", texts, output_dir=tmp_path, client=client, workers=2)
        with polymux.Client(server.url, server.token) as client:
            report = polymux.batch(
                "free_chat", texts, output_dir=tmp_path, client=client, resume=True
            )
    assert (report.done, report.failed) == (50, 0)


def test_a_server_that_is_gone_for_long_ends_it(tmp_path: Path) -> None:
    with MisbehavingServer() as server, polymux.Client(server.url, "key") as client:
        headers = [("Retry-After", "100000")]
        server.script(steps.answer(503, b'{"error":"tomorrow"}', headers), times=None)
        with pytest.raises(OverloadedError, match="tomorrow"):
            polymux.batch("free_chat", ["a", "b"], output_dir=tmp_path, client=client)
    items = report_of(tmp_path / "polymux-batch.db").items()
    assert "failed" not in [item.state for item in items]


def test_failures_of_single_items(tmp_path: Path) -> None:
    with MisbehavingServer() as server, polymux.Client(server.url, "key", retry=0) as client:
        server.script(TEXT_RESULT)
        server.script(steps.answer(500, b'{"error":"no luck","code":"engine_failed"}'))
        server.script(TEXT_RESULT, times=None)
        report = polymux.batch(
            "free_chat", ["a", "b", "c"], output_dir=tmp_path, client=client, workers=1
        )
    (failed,) = report.items("failed")
    assert failed.error_code == "engine_failed"
    assert "no luck" in (failed.error_message or "")
    assert report.done == 2


def test_nothing_that_could_do_it_here(tmp_path: Path) -> None:
    with pytest.raises(NoBackendError):
        polymux.batch("generate_video", ["a boat"], output_dir=tmp_path)
    assert not (tmp_path / ".polymux-batch").exists()


def test_a_local_of_the_caller(tmp_path: Path) -> None:
    (tmp_path / "in.png").write_bytes(b"a picture")
    with polymux.Local(backends=[Scripted(max_concurrency=2)]) as local:
        report = polymux.batch(
            "read_text", [tmp_path / "in.png"], output_dir=tmp_path / "o", client=local
        )
        made = polymux.batch("convert_to_mp3", [tmp_path / "in.png"], output_dir=tmp_path / "m",
                             client=local)  # fmt: skip
        assert local.read_text(tmp_path / "in.png").text == "read"
    assert (tmp_path / "o/in.txt").read_text() == "read\n"
    assert (tmp_path / "m/in.mp3").read_bytes() == b"ID3 and frames"
    assert report.is_complete
    assert made.is_complete
