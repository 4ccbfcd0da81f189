"""Pages in the place of files at the door in Replicate's form: read as at the other addresses."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.downloads.settings import DownloadSettings
from polymux.fetch.fetcher import FetchPolicy
from polymux.server.settings.settings import CompatSettings
from replicate.exceptions import ModelError
from support.polymux_server import PolymuxServer
from support.replicate_door import of

if TYPE_CHECKING:
    from pathlib import Path

    from support.web import Server

CONVERT = "polymux/convert-to-mp3"


def served(folder: Path, site: Server, *, pages: bool) -> PolymuxServer:
    return PolymuxServer(
        folder / "s",
        fetch=FetchPolicy(allowed_hosts=(site.authority,)),
        compat=CompatSettings(replicate=True),
        download=DownloadSettings(enabled=pages),
    )


def test_a_page_is_read(site: Server, tmp_path: Path) -> None:
    with served(tmp_path, site, pages=True) as server:
        made = of(server).run(CONVERT, input={"file": site.url("/page/high.mp4")})
        address = str(made["response"] if isinstance(made, dict) else made)
        data = server.ask("GET", address.removeprefix(server.url), key=None).body
        (tmp_path / "made.mp3").write_bytes(data)
        assert polymux.probe(tmp_path / "made.mp3").duration_s > 2
        with pytest.raises(ModelError, match="refused"):
            of(server).run(CONVERT, input={"file": "http://127.0.0.1:1/page"})
        assert [one.status for one in of(server).predictions.list()] == ["failed", "succeeded"]
        assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_where_nothing_reads_pages(site: Server, tmp_path: Path) -> None:
    with (
        served(tmp_path, site, pages=False) as server,
        pytest.raises(ModelError, match="there is a page at this address"),
    ):
        of(server).run(CONVERT, input={"file": site.url("/page/high.mp4")})
