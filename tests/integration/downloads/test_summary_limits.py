"""What a summary may cost, whatever a site sends and an operator writes."""

from __future__ import annotations

import threading
import urllib.request
from typing import TYPE_CHECKING, Any

import pytest
from polymux import Client, errors
from polymux.summaries import backend
from polymux.summaries.captions import read_captions
from polymux.summaries.prompts import Writer
from support.fetches import wait_until
from support.summaries import SUMMARIZE, Served

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from support.web import Server

#: Far more than it takes, and far less than what grows with the square of the lines.
_SOON_S = 30.0
_HELD_S = 30.0
TOO_LONG = r"10 parts.* 3 are read.*max_parts"


@pytest.mark.parametrize("step", ["read", "cut"])
def test_the_server_answers_while_captions_are_at_work(
    site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    begun, answered = threading.Event(), threading.Event()

    def held(work: Callable[..., Any]) -> Callable[..., Any]:
        def run(*given: Any) -> Any:
            begun.set()
            answered.wait(_HELD_S)
            return work(*given)

        return run

    if step == "read":
        monkeypatch.setattr(backend, "read_captions", held(read_captions))
    else:
        monkeypatch.setattr(Writer, "parts", held(Writer.parts))
    with Served(tmp_path, site) as server, Client(server.url, server.key) as client:
        body = {"url": site.url("/page/high.mp4")}
        begun_job = server.json(SUMMARIZE, body, [("Prefer", "respond-async")]).json()
        assert begun.wait(_HELD_S)
        with urllib.request.urlopen(f"{server.url}/healthz", timeout=_HELD_S / 3) as answer:
            assert answer.status == 200
        answered.set()
        assert client.predictions.wait(begun_job["id"]).output == "summary 1"


def test_a_transcript_of_too_many_parts(site: Server, tmp_path: Path) -> None:
    with Served(tmp_path, site, part_characters=500, max_parts=3) as server:
        sentence = "The river carries every stone down to the sea."
        server.model.heard = [
            {"timestamp": [float(n), n + 1.0], "text": sentence} for n in range(100)
        ]
        with Client(server.url, server.key) as client:
            with pytest.raises(errors.RequestTooLargeError, match=TOO_LONG) as caught:
                client.summarize_video(site.url("/silent/high.mp4"))
            assert (caught.value.status, caught.value.code) == (413, "too_large")
            assert server.model.chats == []
            server.model.heard = server.model.heard[:30]
            assert client.summarize_video(site.url("/silent/high.mp4")).text == "summary 4"


def test_time_for_all_of_it(site: Server, tmp_path: Path) -> None:
    """Chats count, as the download does; what is at work is ended."""
    with Served(tmp_path, site, total_s=15.0) as server:
        server.model.holds(server, "chat")
        told = pytest.raises(errors.InternalServerError, match=r"15 s.*total_s")
        with Client(server.url, server.key) as client, told as caught:
            client.summarize_video(site.url("/silent/high.mp4"))
        assert (caught.value.status, caught.value.code) == (504, "upstream_timeout")
        wait_until(lambda: server.model.ended)
        assert [one.operation for one in server.model.asked] == ["transcribe", "chat"]
        assert server.model.ended == ["cancelled"]


def test_a_model_that_nobody_has(site: Server, tmp_path: Path) -> None:
    """No fault of the caller's, and known before anything is fetched."""
    with Served(tmp_path, site, model="typo") as server, Client(server.url, server.key) as client:
        with pytest.raises(errors.NoBackendError) as caught:
            client.summarize_video(site.url("/page/high.mp4"))
        assert caught.value.status == 501
        assert all(word in str(caught.value) for word in ("[summaries]", "typo", "small"))
    assert site.requests == []
