"""Headers and targets that are too much: refused as they come, and kept nowhere."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.hostile_check import PATIENCE
from support.polymux_server import CHAT, HELLO
from support.served import ServedProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import Answer

MORE_BYTES = 2 << 20
#: The most that one may take on a busy machine; some milliseconds are enough.
REFUSED_S = 2.0 * PATIENCE


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedProcess]:
    with ServedProcess(tmp_path_factory.mktemp("headers"), log="warning") as running:
        yield running


def asked(server: ServedProcess, name: str) -> Answer:
    if name == "one long field":
        return server.ask("GET", "/healthz", headers=[("X", "x" * (1 << 20))])
    if name == "many fields":
        return server.ask("GET", "/healthz", headers=[(f"X{n}", "x") for n in range(10_000)])
    if name == "one long name":
        return server.ask("GET", "/healthz", headers=[("X" * (1 << 20), "x")])
    if name == "a long key":
        return server.json(CHAT, HELLO, [("Authorization", "Bearer " + "x" * (1 << 20))])
    if name == "a long target":
        return server.ask("GET", "/" + "x" * (100 << 10))
    return server.ask("GET", "/healthz?" + "x" * (100 << 10))


def max_bytes(server: ServedProcess, name: str, statuses: tuple[int, ...]) -> int:
    """How much more than before the server takes at most, while it is asked so twenty times."""
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # The peak starts from here.
    before = server.memory_bytes(children=False)
    for _ in range(20):
        answer = asked(server, name)
        assert answer.status in statuses
        assert answer.json()["code"] in ("header_too_large", "invalid_request")
    return server.memory_bytes("VmHWM", children=False) - before


@pytest.mark.parametrize(
    ("name", "statuses"),
    [
        ("one long field", (431,)),
        ("many fields", (431,)),
        ("one long name", (431,)),
        ("a long key", (431,)),
        ("a long target", (400,)),
        ("a long query", (400,)),
    ],
)
def test_headers_that_are_too_much(
    server: ServedProcess, name: str, statuses: tuple[int, ...]
) -> None:
    """H07, H08: by its status, in JSON, soon; 2 MiB of memory at most, however often they come.

    Of three times the least: what the server does beside is in the others.
    """
    assert asked(server, name).status in statuses
    assert min(max_bytes(server, name, statuses) for _ in range(3)) <= MORE_BYTES
    began = time.monotonic()
    assert asked(server, name).status in statuses
    assert time.monotonic() - began < REFUSED_S
    assert server.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(("length", "status"), [(8000, 404), (9000, 414), (20_000, 414)])
def test_where_targets_end(server: ServedProcess, length: int, status: int) -> None:
    """H08: eight kibibytes of path and query."""
    assert server.ask("GET", "/" + "x" * length).status == status
