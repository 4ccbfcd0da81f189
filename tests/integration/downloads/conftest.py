"""One site for all tests of downloads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.hostile_check import SANITIZED
from support.video_site import Site, made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.web import Server


@pytest.fixture(autouse=True)
def _room_for_shadows(monkeypatch: pytest.MonkeyPatch) -> None:
    """An instrumented downloader maps terabytes before it begins."""
    if SANITIZED:
        monkeypatch.setattr("polymux.downloads.pages._DATA_BYTES", 1 << 60)


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("site"))


@pytest.fixture
def site(site_folder: Path) -> Iterator[Server]:
    with Site(site_folder).server() as running:
        yield running
