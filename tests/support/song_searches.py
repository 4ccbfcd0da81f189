"""Song searches: the results of each catalog, and servers that search them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
from servers.song_providers import RECORDING, RELEASE

from support.polymux_server import PolymuxServer

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.upstreams.song_search.settings import SongSearchSettings

PATH = "/api/v1/musicsearch"
ITUNES = {
    "song_name": "The Blue Danube 0 - Johann Strauss II",
    "songid_url": "https://music.example/us/album/waltzes/1?i=0&uo=4",
    "song_image": "https://images.example/0/400x400bb.jpg",
}
MUSICBRAINZ = {
    "song_name": "An der schönen blauen Donau 0 - Johann Strauss & Vienna Philharmonic",
    "songid_url": f"https://musicbrainz.org/recording/{RECORDING.format(0)}",
    "song_image": f"https://coverartarchive.org/release/{RELEASE.format(0)}/front-500",
}
SHAZAM = {
    "song_name": "Blue Danube 0 - André Rieu",
    "songid_url": "https://www.shazam.example/song/0/blue-danube",
    "song_image": "https://images.example/0/400x400bb.jpg",
}
ALL = {"itunes": ITUNES, "musicbrainz": MUSICBRAINZ, "shazam": SHAZAM}


def served(folder: Path, settings: SongSearchSettings) -> PolymuxServer:
    return PolymuxServer(folder / "s", engines={}, song_search=settings)


def local(settings: SongSearchSettings) -> polymux.Local:
    return polymux.Local(engines={}, song_search=settings)
