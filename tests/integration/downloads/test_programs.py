"""What comes by ways that yt-dlp has programs for: none is started, with a stranger's words."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from support.addressed_server import AddressedServer
from support.fetches import answering
from support.web import Server

if TYPE_CHECKING:
    from pathlib import Path

#: It gives what it is asked for into its file, as the program would.
STAND_IN = """#!/bin/sh
while [ "$1" != -o ]; do shift; done
cat {video} > "$2"
"""
RTMP = "rtmp://127.0.0.1:1935/app/x.mp4"
PAGES = {
    "video": f'<html><video src="{RTMP}"></video></html>',
    "player": f'<html><script>jwplayer("a").setup({{"file": "{RTMP}"}});</script></html>',
    "other": '<html><video src="mms://127.0.0.1:1755/x.wmv"></video></html>',
}


@pytest.mark.parametrize(
    ("operation", "name"),
    [("download_video", "video"), ("convert_to_mp3", "player"), ("download_video", "other")],
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
    # What is imported from is what a downloader may read.
    monkeypatch.syspath_prepend(programs)
    script = answering(200, PAGES[name].encode(), "Content-Type: text/html")
    with Server(script) as web, AddressedServer(tmp_path, web) as server:
        status, code, words = server.failure(operation, web.url("/page"))
    assert (status, code) == (415, "unsupported_media"), words
    assert ("'mms'" if name == "other" else "'rtmp'") in words


#: In a process of its own, as it changes what is imported there.
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
