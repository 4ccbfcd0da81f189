"""/mcp with the SDK's client: tools, files, progress, cancellation and permissions."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import time
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2
import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from polymux.service.model import Estimate
from support.conversions import wav
from support.lazy_imports import mcp
from support.mcp_clients import (
    FILE,
    MODES,
    PATH,
    Making,
    code_of,
    links_in,
    over_http,
    python,
    read,
    run,
    text_of,
)
from support.polymux_server import PolymuxServer
from support.server_process import until

if TYPE_CHECKING:
    from pathlib import Path


both_modes = pytest.mark.parametrize("mode", MODES)


@pytest.fixture(scope="module")
def made() -> Making:
    return Making()


@both_modes
def test_a_real_conversion(tmp_path: Path, mode: str) -> None:
    sound = wav(2.0)
    engines = {"media": EngineSettings("media", threads=1)}

    async def main(server: PolymuxServer) -> None:
        async with over_http(server, mode) as client:
            given = {"file": base64.b64encode(sound).decode(), "bitrate": "64k"}
            result = await client.call_tool("convert_to_mp3", given)
            (link,) = links_in(result)
            assert link.mime_type == "audio/mpeg"
            data = await read(client, link.uri)
            assert data == polymux.convert_to_mp3(sound, bitrate="64k").read()
            (audio,) = [one for one in result.content if one.type == "audio"]
            assert base64.b64decode(audio.data) == data
            assert link.size == len(data)
            assert [one.uri for one in (await client.list_resources()).resources] == [link.uri]
            # The structured result has a signed link, which needs no key.
            address = result.structured_content["response"]
            assert result.structured_content["report"]["frames"] > 70
            assert httpx2.get(address).content == data

    with PolymuxServer(tmp_path / "s", engines=engines) as server:
        run(main(server))


@both_modes
def test_cancelling_a_call_ends_its_work(server: PolymuxServer, backend: Making, mode: str) -> None:
    tool = "convert_to_mp3"

    async def main() -> None:
        server.loop.call_soon_threadsafe(backend.gate.clear)
        async with over_http(server, mode) as client:
            call = asyncio.ensure_future(client.call_tool(tool, FILE))
            await asyncio.to_thread(until, lambda: backend.began)
            assert backend.ended == []
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            await asyncio.to_thread(until, lambda: backend.ended == ["cancelled"])
            await asyncio.to_thread(until, lambda: server.state.service.jobs.count == 0)
            server.loop.call_soon_threadsafe(backend.gate.set)
            assert not (await client.call_tool(tool, FILE)).is_error

    run(main())


LEAVING = """
import asyncio, sys
import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

async def main(url, key, mode):
    async with httpx2.AsyncClient(headers={"authorization": f"Bearer {key}"}) as http:
        async with Client(streamable_http_client(url, http_client=http), mode=mode) as client:
            await client.call_tool("convert_to_mp3", {"file": "QUJD"})

asyncio.run(main(*sys.argv[1:]))
"""


def test_a_client_that_leaves_ends_its_work(server: PolymuxServer, backend: Making) -> None:
    server.loop.call_soon_threadsafe(backend.gate.clear)
    words = [*python(LEAVING), f"{server.url}{PATH}", server.key, "auto"]
    with subprocess.Popen(words) as process:
        until(lambda: backend.began or process.poll() is not None, 30)
        assert backend.ended == []
        process.kill()
        until(lambda: backend.ended == ["cancelled"])
    until(lambda: server.state.service.jobs.count == 0)


def test_a_key_has_the_tools_of_its_scopes(server: PolymuxServer, backend: Making) -> None:
    key, _ = server.keys.add("reader", scopes=("read_text",))

    async def main() -> None:
        async with over_http(server, key=key) as client:
            assert [one.name for one in (await client.list_tools()).tools] == ["read_text"]
            assert text_of(await client.call_tool("read_text", FILE)) == "read"
            result = await client.call_tool("convert_to_mp3", FILE)
            assert code_of(result) == "forbidden"
            assert "convert_to_mp3" in text_of(result)
            assert len(backend.began) == 1

    run(main())


def test_estimates_and_quotas_hold(server: PolymuxServer, backend: Making) -> None:
    slow, _ = server.keys.add("short", max_estimate_s=1)
    few, _ = server.keys.add("few", requests_per_minute=10)
    backend.expected = Estimate(100.0, None, "as it was told")

    async def main() -> None:
        async with over_http(server, key=slow) as client:
            assert code_of(await client.call_tool("convert_to_mp3", FILE)) == "estimate_over_limit"
        assert backend.began == []
        async with over_http(server, key=few) as client:
            calls = [client.call_tool("read_text", FILE) for _ in range(20)]
            found = await asyncio.gather(*calls, return_exceptions=True)
            assert any(isinstance(one, mcp.MCPError) for one in found)
        # On a slow machine, slightly more than ten calls may start.
        assert 0 < len(backend.began) < len(found)

    run(main())


def test_failures_are_results_that_say_so(tmp_path: Path) -> None:
    backend = Making()

    async def main() -> None:
        async with over_http(server) as client:
            backend.failure = polymux.UnsupportedMediaError("not a sound at all")
            result = await client.call_tool("convert_to_mp3", FILE)
            assert code_of(result) == "unsupported_media"
            assert text_of(result) == "not a sound at all"
            backend.failure = RuntimeError("the secret of a place")
            for tool in ("convert_to_mp3", "read_text"):
                result = await client.call_tool(tool, FILE)
                assert code_of(result) == "internal"
                assert "secret" not in json.dumps(result.structured_content)
            result = await client.call_tool("search_music", {"song": "Blue Danube"})
            assert code_of(result) == "no_backend"

    with PolymuxServer(tmp_path / "s", lambda: [backend]) as server:
        server.expect_defects()
        run(main())


def test_a_server_that_stops_says_so(tmp_path: Path) -> None:
    backend = Making()
    backend.gate.clear()

    async def main() -> None:
        async with over_http(server) as client:
            call = asyncio.ensure_future(client.call_tool("convert_to_mp3", FILE))
            await asyncio.to_thread(until, lambda: backend.began)
            server.stop()
            assert code_of(await call) == "draining"
            assert backend.ended == ["cancelled"]

    with PolymuxServer(tmp_path / "s", lambda: [backend], shutdown_timeout_s=60.0) as server:
        began = time.monotonic()
        run(main())
        server._thread.join(40)
        assert not server._thread.is_alive()
        # The stop uses none of the shutdown timeout of a minute.
        assert time.monotonic() - began < 30
