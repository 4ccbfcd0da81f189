"""Oversized headers and targets are rejected on arrival and not stored. Case IDs: testing.md."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.polymux_server import CHAT
from support.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator

MORE_BYTES = 2 << 20


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with ServerProcess(tmp_path_factory.mktemp("headers"), log="warning") as running:
        yield running


LARGE: dict[str, tuple[str, tuple[tuple[str, str], ...], int]] = {
    "one long field": ("/healthz", (("X", "x" * (1 << 20)),), 431),
    "many fields": ("/healthz", tuple((f"X{n}", "x") for n in range(10_000)), 431),
    "one long name": ("/healthz", (("X" * (1 << 20), "x"),), 431),
    "a long key": (CHAT, (("Authorization", "Bearer " + "x" * (1 << 20)),), 431),
    "a long target": ("/" + "x" * (100 << 10), (), 414),
    "a long query": ("/healthz?" + "x" * (100 << 10), (), 414),
}


def ask(server: ServerProcess, name: str) -> None:
    path, fields, status = LARGE[name]
    answer = server.ask("GET", path, headers=fields)
    assert answer.status == status
    assert answer.json()["code"] in ("header_too_large", "too_long")


def max_bytes(server: ServerProcess, name: str) -> int:
    """The additional peak memory of the server during eight such requests, in bytes."""
    Path(f"/proc/{server.process.pid}/clear_refs").write_text("5")  # Resets the peak memory.
    before = server.memory_bytes(children=False)
    for _ in range(8):
        ask(server, name)
    return server.memory_bytes("VmHWM", children=False) - before


@pytest.mark.parametrize("name", LARGE)
def test_headers_that_are_too_much(server: ServerProcess, name: str) -> None:
    """Returns the right status as JSON with at most 2 MiB of memory, repeatedly (H07 and H08).

    Uses the smaller of two measurements, because other work of the server affects the larger one.
    """
    ask(server, name)
    assert min(max_bytes(server, name) for _ in range(2)) <= MORE_BYTES
    assert server.ask("GET", "/healthz").status == 200


@pytest.mark.parametrize(("length", "status"), [(8000, 404), (9000, 414), (20_000, 414)])
def test_where_targets_end(server: ServerProcess, length: int, status: int) -> None:
    """The limit for path and query is 8 KiB (H08)."""
    assert server.ask("GET", "/" + "x" * length).status == status
