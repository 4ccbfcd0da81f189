"""Songs of the catalogue for people, by signed links: a page, and the cover that it shows."""

from __future__ import annotations

import asyncio
import hashlib
import re
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from polymux import errors
from polymux.server.routes.endpoint import Endpoint
from polymux.service.errors import status_error
from polymux.songs.backend import CatalogueBackend
from polymux.songs.pages import COVER, PAGES, POLICY, cover_of, signature, song_page

if TYPE_CHECKING:
    from polymux.server.http.responses import Scope
    from polymux.server.routes.endpoint import RequestContext
    from polymux.songs.results import CatalogueSong

_NUMBER = re.compile(r"[1-9]\d{0,17}", re.ASCII)
#: The link is the key: nobody is told it, and no answer is believed to be anything else.
_SHARED_FIELDS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, max-age=3600"),
)


class _SongEndpoint(Endpoint):
    """What is at a link that answers have named."""

    methods = ("GET", "HEAD")
    public = True

    async def song(self, scope: Scope, suffix: str = "") -> CatalogueSong:
        """The song that a good link names. All others are answered alike."""
        number = scope["path_params"]["id"]
        given = dict(parse_qsl(scope["query_string"].decode("latin-1")))
        service = self.state.service
        good = service.store.links.accepts(
            f"{PAGES}{number}{suffix}", given.get("exp", ""), given.get("sig", "")
        )
        if good and _NUMBER.fullmatch(number):
            for backend in service.backends.values():
                if isinstance(backend, CatalogueBackend):
                    song = await backend.song(int(number))
                    if song is not None:
                        return song
        raise status_error(
            errors.NotFoundError,
            "there is no such song, or its link has expired; asking again gives a new link",
        )


class SongPage(_SongEndpoint):
    """``GET`` and ``HEAD /songs/{id}``: what is known of a song, but for where its file is."""

    name = "song_page"

    async def handle(self, asked: RequestContext) -> None:
        """The page, with a link to the cover that works as long as one made now."""
        song = await self.song(asked.scope)
        store = self.state.service.store
        path = f"{PAGES}{song.id}{COVER}"
        # Relative, so that it leads to where the page came from, whatever lies in between.
        link = f"{song.id}{COVER}?{signature(store, path, self.state.settings.store.retention_s)}"
        fields = [
            (b"content-type", b"text/html; charset=utf-8"),
            (b"content-security-policy", POLICY.encode("ascii")),
            *_SHARED_FIELDS,
        ]
        await asked.send_body(200, song_page(song, link), fields)


class SongCover(_SongEndpoint):
    """``GET`` and ``HEAD /songs/{id}/cover``: a picture, whatever has become of the song's own."""

    name = "song_cover"

    async def handle(self, asked: RequestContext) -> None:
        """Its cover, else one that is drawn; nothing where the caller has it already."""
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
