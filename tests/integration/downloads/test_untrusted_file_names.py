"""File names from sites are shown to people, but never used as paths."""

from __future__ import annotations

import re
import tempfile
from typing import TYPE_CHECKING

import polymux
import pytest
from support.conversions import wav
from support.fetches import showing
from support.http_server import Server
from support.media_url_server import MediaUrlServer, allowing

if TYPE_CHECKING:
    from pathlib import Path

    from support.http_server import Exchange, Script


NAMES = [
    "../../x", "..\\..\\x.php", "/etc/passwd", "x" * 4000 + ".wav", "\u202egpj.exe", "..", "",
]  # fmt: skip


def called(data: bytes, kind: str, name: str) -> Script:
    """A file with a name given in both forms of Content-Disposition."""
    quoted = name.replace("\\", "\\\\")
    encoded = "".join(f"%{one:02X}" for one in name.encode())

    async def script(exchange: Exchange) -> None:
        await exchange.answer(
            200, data, f"Content-Type: {kind}",
            f"Content-Disposition: attachment; filename=\"{quoted}\"; filename*=UTF-8''{encoded}",
        )  # fmt: skip

    return script


def test_a_files_name_is_that_of_its_address(tmp_path: Path) -> None:
    with Server(called(wav(1), "audio/wav", "")) as site, MediaUrlServer(tmp_path, site) as server:
        for name in NAMES:
            site.script = called(wav(1), "audio/wav", name)
            kept = saved(server, "convert_to_mp3", site.url("/talk.wav"))
            assert kept[:2] == ("talk.mp3", "audio/mpeg"), name
            assert server.fetches("transcribe", site.url("/talk.wav")).status == 200
            sent = server.speech.began[-1].values["audio"]
            assert sent.file_name == "talk.wav", name
            assert sent.path.parent.name == "drafts"
        server.has_nothing_left()
    assert {one.relative_to(tmp_path).parts[0] for one in tmp_path.rglob("*")} == {"s"}


def test_a_videos_name_is_nobodys_path(site_folder: Path, tmp_path: Path) -> None:
    """The name determines neither the path nor the type (U44 in docs/development/testing.md)."""
    script = called((site_folder / "low.mp4").read_bytes(), "video/mp4", "../../x\u202egpj.exe")
    with Server(script) as site, MediaUrlServer(tmp_path, site) as server:
        *kept, data = saved(server, "download_video", site.url("/talk.mp4"))
        assert kept == ["talk.mp4", "video/mp4"]
        assert polymux.probe(data).duration_s > 2
        server.has_nothing_left()
    assert {one.relative_to(tmp_path).parts[0] for one in tmp_path.rglob("*")} == {"s"}


def saved(server: MediaUrlServer, operation: str, url: str) -> tuple[str, str, bytes]:
    """The name, type and content of a result as a browser receives them."""
    answer = server.fetches(operation, url)
    assert answer.status == 200, answer.body
    link = answer.json()["response"].removeprefix(server.url)
    got = server.ask("GET", link, key=None)
    (name,) = re.findall(r'filename="([^"]*)"', got.headers["content-disposition"])
    return name, got.headers["content-type"], got.body


#: ``/page`` declares text as a video, and ``/shows`` links to it.
SCRIPT = showing(
    {
        "/page": ("video/mp4", "<html>this is no video</html>"),
        "/shows": ("text/html", '<!doctype html><title>Rivers</title><video src="/page"></video>'),
    }
)


@pytest.mark.parametrize(
    ("operation", "path"),
    [("download_video", "/page"), ("convert_to_mp3", "/shows")],
)
def test_on_a_server(tmp_path: Path, operation: str, path: str) -> None:
    with Server(SCRIPT) as web, MediaUrlServer(tmp_path, web) as server:
        status, code, words = server.failure(operation, web.url(path))
        assert (status, code) == (415, "unsupported_media")
        assert str(server.settings.store.folder) not in words
        assert "page" in words or "Rivers" in words


def test_without_one() -> None:
    with Server(SCRIPT) as web:
        policy = allowing(web)
        with polymux.Local(fetch=policy) as local, pytest.raises(polymux.PolymuxError) as caught:
            local.download_video(web.url("/shows"))
    message = f"{caught.value} {caught.value.to_dict()}"
    assert tempfile.gettempdir() not in message
    assert "Rivers" in message
