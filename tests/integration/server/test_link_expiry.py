"""Expiry of file links over weeks, and rotation of the signing secrets. Case IDs: testing.md."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl

from support.fake_clock import BEGIN
from support.polymux_server import PolymuxServer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

    import pytest
    from support.fake_clock import FakeClock

DAY_S = 86400.0


def keeping(folder: Path, retention_s: float, key: str = "") -> PolymuxServer:
    """A server with this retention that is not started. It accepts the key of an earlier server."""
    server = PolymuxServer(folder, lambda: [Scripted()])
    server.key = key or server.key
    server.settings = replace(
        server.settings, store=replace(server.settings.store, retention_s=retention_s)
    )
    return server


def link_of_kept(server: PolymuxServer) -> str:
    """The link in the only job's current response."""
    (one,) = server.ask("GET", "/api/v1/predictions").json()["results"]
    return str(one["output"]).removeprefix(server.url)


def status(server: PolymuxServer, link: str) -> int:
    return server.ask("GET", link, key=None).status


def sweep(server: PolymuxServer) -> None:
    """The server runs this periodically."""
    store = server.state.service.store
    asyncio.run_coroutine_threadsafe(store.run(store.sweep), server.loop).result(20)


def secrets_of(folder: Path) -> list[str]:
    return (folder / "link-secrets").read_text().split()[1:]


def end_of(link: str) -> float:
    return float(dict(parse_qsl(link.partition("?")[2]))["exp"])


def test_a_link_ends_with_its_file(tmp_path: Path, clock: FakeClock) -> None:
    with keeping(tmp_path / "s", 3600) as server:
        link = server.link()
        assert end_of(link) == BEGIN + 3600
        clock.now += 3599
        assert status(server, link) == 200
        # A new link does not extend the file's life.
        assert end_of(link_of_kept(server)) == BEGIN + 3600
        clock.now += 1
        assert status(server, link) == 404


def test_links_outlive_the_change_of_secrets(tmp_path: Path, clock: FakeClock) -> None:
    """A link is valid for a week. Secrets rotate every two weeks and two are valid at a time."""
    folder = tmp_path / "s"
    with keeping(folder, 90 * DAY_S) as server:
        first = server.link()
        assert end_of(first) == BEGIN + 7 * DAY_S
        (oldest,) = secrets_of(folder)
        clock.now = BEGIN + 7 * DAY_S - 1
        assert status(server, first) == 200
        clock.now += 1
        assert status(server, first) == 404
        # Just before the rotation.
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
    # No server runs at the time of the rotation. The next one rotates at startup and still accepts
    # the links.
    clock.now = BEGIN + 28 * DAY_S
    assert end_of(last) < clock.now
    with keeping(folder, 90 * DAY_S, server.key) as server:
        newest, kept = secrets_of(folder)
        assert kept == newer
        assert newest not in (newer, oldest)
        assert status(server, last) == 404
        assert status(server, link_of_kept(server)) == 200


def test_unknown_files_are_all_alike(tmp_path: Path) -> None:
    """Unknown files, files of other keys, expired links, wrong signatures and path traversal get
    equal responses (S01 to S03 and S10).
    """
    with PolymuxServer(tmp_path / "s", lambda: [Scripted()]) as server:
        path = server.link()
        name, _, query = path.removeprefix("/media/").partition("?")
        links = server.state.service.store.links
        end = server.state.service.store.clock() + 600
        planted = f"zz{name[2:]}"
        (tmp_path / "s" / "media" / "zz").mkdir()
        (tmp_path / "s" / "media" / "zz" / planted).symlink_to("/etc/passwd")
        turned = "".join(chr(ord(one) ^ 1) if one in "0123456789" else one for one in name[:40])
        names = [turned + name[40:], name.upper(), f"{name}x", name[1:], "x", planted,
                 name.replace(".mp3", ".wav"), f"0{name}"]  # fmt: skip
        asked = [f"/media/{one}?{links.query(f'/media/{one}', end)}" for one in names]
        asked += [f"/media/{name}", f"/media/{name}?{query[:-1]}", f"/media/{name}?exp=&sig="]
        asked.append(f"/media/{name}?{links.query(f'/media/{name}', end - 10_000)}")
        asked.append(f"/media/{name}?{query.replace('exp=1', 'exp=9')}")
        seen = set()
        for one in asked:
            answer = server.ask("GET", one, key=None)
            assert answer.status == 404, one
            body = answer.json()
            assert body.pop("request_id") == answer.headers["x-request-id"]
            fields = [line.partition(":")[0].lower() for line in answer.lines]
            seen.add((json.dumps(body), tuple(fields)))
        assert len(seen) == 1
        for one in ("..", "../catalogue.db", "%2e%2e%2fcatalogue.db", "..%5ccatalogue.db",
                    f"{name}%00", f"/{name}"):  # fmt: skip
            answer = server.ask("GET", f"/media/{one}?{query}", key=None)
            assert (answer.status, answer.json()["code"]) == (404, "not_found"), one
        assert server.ask("GET", path, key=None).status == 200


def test_a_result_is_kept_as_long_as_the_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the settings' `store.retention_s`, the file, its link and job are deleted (S09)."""
    from polymux.server.settings.settings import read_settings
    from polymux.service import service

    assert service._SWEEP_EVERY_S <= 60
    monkeypatch.setattr(service, "_SWEEP_EVERY_S", 0.05)
    file = tmp_path / "polymux.toml"
    file.write_text("[store]\nretention_s = 2\n")
    retention_s = read_settings(file).store.retention_s
    assert retention_s == 2
    server = PolymuxServer(tmp_path / "s", lambda: [Scripted()])
    store = replace(server.settings.store, retention_s=retention_s)
    server.settings = replace(server.settings, store=store)
    with server:
        path = server.link()
        media = tmp_path / "s" / "media"
        assert len(list(media.glob("*/*"))) == 1
        until(lambda: not list(media.glob("*/*")), 60)
        assert server.ask("GET", path, key=None).status == 404
        until(lambda: server.ask("GET", "/api/v1/predictions").json()["results"] == [], 60)
        assert server.state.service.store.media.used_bytes == 0
