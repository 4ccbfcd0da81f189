"""Three local song catalogs, after their public documentation.

iTunes: Apple's "iTunes Search API". MusicBrainz: "MusicBrainz API", its pages "Search" and "Rate
Limiting". Shazam: the format of "Search for Catalog Resources" of Apple Music's API.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from support.http_server import Exchange, Server

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = "Content-Type: application/json"
#: Each answer closes its connection.
CLOSE = "Connection: close"
#: A text without results in any catalog.
UNKNOWN = "nothing of that name"
KNOWN = 60
RECORDING = "11111111-2222-4333-8444-{:012d}"
RELEASE = "aaaaaaaa-bbbb-4ccc-8ddd-{:012d}"

Said = Callable[[Exchange], Awaitable[None]]


@dataclass
class Asked:
    """A received request."""

    provider: str
    query: dict[str, str]
    headers: dict[str, str]
    path: str


@dataclass
class SongProviders:
    """All three on one server. Use it as a context manager."""

    instead: dict[str, Said] = field(default_factory=dict)
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.server = Server(self._answer)
        self.server.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.__exit__(*exception)

    @property
    def url(self) -> str:
        return self.server.url("")

    def settings(self, *providers: str, **more: Any) -> Any:
        from polymux.upstreams.song_search.settings import SongSearchSettings

        urls = {f"{name}_url": self.url for name in ("itunes", "musicbrainz", "shazam")}
        given = {"contact": "music@site.example", **urls, **more}
        return SongSearchSettings(providers or ("itunes",), **given)

    def count(self, provider: str) -> int:
        return sum(one.provider == provider for one in self.asked)

    async def _answer(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.target)
        query = {name: one[0] for name, one in parse_qs(parts.query, strict_parsing=True).items()}
        headers = {name.lower(): value for name, value in exchange.headers}
        steps = parts.path.split("/")[1:]
        provider, say = "", _unknown
        if steps == ["search"]:
            provider, say = "itunes", _itunes
        elif steps == ["ws", "2", "recording"]:
            provider, say = "musicbrainz", _musicbrainz
        elif steps[:4] == ["services", "amapi", "v1", "catalog"] and steps[5:] == ["search"]:
            provider, say = "shazam", _shazam
        one = Asked(provider, query, headers, parts.path)
        self.asked.append(one)
        if provider in self.instead:
            await self.instead[provider](exchange)
            return
        status, value = say(one)
        # iTunes sends line ends before its answer and labels it as JavaScript.
        body = b"\n\n\n" * (provider == "itunes") + json.dumps(value).encode()
        kind = "Content-Type: text/javascript; charset=utf-8" if provider == "itunes" else JSON
        await exchange.answer(status, body, kind, CLOSE)


def _unknown(asked: Asked) -> tuple[int, Any]:
    return 404, {"error": asked.path}


def _numbers(text: str, limit: int) -> range:
    return range(0 if text == UNKNOWN else min(limit, KNOWN))


def _itunes(asked: Asked) -> tuple[int, Any]:
    query = asked.query
    wanted = {"media": "music", "entity": "song"}
    if not query.get("term") or wanted.items() - query.items():
        return 400, {"errorMessage": "Invalid value(s)"}
    if not 1 <= int(query.get("limit", "50")) <= 200 or len(query.get("country", "US")) != 2:
        return 400, {"errorMessage": "Invalid value(s) for key(s)"}
    results = [itunes_song(n) for n in _numbers(query["term"], int(query["limit"]))]
    return 200, {"resultCount": len(results), "results": results}


def itunes_song(number: int) -> dict[str, Any]:
    return {
        "wrapperType": "track",
        "kind": "song",
        "trackId": number,
        "trackName": f"The Blue Danube {number}",
        "artistName": "Johann Strauss II",
        "trackViewUrl": f"https://music.example/us/album/waltzes/1?i={number}&uo=4",
        "artworkUrl60": f"https://images.example/{number}/60x60bb.jpg",
        "artworkUrl100": f"https://images.example/{number}/100x100bb.jpg",
    }


def _musicbrainz(asked: Asked) -> tuple[int, Any]:
    query = asked.query
    agent = asked.headers.get("user-agent", "")
    if "@" not in agent and "http" not in agent:
        return 403, {"error": "Your requests do not have a meaningful User-Agent"}
    if query.get("fmt") != "json" or not query.get("query"):
        return 400, {"error": "Unable to parse search query"}
    if not 1 <= int(query.get("limit", "25")) <= 100:
        return 400, {"error": "limit"}
    found = [recording(n) for n in _numbers(query["query"], int(query["limit"]))]
    return 200, {
        "created": "2026-01-01T00:00:00.000Z",
        "count": len(found),
        "offset": 0,
        "recordings": found,
    }


def recording(number: int) -> dict[str, Any]:
    return {
        "id": RECORDING.format(number),
        "score": 100 - number,
        "title": f"An der schönen blauen Donau {number}",
        "length": 600000,
        "artist-credit": [
            {"name": "Johann Strauss", "joinphrase": " & ", "artist": {"name": "J. Strauss"}},
            {"name": "Vienna Philharmonic", "artist": {"name": "Wiener Philharmoniker"}},
        ],
        "releases": [
            {"id": RELEASE.format(1000 + number), "title": "Copied", "status": "Bootleg"},
            {"id": RELEASE.format(number), "title": "Waltzes", "status": "Official"},
        ],
    }


def _shazam(asked: Asked) -> tuple[int, Any]:
    query = asked.query
    if query.get("types") != "songs" or not query.get("term"):
        return 400, {"errors": [{"code": "40005", "status": "400", "title": "Invalid Parameter"}]}
    if not 1 <= int(query.get("limit", "5")) <= 25:
        return 400, {"errors": [{"code": "40005", "status": "400", "title": "Invalid Parameter"}]}
    data = [shazam_song(n) for n in _numbers(query["term"], int(query.get("limit", "5")))]
    return 200, {"results": {"songs": {"href": asked.path, "data": data}} if data else {}}


def shazam_song(number: int) -> dict[str, Any]:
    return {
        "id": str(number),
        "type": "songs",
        "attributes": {
            "name": f"Blue Danube {number}",
            "artistName": "André Rieu",
            "url": f"https://www.shazam.example/song/{number}/blue-danube",
            "artwork": {
                "width": 3000,
                "height": 3000,
                "url": f"https://images.example/{number}/{{w}}x{{h}}bb.jpg",
            },
        },
    }


def status(number: int, *headers: str, body: bytes = b"{}") -> Said:

    async def say(exchange: Exchange) -> None:
        await exchange.answer(number, body, JSON, CLOSE, *headers)

    return say


def value(found: Mapping[str, Any] | list[Any] | str | None) -> Said:
    return status(200, body=json.dumps(found).encode())


async def silent(exchange: Exchange) -> None:
    await exchange.closed()


async def endless(exchange: Exchange) -> None:
    """Send 200 MB, or as much as the client accepts."""
    head = f"HTTP/1.1 200 OK\r\n{JSON}\r\nContent-Length: {200 << 20}\r\n\r\n"
    await exchange.send(head.encode() + b'{"results": [')
    for _ in range(200):
        await exchange.send(b" " * (1 << 20))
        await asyncio.sleep(0)
