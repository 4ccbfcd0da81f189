"""freellm's picture by every face: the upstream gets the same bytes, whoever asked."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from polymux.fetch.fetcher import FetchPolicy
from polymux.upstreams.client import UpstreamServer
from polymux.upstreams.openai.backend import OpenAIUpstream
from servers import media, steps
from servers.misbehaving import MisbehavingServer
from support.commands import run
from support.upstreams import MESSAGES, WHOLE, gateway, upstream

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from support.polymux_server import PolymuxServer

    Ask = Callable[[str], str]

PICTURE = media.png(8, 8)
INLINE = f"data:image/png;base64,{base64.b64encode(PICTURE).decode()}"
MODELS = {"gpt-4o": "their-vision"}


@pytest.fixture(scope="module")
def seer() -> Iterator[MisbehavingServer]:
    """A model that sees; and the site where the picture lies."""
    with MisbehavingServer() as server:
        whole = steps.answer(200, json.dumps(WHOLE).encode())
        server.script(whole, path="/v1/chat/completions", times=None)
        server.script(steps.answer(200, PICTURE, content_type="image/png"), path="/a", times=None)
        yield server


@pytest.fixture(scope="module")
def policy(seer: MisbehavingServer) -> FetchPolicy:
    return FetchPolicy(allowed_hosts=(seer.url.removeprefix("http://"),))


@pytest.fixture(scope="module")
def server(
    seer: MisbehavingServer, policy: FetchPolicy, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("pictures")
    with gateway(folder, {"seer": upstream(folder, seer.url, models=MODELS)}, fetch=policy) as made:
        yield made


@pytest.fixture(params=["Client", "AsyncClient", "Local", "AsyncLocal", "command"])
def ask(
    request: pytest.FixtureRequest,
    server: PolymuxServer,
    seer: MisbehavingServer,
    policy: FetchPolicy,
    tmp_path: Path,
) -> Ask:
    def backend() -> OpenAIUpstream:
        other = UpstreamServer("seer", f"{seer.url}/v1")
        return OpenAIUpstream(other, models=MODELS, policy=policy)

    async def awaited(client: Any, url: str) -> str:
        async with client:
            return str(await client.free_chat(MESSAGES, image_url=url))

    def by(url: str) -> str:
        if request.param == "Client":
            with polymux.Client(server.url, server.key) as client:
                return str(client.free_chat(MESSAGES, image_url=url))
        if request.param == "Local":
            with polymux.Local(backends=[backend()], fetch=policy) as local:
                return str(local.free_chat(MESSAGES, image_url=url))
        if request.param == "AsyncClient":
            return asyncio.run(awaited(polymux.AsyncClient(server.url, server.key), url))
        if request.param == "AsyncLocal":
            return asyncio.run(awaited(polymux.AsyncLocal(backends=[backend()]), url))
        key = {"POLYMUX_BASE_URL": server.url, "POLYMUX_API_KEY": server.key}
        done = run("free-chat", "Hi", "--image-url", url, cwd=tmp_path, code=None, **key)
        if done.returncode:
            raise errors.BadRequestError(done.stderr.decode())
        return done.stdout.decode().strip()

    return by


def test_a_picture_is_seen(ask: Ask, seer: MisbehavingServer) -> None:
    for url in (f"{seer.url}/a", INLINE):
        assert ask(url) == "Hello"
        request = [one for one in seer.requests if one.path.endswith("/completions")][-1]
        [message] = json.loads(request.body)["messages"]
        picture = {"type": "image_url", "image_url": {"url": INLINE, "detail": "auto"}}
        assert message["content"] == [{"type": "text", "text": "Hi"}, picture]


def test_a_picture_within_is_refused(ask: Ask, seer: MisbehavingServer) -> None:
    before = len(seer.requests)
    with pytest.raises(errors.BadRequestError, match=r"refused|not on the public Internet"):
        ask("http://169.254.169.254/latest/a.png")
    assert len(seer.requests) == before
