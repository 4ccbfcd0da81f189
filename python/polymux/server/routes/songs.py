"""Pages and covers of songs in the music library, by signed links."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from polymux import errors
from polymux.server.routes.endpoint import Endpoint
from polymux.service.errors import status_error
from polymux.songs.backend import SongIndexBackend
from polymux.songs.pages import COVER, PAGES, POLICY, cover_of, signature, song_page

if TYPE_CHECKING:
    from polymux.server.http.responses import Scope
    from polymux.server.routes.endpoint import RequestContext
    from polymux.songs.results import IndexedSong

_NUMBER = re.compile(r"[1-9]\d{0,17}", re.ASCII)
#: The link grants access: do not leak it through Referer, and prevent content sniffing.
_SHARED_FIELDS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, max-age=3600"),
)


class _SongEndpoint(Endpoint):
    """Base of endpoints behind signed links in answers."""

    methods = ("GET", "HEAD")
    public = True
    query = ("exp", "sig")

    async def song(self, scope: Scope, suffix: str = "") -> IndexedSong:
        """Return the song of a valid link; all other links get the same error."""
        number = scope["path_params"]["id"]
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        service = self.state.service
        good = service.store.links.accepts(
            f"{PAGES}{number}{suffix}", given.get("exp", ""), given.get("sig", "")
        )
        if good and _NUMBER.fullmatch(number):
            for backend in service.backends.values():
                if isinstance(backend, SongIndexBackend):
                    song = await backend.song(int(number))
                    if song is not None:
                        return song
        raise status_error(
            errors.NotFoundError,
            "unknown song or expired link. Repeat the search for a new link",
        )


class SongPage(_SongEndpoint):
    """``GET`` and ``HEAD /songs/{id}``: the song's metadata without its file path."""

    name = "song_page"

    async def handle(self, asked: RequestContext) -> None:
        """Send the page; its cover link is valid as long as a new link."""
        song = await self.song(asked.scope)
        store = self.state.service.store
        path = f"{PAGES}{song.id}{COVER}"
        # Relative, so it works behind any proxy or mount path.
        link = f"{song.id}{COVER}?{signature(store, path, self.state.settings.store.retention_s)}"
        fields = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", POLICY.encode("ascii")),
            *_SHARED_FIELDS,
        ]
        await asked.send_body(200, song_page(song, link), fields)


class SongCover(_SongEndpoint):
    """``GET`` and ``HEAD /songs/{id}/cover``: the song's cover, or a generated image."""

    name = "song_cover"

    async def handle(self, asked: RequestContext) -> None:
        """Send the cover; 304 if the client has it already."""
        song = await self.song(asked.scope, COVER)
        picture = await asyncio.to_thread(cover_of, song)
        tag = f'"{hashlib.sha256(picture.data).hexdigest()[:32]}"'.encode()
        fields = [
            (b"content-type", picture.content_type.encode("ascii")),
            (b"content-security-policy", b"default-src 'none'; sandbox"),
            (b"cross-origin-resource-policy", b"cross-origin"),
            (b"etag", tag),
            *_SHARED_FIELDS,
        ]
        is_known = asked.access.headers.get(b"if-none-match") in (tag, b"*")
        status, body = (304, b"") if is_known else (200, picture.data)
        await asked.send_body(status, body, fields)
