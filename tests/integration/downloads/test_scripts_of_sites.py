"""deno, by which yt-dlp has scripts of some sites run: it starts within what a downloader may."""

from __future__ import annotations

import asyncio
import json
import secrets
from pathlib import Path

import pytest
from polymux.downloads.downloader import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.model import ProgressSink
from support.fetches import answering
from support.odd_downloaders import SCRIPTS
from support.supervised import TESTS
from support.web import Server


def test_it_starts_and_may_do_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It has all that deno can allow; network, files and memory are the process's own bounds."""
    monkeypatch.setattr("polymux.downloads.downloader._FAMILY", SCRIPTS)
    monkeypatch.setenv("PYTHONPATH", str(TESTS))
    # Of this run alone: what another has left there says nothing of it.
    written = Path("/tmp", f"polymux-was-here-{secrets.token_hex(8)}")
    sink = ProgressSink(lambda: None, lambda _: pytest.fail("it makes no drafts"))

    async def ran(site: Server) -> None:
        policy = FetchPolicy(allowed_hosts=(site.authority,))
        pages = PageDownloader(DownloadSettings(), policy, tmp_path, 3600)
        async with pages.downloaded(site.url(f"/{written.name}"), "audio", sink):
            pass

    # It is where the downloader may go by its proxy; a script knows of none.
    with Server(answering(200, b"secret")) as site:
        asyncio.run(ran(site))
        assert site.connections == 0
    version, said = sink.lines
    assert version.startswith("deno 2.")
    found = json.loads(said)
    assert found.pop("reckoned") == "xumylop"
    assert set(found) == {"reached", "read", "wrote"}
    assert found["reached"] == "TypeError"
    assert found["read"] in {"PermissionDenied", "NotCapable"}
    assert found["wrote"] in {"PermissionDenied", "NotCapable"}
    assert not written.exists()
