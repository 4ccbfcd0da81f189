"""Links to files over weeks: how long each lives, and what becomes of the secrets."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

import pytest
from polymux.service.links import LinkSecrets
from support.polymux_server import CONVERT, PolymuxServer, form
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

DAY_S = 86400.0
BEGIN = 1_800_000_000.0


class Clock:
    def __init__(self) -> None:
        self.now = BEGIN

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    """That of every store which a server opens."""
    found = Clock()
    monkeypatch.setattr("polymux.service.store.SteadyClock", lambda: found)
    return found


def keeping(folder: Path, keep_s: float, key: str = "") -> PolymuxServer:
    """A server that keeps results so long, asked by an earlier one's key; it is not started."""
    server = PolymuxServer(folder, lambda: [Scripted()])
    server.key = key or server.key
    server.settings = replace(server.settings, store=replace(server.settings.store, keep_s=keep_s))
    return server


def link_of_new(server: PolymuxServer) -> str:
    body, headers = form(("file", ("a.wav", b"x")))
    answer = server.ask("POST", CONVERT, body, headers)
    assert answer.status == 200, answer.body
    return str(answer.json()["response"]).removeprefix(server.url)


def link_of_kept(server: PolymuxServer) -> str:
    """What the one prediction tells now."""
    (one,) = server.ask("GET", "/api/v1/predictions").json()["results"]
    return str(one["output"]).removeprefix(server.url)


def status(server: PolymuxServer, link: str) -> int:
    return server.ask("GET", link, key=None).status


def sweep(server: PolymuxServer) -> None:
    """As the server does by itself from time to time."""
    store = server.state.service.store
    asyncio.run_coroutine_threadsafe(store.run(store.sweep), server.loop).result(20)


def secrets_of(folder: Path) -> list[str]:
    """Newest first."""
    return (folder / "link-secrets").read_text().split()[1:]


def end_of(link: str) -> float:
    return float(dict(parse_qsl(link.partition("?")[2]))["exp"])


def test_a_link_ends_with_its_file(tmp_path: Path, clock: Clock) -> None:
    with keeping(tmp_path / "s", 3600) as server:
        link = link_of_new(server)
        assert end_of(link) == BEGIN + 3600
        clock.now += 3599
        assert status(server, link) == 200
        # A later one lives no longer.
        assert end_of(link_of_kept(server)) == BEGIN + 3600
        clock.now += 1
        assert status(server, link) == 404


def test_links_outlive_the_change_of_secrets(tmp_path: Path, clock: Clock) -> None:
    """A week each, whenever they were made; secrets change every two weeks, two count at a time."""
    folder = tmp_path / "s"
    with keeping(folder, 90 * DAY_S) as server:
        first = link_of_new(server)
        assert end_of(first) == BEGIN + 7 * DAY_S
        (oldest,) = secrets_of(folder)
        clock.now = BEGIN + 7 * DAY_S - 1
        assert status(server, first) == 200
        clock.now += 1
        assert status(server, first) == 404
        # Made just before the change.
        clock.now = BEGIN + 14 * DAY_S - 1
        sweep(server)
        assert secrets_of(folder) == [oldest]
        late = link_of_kept(server)
        clock.now += 1
        sweep(server)
        newer, kept = secrets_of(folder)
        assert kept == oldest != newer
        later = link_of_kept(server)
        assert status(server, late) == status(server, later) == 200
        sweep(server)
        assert secrets_of(folder) == [newer, oldest]
        clock.now = end_of(late) - 1
        assert status(server, late) == 200
        clock.now += 1
        assert status(server, late) == 404
        assert status(server, later) == 200
        last = link_of_kept(server)
    # The change while no server ran: the one that comes then makes it, and knows the links.
    clock.now = BEGIN + 28 * DAY_S
    assert end_of(last) < clock.now
    with keeping(folder, 90 * DAY_S, server.key) as server:
        newest, kept = secrets_of(folder)
        assert kept == newer
        assert newest not in (newer, oldest)
        assert status(server, last) == 404
        assert status(server, link_of_kept(server)) == 200


def test_a_link_of_the_last_moment_outlives_a_restart(tmp_path: Path, clock: Clock) -> None:
    folder = tmp_path / "s"
    with keeping(folder, 90 * DAY_S) as server:
        link_of_new(server)
        clock.now = BEGIN + 14 * DAY_S - 1
        link = link_of_kept(server)
    clock.now += 1
    with keeping(folder, 90 * DAY_S) as server:
        assert len(secrets_of(folder)) == 2
        assert status(server, link) == 200
        clock.now = end_of(link)
        assert status(server, link) == 404


def test_a_secret_that_was_changed_twice_signs_nothing(tmp_path: Path) -> None:
    """Whatever end a link by it has: who has read an old secret can do nothing with it."""
    clock = Clock()
    links = LinkSecrets(tmp_path / "secrets", period_s=100, clock=clock)
    query = dict(parse_qsl(links.query("/media/a", BEGIN + 10_000)))

    def accepted() -> bool:
        return links.accepts("/media/a", query["exp"], query["sig"])

    seen = []
    for age_s in (0, 99, 100, 199, 200, 300):
        clock.now = BEGIN + age_s
        links.rotate()
        seen.append(accepted())
    assert seen == [True, True, True, True, False, False]
