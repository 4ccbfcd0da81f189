"""What is looked for by who wants music: any text, and nothing but a text."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import unquote

import pytest
from polymux import Client
from polymux.downloads.settings import DownloadSettings
from polymux.fetching import FetchPolicy
from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Server

PATH = "/api/v1/downloadmusic"


def served(folder: Path, site: Server) -> PolymuxServer:
    policy = FetchPolicy(allowed_hosts=(site.authority,))
    search = DownloadSettings(music_search=site.url("/find/{query}"))
    return PolymuxServer(folder / "s", fetch=policy, download=search)


@pytest.mark.parametrize(
    "query", ["", " ", "\t\n", "\x00", "\u202e", "x" * 301, "x" * 1_000_000, 5, None, ["x"]]
)
def test_texts_that_are_none(site: Server, tmp_path: Path, query: object) -> None:
    """O02."""
    with served(tmp_path, site) as server:
        answer = server.json(PATH, {"query": query})
        assert server.ask("GET", "/api/v1/predictions").json()["results"] == []
    assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
    assert "query" in answer.json()["error"]
    assert len(answer.body) < 500
    assert site.requests == []


@pytest.mark.parametrize(
    "query",
    ['"; DROP TABLE x;--', "NEAR( * % _", "a&b=1#?", "../..", "http://127.0.0.1:9/",
     "--exec=touch x", "%(id)s {query}", "Ü 🎵", "a\x00b"],
)  # fmt: skip
def test_texts_that_mean_something_elsewhere(site: Server, tmp_path: Path, query: str) -> None:
    """O02: a search gets them as they are, in one segment of its address."""
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        assert len(client.download_music(query).read()) > 1000
    found = site.requests[0].target.removeprefix("/find/")
    assert unquote(found) == query.replace("\x00", " ")
    assert not set(found) & set("/?#&: ")
