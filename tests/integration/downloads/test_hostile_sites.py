"""Hostile URLs in pages, lists and names, and files in the environment. Case IDs: testing.md."""

from __future__ import annotations

import json
import os
import signal
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Client, errors
from polymux.downloads.settings import DownloadSettings
from support.fetches import answering, showing, wait_until
from support.http_server import Exchange, Server
from support.media_url_server import allowing, downloaders
from support.polymux_server import CONVERT, PolymuxServer, form
from support.video_site import PAGE

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = b"secret-canary"


@pytest.fixture
def decoy() -> Iterator[Server]:
    with Server(answering(200, SECRET)) as running:
        yield running


def served(folder: Path, *sites: Server, **download: Any) -> PolymuxServer:
    policy = allowing(*sites)
    return PolymuxServer(folder / "s", fetch=policy, download=DownloadSettings(**download))


def low(folder: Path) -> tuple[str, bytes]:
    return "video/mp4", (folder / "low.mp4").read_bytes()


def failure(server: PolymuxServer, url: str) -> errors.APIStatusError:
    with (
        server,
        Client(server.url, server.key, retry=0) as client,
        pytest.raises(errors.APIStatusError) as caught,
    ):
        client.download_video(url)
    assert SECRET.decode() not in str(caught.value.body)
    assert list((server.settings.store.folder / "drafts").iterdir()) == []
    return caught.value


HTML = "text/html; charset=utf-8"
M3U8 = "application/vnd.apple.mpegurl"
MPD = "application/dash+xml"
#: HLS lists, with a line before the segment and the segment's URL.
PARTS = "#EXTM3U\n#EXT-X-TARGETDURATION:1\n{}#EXTINF:1,\n{}\n#EXT-X-ENDLIST\n"
KEY = '#EXT-X-KEY:METHOD=AES-128,URI="{}"\n'
MAP = '#EXT-X-MAP:URI="{}"\n'
PASSWORDS = "file:///etc/passwd"
MANIFEST = (
    '<MPD xmlns="urn:mpeg:dash:schema:mpd:2011" type="static" mediaPresentationDuration="PT1S">'
    '<BaseURL>{}/</BaseURL><Period><AdaptationSet mimeType="video/mp4"><Representation id="1" '
    'bandwidth="1"><BaseURL>{}</BaseURL></Representation></AdaptationSet></Period></MPD>'
)
#: ``DECOY`` stands for the URL of a private host.
HARMFUL = {
    "video": (HTML, '<html><video src="DECOY/a.mp4"></video></html>'),
    "iframe": (HTML, '<html><iframe src="DECOY/embed.html"></iframe></html>'),
    "refresh": (HTML, '<html><meta http-equiv="refresh" content="0; url=DECOY/a.mp4"></html>'),
    "segment": (M3U8, PARTS.format("", "DECOY/a.ts")),
    "file segment": (M3U8, PARTS.format("", PASSWORDS)),
    "key": (M3U8, PARTS.format(KEY.format("DECOY/key"), "/low.mp4")),
    "file key": (M3U8, PARTS.format(KEY.format(PASSWORDS), "/low.mp4")),
    "file map": (M3U8, PARTS.format(MAP.format(PASSWORDS), "/low.mp4")),
    "nested": (M3U8, "#EXTM3U\n#EXT-X-STREAM-INF:BANDWIDTH=1\nDECOY/list.m3u8\n"),
    "file base": (MPD, MANIFEST.format("file:///etc", "passwd")),
    "bomb": (MPD, f'<!DOCTYPE a [<!ENTITY b "{"x" * 10_000}">]><MPD>&b;&b;&b;</MPD>'),
}


@pytest.mark.parametrize("name", HARMFUL)
def test_where_pages_lead(site_folder: Path, tmp_path: Path, decoy: Server, name: str) -> None:
    kind, text = HARMFUL[name]
    text = text.replace("DECOY", f"http://{decoy.authority}")
    with Server(showing({"/page": (kind, text), "/low.mp4": low(site_folder)})) as site:
        error = failure(served(tmp_path, site, total_s=30), site.url("/page"))
    assert error.status in (400, 404, 415, 422, 502), error
    assert "--" not in str(error)  # yt-dlp's advice about its own options.
    if name in ("file segment", "file key", "file map"):
        assert (error.status, error.code) == (400, "url_refused")
    assert "root:" not in str(error.body)
    assert decoy.connections == 0
    assert len(site.requests) < 20


def test_titles_are_names_and_nothing_else(site_folder: Path, tmp_path: Path) -> None:
    title = "-o../../../etc/%(id)s\nb\rc\u202egpj.exe" + "x" * 4000
    page = HTML, PAGE.format(title=title, source="/low.mp4", more="")
    with (
        Server(showing({"/page": page, "/low.mp4": low(site_folder)})) as site,
        served(tmp_path, site) as server,
        Client(server.url, server.key) as client,
    ):
        kept = client.download_video(site.url("/page")).save(tmp_path / "kept")
    assert polymux.probe(kept).duration_s > 2
    made = {one.relative_to(tmp_path).parts[0] for one in tmp_path.rglob("*")}
    assert made == {"s", "kept"}


def test_ten_thousand_videos_on_a_page(site_folder: Path, tmp_path: Path) -> None:
    """The first video is used (U41)."""
    videos = "".join(f'<video src="/low.mp4?{n}"></video>' for n in range(10_000))
    page = HTML, f"<html>{videos}</html>"
    with (
        Server(showing({"/page": page, "/low.mp4": low(site_folder)})) as site,
        served(tmp_path, site, total_s=60) as server,
        Client(server.url, server.key) as client,
    ):
        client.download_video(site.url("/page")).save(tmp_path / "kept")
    asked = [one for one in site.requests if one.target.startswith("/low.mp4")]
    assert len(asked) <= 3


def watched_environments(site: Server) -> list[bytes]:
    found: list[bytes] = []
    answer = site.script

    async def script(exchange: Exchange) -> None:
        for pid in downloaders():
            with suppress(OSError):  # The process may have ended.
                found.append(Path(f"/proc/{pid}/environ").read_bytes())
        await answer(exchange)

    site.script = script
    return found


def test_what_is_planted_around_is_not_read(
    site: Server,
    tmp_path: Path,
    decoy: Server,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Configuration, plugins, netrc, cookies, proxies and secrets of the machine (U48 and U49)."""
    caplog.set_level("DEBUG")
    home = tmp_path / "home"
    (home / ".config" / "yt-dlp").mkdir(parents=True)
    (home / ".config" / "yt-dlp" / "config").write_text(f"--exec touch {tmp_path / 'canary'}\n")
    (home / "yt-dlp.conf").write_text(f"--proxy http://{decoy.authority}\n")
    (home / ".netrc").write_text(f"machine 127.0.0.1 login a password {SECRET.decode()}\n")
    plugin = home / ".config" / "yt-dlp" / "plugins" / "mine" / "yt_dlp_plugins" / "extractor"
    plugin.mkdir(parents=True)
    (plugin / "x.py").write_text(f"open({str(tmp_path / 'plugin')!r}, 'w')\n")
    beside = home / "yt_dlp_plugins" / "extractor"
    beside.mkdir(parents=True)
    (beside / "y.py").write_text(f"open({str(tmp_path / 'plugin')!r}, 'w')\n")
    for place in (home, home / ".config" / "yt-dlp"):
        (place / "cookies.txt").write_text(
            "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\tplanted\t1\n"
        )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home / ".config"))
    monkeypatch.chdir(home)
    for name in ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, f"http://{decoy.authority}")
    for name in ("CLOUD_SECRET_KEY", "POLYMUX_API_KEY", "YT_DLP_TOKEN"):
        monkeypatch.setenv(name, f"{name}-{SECRET.decode()}")
    environments = watched_environments(site)
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        client.download_video(site.url("/page/low.mp4")).save(tmp_path / "kept")
        answer = server.json("/api/v1/downloadvideo", {"url": site.url("/status/403")})
    assert answer.status == 502
    assert b"PATH=" in b"".join(environments)
    exposed = [(tmp_path / "kept").read_bytes(), caplog.text.encode(), *environments]
    exposed.append(repr((answer.headers, answer.body)).encode())
    exposed += [repr((one.target, one.headers)).encode() for one in site.requests]
    assert not any(SECRET in one for one in exposed)
    assert not (tmp_path / "canary").exists()
    assert not (tmp_path / "plugin").exists()
    assert decoy.connections == 0
    fields = [name.lower() for one in site.requests for name, _ in one.headers]
    assert "authorization" not in fields
    assert "cookie" not in fields


def test_options_are_no_addresses(
    site: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither as options nor as names of files that contain options (U31)."""
    home = tmp_path / "home"
    home.mkdir()
    canary = home / "canary"
    (home / "planted").write_text(f"--exec touch {canary}\n{site.url('/page/low.mp4')}\n")
    monkeypatch.chdir(home)
    with served(tmp_path, site, music_search=site.url("/find/{query}")) as server:
        for word in (
            "--exec=touch canary", "-ocanary", "--config-locations=planted", "-a planted",
            "@planted",
        ):  # fmt: skip
            for path in ("downloadvideo", "videosummarization"):
                assert server.json(f"/api/v1/{path}", {"url": word}).status == 400
            # Without an engine for transcription, its URL is not checked.
            for path, status in (("convert2mp3", 400), ("modelhost/stt", 501)):
                body, headers = form(("url", word))
                assert server.ask("POST", f"/api/v1/{path}", body, headers).status == status
        assert site.requests == []
        server.json("/api/v1/downloadmusic", {"query": "--config-locations=planted"})
        assert site.requests[0].target.startswith("/find/")
    assert [one.name for one in home.iterdir()] == ["planted"]


def test_cookies_of_one_download_are_not_anothers(site_folder: Path, tmp_path: Path) -> None:
    """The operator's cookies are sent only to their sites, and their file does not change (U50)."""
    seen: list[dict[str, str]] = []

    async def script(exchange: Exchange) -> None:
        seen.append({name.lower(): value for name, value in exchange.headers})
        if exchange.target.startswith("/page"):
            page = PAGE.format(title="t", source="/low.mp4", more="").encode()
            fields = [f"Content-Type: {HTML}", "Set-Cookie: visitor=1; Path=/"]
            await exchange.answer(200, page, *fields)
        else:
            data = (site_folder / "low.mp4").read_bytes()
            await exchange.answer(200, data, "Content-Type: video/mp4")

    cookies = tmp_path / "cookies.txt"
    text = (
        "# Netscape HTTP Cookie File\n127.0.0.1\tFALSE\t/\tFALSE\t0\town\t1\n"
        "other.example\tFALSE\t/\tFALSE\t0\tother\t1\n"
    )
    cookies.write_text(text)
    with (
        Server(script) as site,
        served(tmp_path, site, cookies=cookies) as server,
        Client(server.url, server.key) as client,
    ):
        for number in range(2):
            client.download_video(site.url("/page")).save(tmp_path / f"kept{number}")
            seen.append({})
    runs = json.dumps(seen).split("{}")
    for one in runs[:2]:
        assert "own=1" in one
        assert "other" not in one
        assert "visitor" not in one.partition("/low.mp4")[0].partition('"}')[0]
    assert cookies.read_text() == text


def test_resolutions_that_are_none(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site) as server:
        for resolution in (
            "-1", "99999p", "best[height<=1]/x", "720;id", "7" * 1_000_000, "143", "720i",
        ):  # fmt: skip
            body = {"url": site.url("/page/low.mp4"), "resolution": resolution}
            assert server.json("/api/v1/downloadvideo", body).status in (400, 413), resolution
    assert site.requests == []


def test_a_downloader_that_is_killed(site: Server, tmp_path: Path) -> None:
    """The download fails with an error and leaves no files (U54)."""
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        body, headers = form(("url", site.url("/page/slow/high.mp4")))
        begun = server.ask("POST", CONVERT, body, [*headers, ("Prefer", "respond-async")]).json()
        for _ in range(2):  # A process that ends before its first message is restarted once.
            wait_until(lambda: any(one.target == "/slow/high.mp4" for one in site.requests))
            os.kill(downloaders()[0], signal.SIGKILL)
            site.requests.clear()
        with pytest.raises(errors.PredictionFailedError):
            client.predictions.wait(begun["id"])
        job = server.ask("GET", f"/api/v1/predictions/{begun['id']}").json()
        assert job["error_code"] == "upstream_failed"
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_the_servers_own_results_are_addresses_like_others(site: Server, tmp_path: Path) -> None:
    """The server's own URL is a private address unless it is allowed (U55)."""
    with served(tmp_path, site) as server, Client(server.url, server.key) as client:
        made = client.convert_to_mp3(url=site.url("/tone.wav"))
        with pytest.raises(errors.BadRequestError) as caught:
            client.convert_to_mp3(url=str(made))
        assert caught.value.code == "url_refused"
