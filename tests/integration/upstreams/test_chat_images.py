"""Limits on images in chats for upstreams: total size per chat and concurrent downloads."""

from __future__ import annotations

import asyncio
import base64
import json
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import pytest
from polymux.fetch.fetcher import FetchPolicy
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.fetches import wait_until
from support.http_server import Server
from support.upstreams import FREE, WHOLE, chat, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.http_server import Exchange
    from support.polymux_server import PolymuxServer

_MIB = 1 << 20


class Pictures:
    """Returns an image of N MiB at ``/N``. With ``hold``, only when the test allows it."""

    def __init__(self) -> None:
        self.now = self.most = 0
        self.hold = asyncio.Event()
        self.hold.set()

    async def answer(self, exchange: Exchange) -> None:
        self.now += 1
        self.most = max(self.most, self.now)
        try:
            await self.hold.wait()
            data = media.png(8, 8).ljust(int(exchange.target[1:]) * _MIB, b"\0")
            await exchange.answer(200, data, "Content-Type: image/png")
        finally:
            self.now -= 1


@pytest.fixture(scope="module")
def groq() -> Iterator[MisbehavingServer]:
    with MisbehavingServer() as server:
        server.script(steps.answer(200, json.dumps(WHOLE).encode()), times=None)
        yield server


@pytest.fixture(scope="module")
def pictures() -> Iterator[tuple[Pictures, Server]]:
    given = Pictures()
    with Server(given.answer) as running:
        yield given, running


@pytest.fixture(scope="module")
def server(
    groq: MisbehavingServer,
    pictures: tuple[Pictures, Server],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("upstreams")
    policy = FetchPolicy(allowed_hosts=(pictures[1].authority,))
    upstreams = {"groq": upstream(folder, groq.url, models={"gpt-4o": "their-vision"})}
    with gateway(folder, upstreams, fetch=policy) as running:
        yield running


def asked(web: Server, *sizes_mib: int) -> list[dict[str, Any]]:
    parts = [{"type": "image_url", "image_url": {"url": web.url(f"/{one}")}} for one in sizes_mib]
    return [{"role": "user", "content": parts}]


def test_all_together_they_have_a_limit(
    server: PolymuxServer, groq: MisbehavingServer, pictures: tuple[Pictures, Server]
) -> None:
    """Each of 20 may have 20 MiB, but a chat holds all twice: as received and as sent."""
    _, web = pictures
    web.requests.clear()
    before = len(groq.requests)
    answer = chat(server, model="gpt-4o", messages=asked(web, *[15] * 20))
    assert (answer.status, answer.json()["code"]) == (413, "too_large")
    assert "32 MiB" in answer.json()["error"]
    assert answer.json()["param"] == "messages"
    assert len(web.requests) == 3
    assert len(groq.requests) == before
    assert chat(server, model="gpt-4o", messages=asked(web, 15, 15)).status == 200
    assert len(groq.requests) == before + 1


def test_few_chats_fetch_at_once(server: PolymuxServer, pictures: tuple[Pictures, Server]) -> None:
    """Further chats with image URLs wait. Chats with inline images or without images do not."""
    given, web = pictures
    web.call(given.hold.clear)
    wait_until(lambda: not given.hold.is_set())
    given.most = 0
    inline = f"data:image/png;base64,{base64.b64encode(media.png(8, 8)).decode()}"
    with ThreadPoolExecutor(12) as pool:
        waiting = [
            pool.submit(chat, server, model="gpt-4o", messages=asked(web, 1)) for _ in range(12)
        ]
        wait_until(lambda: given.now == 4)
        free = {"messages": [{"role": "user", "content": "Hi"}], "image_url": inline}
        assert server.json(FREE, free).status == 200
        web.call(given.hold.set)
        assert [one.result().status for one in waiting] == [200] * 12
    assert given.most == 4


@pytest.mark.parametrize("data", [media.png(64, 64)[:-20], media.png()[:20], media.jpeg()[:-2]])
def test_broken_pictures_are_not_sent(
    server: PolymuxServer, groq: MisbehavingServer, data: bytes
) -> None:
    """An invalid image in the request is the client's error."""
    before = len(groq.requests)
    url = f"data:image/png;base64,{base64.b64encode(data).decode()}"
    parts = [{"type": "image_url", "image_url": {"url": url}}]
    asked_for = [{"role": "user", "content": parts}]
    answer = chat(server, model="gpt-4o", messages=asked_for)
    assert (answer.status, answer.json()["code"]) == (400, "invalid_request")
    assert answer.json()["param"] == "messages"
    free = {"messages": [{"role": "user", "content": "Hi"}], "image_url": url}
    answer = server.json(FREE, free)
    assert (answer.status, answer.json()["param"]) == (400, "image_url")
    assert len(groq.requests) == before
