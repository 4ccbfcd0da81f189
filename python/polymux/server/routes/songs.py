"""The music library: its list, and pages, covers and files of songs by signed links."""

from __future__ import annotations

import asyncio
import hashlib
import os
import re
import stat
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qsl

from polymux import errors
from polymux._native import core
from polymux.server.routes.endpoint import Endpoint
from polymux.server.routes.files import has_tag, send_file
from polymux.server.routes.predictions import cursor_of, page_url
from polymux.service.errors import status_error
from polymux.service.media_store import StoredFile
from polymux.songs.backend import SongIndexBackend
from polymux.songs.pages import (
    AUDIO,
    COVER,
    PAGES,
    POLICY,
    SignedAddresses,
    cover_of,
    signature,
    song_page,
)

if TYPE_CHECKING:
    from polymux.server.http.responses import Scope
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.songs.results import IndexedSong

SONGS = "/api/v1/songs"
_ON_A_PAGE = 100
#: Only these files are sent: an index can name others, such as a file that replaced a song.
_AUDIO_SUFFIXES = frozenset({
    ".aac", ".aif", ".aiff", ".flac", ".m4a", ".mp3", ".oga", ".ogg", ".opus", ".wav", ".wma",
})  # fmt: skip
_NUMBER = re.compile(r"[1-9]\d{0,17}", re.ASCII)
#: The link grants access: do not leak it through Referer, and prevent content sniffing.
_SHARED_FIELDS = (
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cache-control", b"private, max-age=3600"),
)


def _library(state: ServerState) -> SongIndexBackend | None:
    backends = state.service.backends.values()
    return next((one for one in backends if isinstance(one, SongIndexBackend)), None)


class SongList(Endpoint):
    """``GET /api/v1/songs``: the songs of the music library by ID, with signed links."""

    name = "songs"
    kind = "api"
    query = ("cursor",)

    async def handle(self, asked: RequestContext) -> Any:
        cursor = cursor_of(asked.scope["query_string"], _NUMBER)
        library = _library(self.state)
        songs: list[IndexedSong] = []
        count = 0
        if library is not None:
            after = int(cursor[0]) if cursor else 0
            songs, count = await library.songs_after(after, _ON_A_PAGE + 1)
        shown = songs[:_ON_A_PAGE]
        store = self.state.settings.store
        links = SignedAddresses(
            self.state.settings.base_url, self.state.service.store, store.retention_s
        )
        more = len(songs) > _ON_A_PAGE
        return {
            "previous": None,
            "next": page_url(self.state, SONGS, str(shown[-1].id)) if more else None,
            "count": count,
            "results": [_described(one, links) for one in shown],
        }


def _described(song: IndexedSong, links: SignedAddresses) -> dict[str, Any]:
    is_audio = song.path.suffix.lower() in _AUDIO_SUFFIXES
    return {
        "id": song.id,
        "title": song.title,
        "artist": song.artist,
        "album": song.album,
        "year": song.year,
        "duration_s": song.duration_s,
        "page_url": links.page(song),
        "cover_url": links.cover(song),
        "audio_url": links.audio(song) if is_audio else None,
    }


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
        library = _library(self.state)
        if good and library is not None and _NUMBER.fullmatch(number):
            song = await library.song(int(number))
            if song is not None:
                return song
        raise status_error(
            errors.NotFoundError,
            "unknown song or expired link. Repeat the search for a new link",
        )


class SongPage(_SongEndpoint):
    """``GET`` and ``HEAD /songs/{id}``: the song's metadata without its file path."""

    name = "song_page"
    kind = "web_ui"

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
    kind = "web_ui"

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
        is_known = has_tag(asked.access.headers.get(b"if-none-match"), tag)
        status, body = (304, b"") if is_known else (200, picture.data)
        await asked.send_body(status, body, fields)


class SongAudio(_SongEndpoint):
    """``GET`` and ``HEAD /songs/{id}/audio``: the song's file, or a part of it."""

    name = "song_audio"
    kind = "web_ui"

    async def handle(self, asked: RequestContext) -> None:
        song = await self.song(asked.scope, AUDIO)
        opened = await asyncio.to_thread(_opened, song)
        if opened is None:
            raise status_error(errors.NotFoundError, "the file of this song is missing")
        file, descriptor = opened
        try:
            await send_file(asked, file, descriptor)
        finally:
            os.close(descriptor)


def _opened(song: IndexedSong) -> tuple[StoredFile, int] | None:
    """Open the file of a song; None if it is missing or not an audio file."""
    suffix = song.path.suffix.lower()
    if suffix not in _AUDIO_SUFFIXES:
        return None
    try:
        # Without O_NONBLOCK, a named pipe would block.
        descriptor = os.open(song.path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    except OSError:
        return None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        return None
    state = f"{status.st_dev} {status.st_ino} {status.st_size} {status.st_mtime_ns}"
    file = StoredFile(
        name=str(song.id),
        job="",
        owner="",
        sha256=hashlib.sha256(state.encode()).hexdigest(),
        size_bytes=status.st_size,
        content_type=core.content_type_of(f"song{suffix}"),
        file_name=f"{song.name}{suffix}",
        created_at=status.st_mtime,
        expires_at=0.0,
    )
    return file, descriptor
