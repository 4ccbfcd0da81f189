"""Summaries of many parts: progress, cancellation and caching."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux import Client
from polymux.engines.process.supervisor import EngineBackend
from support.fetches import wait_until
from support.summaries import SUMMARIZE, Served
from support.video_site import CAPTIONS

if TYPE_CHECKING:
    from polymux.service.backend import Backend
    from support.http_server import Server
    from support.summaries import ToldSite

SENTENCE = "The river carries every stone down to the sea."
LATER = [("Prefer", "respond-async")]


def heard(count: int) -> list[Any]:
    return [{"timestamp": [float(n), n + 1.0], "text": f"{n:02d} {SENTENCE}"} for n in range(count)]


def test_progress_grows_with_each_part(site: Server, tmp_path: Path) -> None:
    """Checks progress during each chat, before any of them completes."""
    with Served(tmp_path, site, part_characters=500) as server:
        model = server.model
        model.heard = heard(40)
        model.holds(server, "chat")
        with Client(server.url, server.key) as client:
            body = {"url": site.url("/high.mp4")}
            begun = server.json(SUMMARIZE, body, LATER).json()["id"]
            shares = []
            for number in range(1, 6):
                wait_until(lambda number=number: len(model.chats) == number)
                shares.append(float(client.predictions.get(begun).extra["progress"]))
                model.step(server)
            assert client.predictions.wait(begun).output == "summary 5"
    assert shares == pytest.approx([0.6, 0.6875, 0.775, 0.8625, 0.95])


def test_left_in_the_middle(site: Server, tmp_path: Path) -> None:
    number = 3
    with Served(tmp_path, site, part_characters=500) as server:
        model = server.model
        model.heard = heard(40)
        model.holds(server, "chat", number)
        with Client(server.url, server.key) as client:
            body = {"url": site.url("/high.mp4")}
            begun = server.json(SUMMARIZE, body, LATER).json()["id"]
            wait_until(lambda: len(model.chats) == number)
            asked = len(model.asked)
            assert client.predictions.cancel(begun).status == "canceled"
            assert model.ended == ["cancelled"]
            # The slot is free, so the same summary starts from its beginning.
            server.loop.call_soon_threadsafe(model.hold.set)
            assert client.summarize_video(body["url"]).text == f"summary {len(model.chats)}"
            assert len(model.asked) == asked + 6


class Listened(Served):
    def _backends(self) -> list[Backend]:
        options = {"folder": str(self.settings.store.folder.parent)}
        family = "support.summaries:Listening"
        return [EngineBackend("speech", family, ["transcribe"], options), *super()._backends()]


def test_left_while_an_engine_hears_speech(
    site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))
    with Listened(tmp_path, site) as server, Client(server.url, server.key) as client:
        body = {"url": site.url("/high.mp4")}
        begun = server.json(SUMMARIZE, body, LATER).json()["id"]
        wait_until((tmp_path / "began").exists)
        # Halfway between the download and the parts.
        wait_until(lambda: client.predictions.get(begun).extra["progress"] == pytest.approx(0.45))
        assert not (tmp_path / "cancelled").exists()
        assert client.predictions.cancel(begun).status == "canceled"
        wait_until((tmp_path / "cancelled").exists)
        assert server.model.chats == []


def test_chapters_are_parts(captioned_site: tuple[ToldSite, Server], tmp_path: Path) -> None:
    _, web = captioned_site
    with Served(tmp_path, web, part_characters=500) as server:
        model = server.model
        model.heard = [
            {"timestamp": [second, second + 0.2], "text": f"{name} {SENTENCE * 4}"}
            for second, name in [(0.0, "one"), (1.0, "two"), (2.1, "three"), (2.6, "four")]
        ]
        with Client(server.url, server.key) as client:
            assert client.summarize_video(web.url("/chapters/high.mp4")).text == "summary 3"
            prompts = [one["messages"][1]["content"] for one in model.chats]
            assert ["\nTitle: Stones\n" in one for one in prompts] == [True, False, False]
            assert ["\nTitle: Sand\n" in one for one in prompts] == [False, True, False]
            assert "\nTitle: Rivers\n" in prompts[2]
            assert "in part 2 of 2." in prompts[1]
            words = [model.material(number).split() for number in range(2)]
            assert [one[0] for one in words] == ["one", "three"]
            assert ["two" in one for one in words] == [True, False]
            assert ["four" in one for one in words] == [False, True]


def test_summaries_are_cached_by_their_transcript(
    captioned_site: tuple[ToldSite, Server], tmp_path: Path
) -> None:
    """The cache key is the transcript, not the URL: the video or settings may have changed."""
    site, web = captioned_site
    with Served(tmp_path, web) as server, Client(server.url, server.key) as client:

        def summary(address: str = "/page/high.mp4") -> Any:
            return client.summarize_video(web.url(address)).text

        assert [summary(), summary("/page/high.mp4?again")] == ["summary 1"] * 2
        site.captions = 200, CAPTIONS.replace("stones", "sand").encode()
        assert summary() == "summary 2"
        assert "sand" in server.model.material(1)
        summaries: Any = server.state.service.backends["summaries"]
        summaries._options = replace(summaries._options, language="German")
        assert summary() == "summary 3"
        assert "German" in server.model.chats[2]["messages"][0]["content"]
        assert len(server.model.chats) == 3
