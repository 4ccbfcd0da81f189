from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.errors import InvalidRequestError
from polymux.runtime.build import backends_of
from polymux.server.settings.settings import ServerSettings, read_settings
from polymux.upstreams.song_search.settings import SongSearchSettings, proxy_place
from support.commands import run

if TYPE_CHECKING:
    from pathlib import Path

GOOD = """
[routes]
search_music = ["song_search"]
[song_search]
providers = ["musicbrainz", "itunes"]
contact = "music@site.example"
country = "AT"
deadline_s = 20
cache_bytes = 0
cache_s = 60
allowed_proxies = ["http://proxy.example:3128"]
"""


def test_nothing_is_asked_by_default() -> None:
    settings = ServerSettings(engines={})
    assert settings.song_search.providers == ()
    assert all("search_music" not in one.operations for one in backends_of(settings))


def test_settings_are_read(tmp_path: Path) -> None:
    (tmp_path / "polymux.toml").write_text(f"{GOOD}\n[engines.media]\n")
    settings = read_settings(tmp_path / "polymux.toml")
    found = settings.song_search
    assert found.providers == ("musicbrainz", "itunes")
    assert (found.country, found.deadline_s, found.cache_bytes) == ("AT", 20, 0)
    assert found.allowed_proxies == ("http://proxy.example:3128",)
    backend = backends_of(settings)[-1]
    assert (backend.name, backend.operations) == ("song_search", {"search_music"})
    done = run("config", "check", "polymux.toml", cwd=tmp_path)
    assert "polymux.toml" in done.stdout.decode()


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ('providers = ["deezer"]', "song_search.providers=['deezer']"),
        ('providers = ["itunes", "itunes"]', "song_search.providers="),
        ('providers = ["musicbrainz"]', "song_search.contact"),
        ('contact = "me"', "song_search.contact='me'"),
        ('country = "USA"', "song_search.country='USA'"),
        ('itunes_url = "file:///etc"', "song_search.itunes_url: 'file:///etc'"),
        ('shazam_url = "https://a:b@c"', "song_search.shazam_url: 'https://***@c'"),
        ('allowed_proxies = ["proxy.example"]', "song_search.allowed_proxies=['proxy.example']"),
    ],
)
def test_what_is_wrong_is_named(tmp_path: Path, given: str, expected: str) -> None:
    (tmp_path / "polymux.toml").write_text(f"[song_search]\n{given}\n")
    with pytest.raises(InvalidRequestError) as caught:
        read_settings(tmp_path / "polymux.toml")
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    "contact",
    ["a@b.example\r\nX-Evil: 1", "a@b.example)", "ä@b.example", "http://", "@", "x" * 300],
)
def test_a_contact_is_no_way_into_the_header(contact: str) -> None:
    with pytest.raises(InvalidRequestError, match="contact="):
        SongSearchSettings(("musicbrainz",), contact)


def test_contacts() -> None:
    for contact in ("music@site.example", "https://site.example/about?x=1"):
        assert SongSearchSettings(("musicbrainz",), contact).contact == contact


@pytest.mark.parametrize(
    ("proxy", "place"),
    [
        ("http://proxy.example:3128/", "http://proxy.example:3128"),
        ("HTTP://u:p@PROXY.example:3128", "http://proxy.example:3128"),
        ("socks5h://[::1]:1080", "socks5h://[::1]:1080"),
        ("http://proxy.example:3128@127.0.0.1:1", "http://127.0.0.1:1"),
        ("http://proxy.example", None),
        ("http://proxy.example:99999", None),
        ("http://proxy.example:3128/path", None),
        ("http://proxy.example:3128?x", None),
        ("http://[::1:3128", None),
        ("", None),
    ],
)
def test_what_a_proxy_is_compared_by(proxy: str, place: str | None) -> None:
    assert proxy_place(proxy) == place
