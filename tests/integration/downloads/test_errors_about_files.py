"""What is wrong with what a page shows is told by its name there, not by a folder of ours."""

from __future__ import annotations

import tempfile
from typing import TYPE_CHECKING

import polymux
import pytest
from support.addressed_server import MUSIC, AddressedServer, allowing
from support.fetches import showing
from support.web import Server

if TYPE_CHECKING:
    from pathlib import Path

#: ``/page`` is text that is called a video, ``/shows`` a page that shows it.
SCRIPT = showing(
    {
        "/page": ("video/mp4", "<html>this is no video</html>"),
        "/shows": ("text/html", '<!doctype html><title>Rivers</title><video src="/page"></video>'),
    }
)


@pytest.mark.parametrize(
    ("operation", "path"),
    [("download_video", "/page"), ("convert_to_mp3", "/shows"), (MUSIC, "/shows")],
)
def test_on_a_server(tmp_path: Path, operation: str, path: str) -> None:
    """Its folders count as secrets: no answer may have one in it."""
    with Server(SCRIPT) as web, AddressedServer(tmp_path, web) as server:
        status, code, words = server.failure(operation, web.url(path))
        assert (status, code) == (415, "unsupported_media")
        assert str(server.settings.store.folder) not in words
        assert "page" in words or "Rivers" in words


def test_without_one() -> None:
    with Server(SCRIPT) as web:
        policy = allowing(web)
        with polymux.Local(fetch=policy) as local, pytest.raises(polymux.PolymuxError) as caught:
            local.download_video(web.url("/shows"))
    told = f"{caught.value} {caught.value.to_dict()}"
    assert tempfile.gettempdir() not in told
    assert "Rivers" in told
