"""The website that all tests of downloads share."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.hostile_check import SANITIZED
from support.summaries import ToldSite
from support.video_site import Site, certified, made

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.http_server import Server


@pytest.fixture(autouse=True)
def _room_for_shadows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sanitizers reserve terabytes of address space."""
    if SANITIZED:
        monkeypatch.setattr("polymux.downloads.downloader._DATA_BYTES", 1 << 60)


@pytest.fixture(scope="session")
def site_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return made(tmp_path_factory.mktemp("site"))


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1. ``both.pem`` next to it also has the key."""
    return certified(tmp_path_factory.mktemp("tls"), "IP:127.0.0.1")


@pytest.fixture
def site(site_folder: Path) -> Iterator[Server]:
    with Site(site_folder).server() as running:
        yield running


@pytest.fixture
def captioned_site(site_folder: Path) -> Iterator[tuple[ToldSite, Server]]:
    site = ToldSite(site_folder)
    with site.server() as running:
        yield site, running
