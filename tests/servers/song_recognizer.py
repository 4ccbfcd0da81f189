"""A local server that recognizes songs, in the format of `contracts.md` 10."""

from __future__ import annotations

import base64
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qs, urlsplit

from support.http_server import Exchange, Server

if TYPE_CHECKING:
    from collections.abc import Mapping

JSON = "Content-Type: application/json"
#: Invented, with the members of `contracts.md` 10.
TRACK = {
    "layout": "5",
    "type": "MUSIC",
    "key": "40333609",
    "title": "The Blue Danube",
    "subtitle": "Johann Strauss II",
    "images": {
        "background": "https://images.example/background/800x800cc.jpg",
        "coverart": "https://images.example/cover/400x400cc.jpg",
        "coverarthq": "https://images.example/cover/400x400cc.jpg",
    },
    "share": {
        "subject": "The Blue Danube - Johann Strauss II",
        "text": "I found The Blue Danube by Johann Strauss II.",
        "href": "https://www.shazam.example/track/40333609/the-blue-danube",
        "image": "https://images.example/cover/400x400cc.jpg",
        "twitter": "I found The Blue Danube by Johann Strauss II.",
    },
    "hub": {"type": "APPLEMUSIC"},
    "sections": [{"type": "SONG"}],
    "url": "https://www.shazam.example/track/40333609/the-blue-danube",
    "genres": {"primary": "Classical"},
    "isrc": "XXA000000000",
}
SONG = {
    "song_name": "The Blue Danube - Johann Strauss II",
    "songid_url": "https://www.shazam.example/track/40333609/the-blue-danube",
    "song_image": "https://images.example/cover/400x400cc.jpg",
}
ANSWER = {
    "location": {"accuracy": 0.01},
    "timestamp": 1700000000000,
    "timezone": "Europe/London",
    "tagid": "11111111-2222-4333-8444-000000000000",
}
FOUND = {"id": "40333609", "offset": 4.31, "timeskew": -0.0002, "frequencyskew": 0.0}
MATCH = {"matches": [FOUND], **ANSWER, "track": TRACK}
NO_MATCH = {"matches": [], **ANSWER, "retryms": 12000}

Said = Callable[[Exchange], Awaitable[None]]


@dataclass
class Asked:
    """A received request."""

    path: str
    query: dict[str, str]
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def signature(self) -> bytes:
        kind, _, data = self.body["signature"]["uri"].partition(",")
        assert kind == "data:audio/vnd.shazam.sig;base64"
        return base64.b64decode(data, validate=True)


@dataclass
class SongRecognizer:
    answer: Mapping[str, Any] = field(default_factory=lambda: MATCH)
    instead: Said | None = None
    asked: list[Asked] = field(default_factory=list)

    def __enter__(self) -> Self:
        self.server = Server(self._answer)
        self.server.__enter__()
        return self

    def __exit__(self, *exception: object) -> None:
        self.server.__exit__(*exception)

    def settings(self, **more: Any) -> Any:
        from polymux.upstreams.song_recognition.settings import SongRecognitionSettings

        given = {"shazam_url": self.server.url(""), **more}
        return SongRecognitionSettings(("shazam",), **given)

    async def _answer(self, exchange: Exchange) -> None:
        parts = urlsplit(exchange.target)
        query = parse_qs(parts.query, keep_blank_values=True, strict_parsing=True)
        headers = {name.lower(): value for name, value in exchange.headers}
        body = await exchange.reader.readexactly(int(headers.get("content-length", "0")))
        found = {name: one[0] for name, one in query.items()}
        self.asked.append(Asked(parts.path, found, headers, json.loads(body or b"{}")))
        if self.instead is not None:
            await self.instead(exchange)
            return
        await exchange.answer(200, json.dumps(self.answer).encode(), JSON)
