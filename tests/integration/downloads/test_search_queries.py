"""Music search queries: any text, and never interpreted as anything else."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

import pytest
from polymux import Client
from polymux.downloads.settings import DownloadSettings
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy, Judged
from support.fetches import answering
from support.http_server import Server
from support.media_url_server import allowing
from support.polymux_server import PolymuxServer
from support.video_site import certified
from yt_dlp.extractor.youtube._base import INNERTUBE_CLIENTS

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange

PATH = "/api/v1/downloadmusic"


def served(folder: Path, site: Server) -> PolymuxServer:
    policy = allowing(site)
    search = DownloadSettings(music_search=site.url("/find/{query}"))
    return PolymuxServer(folder / "s", fetch=policy, download=search)


def test_texts_that_are_none(site: Server, tmp_path: Path) -> None:
    texts = ["", " ", "\t\n", "\x00", "\u202e", "x" * 301, "x" * 1_000_000, 5, None, ["x"]]
    with served(tmp_path, site) as server:
        for query in texts:
            answer = server.json(PATH, {"query": query})
            assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
            assert "query" in answer.json()["error"]
            assert len(answer.body) < 500
        assert server.ask("GET", "/api/v1/predictions").json()["results"] == []
    assert site.requests == []


@pytest.mark.parametrize(
    "query",
    ['"; NEAR( * % a&b=1#? ../.. %(id)s {query} a\x00b Ü 🎵', "http://127.0.0.1:9/"],
)
def test_texts_that_mean_something_elsewhere(site: Server, tmp_path: Path, query: str) -> None:
    """The text is sent as one escaped path segment (O02 in docs/development/testing.md)."""
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        assert len(client.download_music(query).read()) > 1000
    found = site.requests[0].target.removeprefix("/find/")
    assert unquote(found) == query.replace("\x00", " ")
    assert not set(found) & set("/?#&: ")


#: The host of yt-dlp's own search.
PROVIDER: str = INNERTUBE_CLIENTS["web"]["INNERTUBE_HOST"]
#: An empty list of results, in yt-dlp's format.
NOTHING_FOUND: dict[str, Any] = {
    "contents": {
        "twoColumnSearchResultsRenderer": {
            "primaryContents": {"sectionListRenderer": {"contents": []}}
        }
    }
}


class Provider:
    """A local stand-in for yt-dlp's search provider. Finds nothing and records requests."""

    def __init__(self, folder: Path) -> None:
        self.queries: list[Any] = []
        self.certificate = certified(folder, f"DNS:{PROVIDER}")
        both = self.certificate.with_name("both.pem")
        self.server = Server(self._answer, certificate=both)

    async def _answer(self, exchange: Exchange) -> None:
        if urlsplit(exchange.target).path.endswith("/search"):
            fields = {name.lower(): value for name, value in exchange.headers}
            asked = json.loads(await exchange.reader.readexactly(int(fields["content-length"])))
            self.queries.append(asked["query"])
            found = json.dumps(NOTHING_FOUND).encode()
            await exchange.answer(200, found, "Content-Type: application/json")
        else:
            await exchange.answer(200, b"<html></html>", "Content-Type: text/html")


@pytest.mark.parametrize("query", ["//{decoy}/x", "file:///etc/passwd"])
def test_the_search_that_is_there_by_default(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, query: str
) -> None:
    """yt-dlp searches for every query, even if it looks like a URL, and contacts only one host.

    All its requests use the proxy, whose name resolution the test controls.
    """
    provider = Provider(tmp_path)
    ways: list[str] = []

    async def judged(url: str, **_: Any) -> Judged:
        ways.append(url)
        assert urlsplit(url).hostname == PROVIDER
        return Judged(PROVIDER, provider.server.port, ("127.0.0.1",))

    async def not_judged(url: str, **_: Any) -> Judged:
        raise AssertionError(f"{url} is taken for an address")

    monkeypatch.setattr("polymux.downloads.proxy.ajudged", judged)
    monkeypatch.setattr("polymux.downloads.downloader.ajudged", not_judged)
    policy = FetchPolicy(certificate_bundle=provider.certificate)
    with Server(answering(200, b"secret")) as decoy, provider.server:
        text = query.replace("{decoy}", decoy.authority)
        with PolymuxServer(tmp_path / "s", fetch=policy) as server:
            assert server.settings.download.music_search == "ytsearch1:{query}"
            answer = server.json(PATH, {"query": text})
        assert decoy.connections == 0
    assert (answer.status, answer.json()["code"]) == (404, "no_result"), answer.body
    assert set(ways) == {f"https://{PROVIDER}:443/"}
    assert provider.queries == [text]


@pytest.mark.parametrize(
    "template",
    ["{query}", "http:{query}", "https://{query}/", "https://a.{query}", "file:///{query}",
     "//page.example/{query}", "data:{query}", "x{query}: ytsearch1:", "ytsearch1:"],
)  # fmt: skip
def test_templates_in_which_a_query_could_be_an_address(template: str) -> None:
    with pytest.raises(InvalidRequestError, match="music_search"):
        DownloadSettings(music_search=template)


@pytest.mark.parametrize(
    ("template", "wanted"),
    [
        ("ytsearch1:{query}", ("ytsearch1://page.example/?", False)),
        ("scsearch5:live {query}", ("scsearch5:live //page.example/?", False)),
        ("https://page.example/?q={query}",
         ("https://page.example/?q=%2F%2Fpage.example%2F%3F", True)),
        ("HTTP://page.example:8080/find/{query}.html",
         ("HTTP://page.example:8080/find/%2F%2Fpage.example%2F%3F.html", True)),
    ],
)  # fmt: skip
def test_what_is_opened_for_a_query(template: str, wanted: tuple[str, bool]) -> None:
    assert DownloadSettings(music_search=template).search("//page.example/?") == wanted
