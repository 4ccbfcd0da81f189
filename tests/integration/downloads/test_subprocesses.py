"""yt-dlp must not start programs, except deno for JavaScript without any permissions."""

from __future__ import annotations

import asyncio
import json
import secrets
import subprocess
import sys
from pathlib import Path

import pytest
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.model import ProgressSink
from support.faulty_downloaders import SCRIPTS
from support.fetches import answering
from support.http_server import Server
from support.media_url_server import MediaUrlServer
from support.supervised_engine import TESTS

#: Writes a video to the output file, as the real program would.
STAND_IN = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat {video} > "$2"
"""
RTMP = "rtmp://127.0.0.1:1935/app/x.mp4"
PAGES = {
    "video": f'<html><video src="{RTMP}"></video></html>',
    "other": '<html><video src="mms://127.0.0.1:1755/x.wmv"></video></html>',
}


@pytest.mark.parametrize(
    ("operation", "name"),
    [("convert_to_mp3", "video"), ("download_video", "other")],
)
def test_streams_of_other_ways_are_not_taken(
    site_folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, operation: str, name: str
) -> None:
    programs = tmp_path / "programs"
    programs.mkdir()
    (programs / "rtmpdump").write_text(STAND_IN.format(video=programs / "video"))
    (programs / "rtmpdump").chmod(0o755)
    (programs / "video").write_bytes((site_folder / "low.mp4").read_bytes())
    monkeypatch.setenv("PATH", str(programs), prepend=":")
    # The downloader may read the folders on its import path.
    monkeypatch.syspath_prepend(programs)
    script = answering(200, PAGES[name].encode(), "Content-Type: text/html")
    with Server(script) as web, MediaUrlServer(tmp_path, web) as server:
        status, code, words = server.failure(operation, web.url("/page"))
    assert (status, code) == (415, "unsupported_media"), words
    assert ("'mms'" if name == "other" else "'rtmp'") in words


#: Runs in a separate process, because it changes imported modules.
_STARTS = """
import sys
from polymux.downloads.ytdlp import loaded_library
loaded_library({})
from yt_dlp.downloader.rtmp import rtmpdump_version
from yt_dlp.utils import Popen, check_executable
assert rtmpdump_version() is False
assert check_executable("true") is False
for words, shell in ((["true"], False), ("true", False), ("deno", True), ([], False)):
    try:
        Popen(words, shell=shell)
    except FileNotFoundError:
        continue
    sys.exit(f"{words} was started")
assert Popen.run([sys.argv[1], "a"], stdout=-1, text=True)[0] == "here a"
"""


def test_no_program_but_that_for_scripts_is_started(tmp_path: Path) -> None:
    deno = tmp_path / "deno"
    deno.write_text('#!/bin/sh\nprintf "here $1"\n')
    deno.chmod(0o755)
    done = subprocess.run(
        [sys.executable, "-c", _STARTS, str(deno)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_it_starts_and_may_do_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """deno has all permissions here: only the process's sandbox limits network, files, memory."""
    monkeypatch.setattr("polymux.downloads.downloader._FAMILY", SCRIPTS)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    # A unique name, because an earlier run may have left a file.
    written = Path("/tmp", f"polymux-was-here-{secrets.token_hex(8)}")
    sink = ProgressSink(lambda: None, lambda _: pytest.fail("it makes no drafts"))

    async def ran(site: Server) -> None:
        policy = FetchPolicy(allowed_hosts=(site.authority,))
        pages = PageDownloader(DownloadSettings(), policy, tmp_path, 3600)
        async with pages.downloaded(site.url(f"/{written.name}"), "audio", sink):
            pass

    # The downloader may reach this site through its proxy, but scripts have no proxy.
    with Server(answering(200, b"secret")) as site:
        asyncio.run(ran(site))
        assert site.connections == 0
    version, report = sink.lines
    assert version.startswith("deno 2.")
    found = json.loads(report)
    assert found.pop("reckoned") == "xumylop"
    assert set(found) == {"reached", "read", "wrote"}
    assert found["reached"] == "TypeError"
    assert found["read"] in {"PermissionDenied", "NotCapable"}
    assert found["wrote"] in {"PermissionDenied", "NotCapable"}
    assert not written.exists()
