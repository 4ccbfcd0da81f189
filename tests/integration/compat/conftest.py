"""A server shared by a module's tests. Each test gets its own key and a reset backend."""

from __future__ import annotations

from itertools import count
from typing import TYPE_CHECKING, Any

import pytest
from support.polymux_server import PolymuxServer
from support.replicate_compat import closed_clients
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

NUMBERS = count(1)


@pytest.fixture(autouse=True)
def _closed_clients() -> Iterator[None]:
    """Close the clients of the package replicate, which has no method for it."""
    with closed_clients():
        yield


@pytest.fixture(scope="module")
def made() -> Scripted:
    """The server's backend. Modules may override this fixture."""
    return Scripted(max_concurrency=4)


@pytest.fixture(scope="module")
def settings() -> dict[str, Any]:
    """The server's settings. Modules may override this fixture."""
    return {}


@pytest.fixture(scope="module")
def shared(
    made: Scripted, settings: dict[str, Any], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("compat") / "s"
    with PolymuxServer(folder, lambda: [made], **settings) as running:
        yield running


@pytest.fixture
def backend(made: Scripted) -> Scripted:
    """The backend in its initial state."""
    new = type(made)()
    new.max_concurrency = made.max_concurrency
    vars(made).clear()
    vars(made).update(vars(new))
    return made


@pytest.fixture
def other_key(server: PolymuxServer) -> str:
    return server.keys.add(f"other{next(NUMBERS)}")[0]


@pytest.fixture
def server(shared: PolymuxServer, backend: Scripted) -> PolymuxServer:
    """The server with an unused API key."""
    shared.key, _ = shared.keys.add(f"test{next(NUMBERS)}")
    return shared
