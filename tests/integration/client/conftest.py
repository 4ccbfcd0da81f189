from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from servers.certificates import Authority
from servers.misbehaving import MisbehavingServer
from servers.reference import ReferenceServer
from support.client_children import KEY

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(autouse=True)
def _alone(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Remove the client configuration and the proxy settings of this machine."""
    for name in ("POLYMUX_BASE_URL", "POLYMUX_API_KEY", "POLYMUX_CHAT_MODEL", "POLYMUX_LOG"):
        monkeypatch.delenv(name, raising=False)
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    empty = tmp_path_factory.getbasetemp() / "no.toml"
    empty.touch()
    monkeypatch.setenv("POLYMUX_CONFIG", str(empty))


@pytest.fixture
def server() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as made:
        yield made


@pytest.fixture
def reference() -> Iterator[ReferenceServer]:
    with ReferenceServer(token=KEY) as made:
        yield made


@pytest.fixture
def client(server: MisbehavingServer) -> Iterator[polymux.Client]:
    """A client that never retries."""
    with polymux.Client(server.url, KEY, timeout=20, retry=0) as made:
        yield made


@pytest.fixture
def ours(reference: ReferenceServer) -> Iterator[polymux.Client]:
    """A client of the reference server."""
    with polymux.Client(reference.url, KEY, timeout=60) as made:
        yield made


@pytest.fixture(scope="session")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))
