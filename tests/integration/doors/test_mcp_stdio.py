"""`polymux mcp` as a child of the SDK's own client: engines of this machine, files, the end."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import mcp_types as types
import polymux
import pytest
from mcp import Client, MCPError
from polymux.mcp.executor import LocalExecutor
from polymux.mcp.files import Folders
from polymux.mcp.protocol import make_server
from polymux.mcp.stdio import StdioFrontend
from support.commands import PROGRAM, environment
from support.conversions import wav
from support.mcp_clients import (
    MODES,
    code_of,
    handshake,
    links_in,
    message,
    over_stdio,
    python,
    read,
    run,
    text_of,
)
from support.polymux_server import Box, PolymuxServer
from support.served import until
from support.services import Scripted, running

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.service.model import OperationRequest


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("in/song.wav", "out/other.wav", "here.wav"):
        (tmp_path / name).write_bytes(wav(1.0))
    (tmp_path / "in/link.wav").symlink_to(tmp_path / "out/other.wav")
    return tmp_path


@pytest.fixture
def box() -> Box:
    return Box()


@pytest.fixture
def server(tmp_path: Path, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Scripted(max_concurrency=4)
        return [box.backend]

    with PolymuxServer(tmp_path / "s", make) as serving:
        serving.token = serving.key  # type: ignore[attr-defined]
        yield serving


@pytest.mark.parametrize("mode", MODES)
def test_a_real_conversion(folder: Path, mode: str) -> None:
    told: list[float] = []

    async def on_progress(progress: float, total: float | None, words: str | None) -> None:
        del words
        assert total == 1.0
        told.append(progress)

    async def main() -> None:
        async with over_stdio(folder, mode=mode) as client:
            assert len((await client.list_tools()).tools) == 14
            given = {"file": "in/song.wav", "bitrate": "64k"}
            result = await client.call_tool("convert_to_mp3", given, progress_callback=on_progress)
            (link,) = links_in(result)
            expected = polymux.convert_to_mp3(folder / "in/song.wav", bitrate="64k").read()
            assert await read(client, link.uri) == expected
            # The link is the file itself, for whoever is on this machine.
            path = Path(link.uri.removeprefix("file://"))
            assert path.read_bytes() == expected
            assert result.structured_content["response"] == link.uri
            assert link.name == "song.mp3"
            data = base64.b64encode(wav(1.0)).decode()
            for text in (f"data:audio/wav;base64,{data}", (folder / "in/song.wav").as_uri()):
                again = await client.call_tool("convert_to_mp3", {"file": text, "bitrate": "64k"})
                assert await read(client, links_in(again)[0].uri) == expected
            again = await client.call_tool("convert_to_mp3", {"file": link.uri})
            assert not again.is_error, text_of(again)
            for uri in ((folder / "here.wav").as_uri(), "file:///etc/passwd", f"{path.parent}"):
                with pytest.raises(MCPError, match="no such resource"):
                    await client.read_resource(uri)
        assert not path.exists()

    run(main())
    assert told == sorted(told)
    assert list(folder.glob("polymux-local-*")) == []


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("words", "roots", "allowed", "refused"),
    [
        ([], None, ["in/song.wav", "out/other.wav", "in/link.wav"], ["/etc/passwd", "../x.wav"]),
        ([], ["in"], ["in/song.wav", "song.wav"], ["here.wav", "out/other.wav", "in/link.wav"]),
        ([], [], [], ["here.wav", "in/song.wav"]),
        (["--folder", "in"], None, ["in/song.wav"], ["here.wav", "in/link.wav"]),
        (["--folder", "in"], ["out"], ["in/song.wav", "in/link.wav"], ["here.wav"]),
    ],
)
def test_which_files_may_be_read(
    folder: Path,
    mode: str,
    words: list[str],
    roots: list[str] | None,
    allowed: list[str],
    refused: list[str],
) -> None:
    asked = 0

    async def list_roots(_: object) -> types.ListRootsResult:
        nonlocal asked
        asked += 1
        return types.ListRootsResult(
            roots=[types.Root(uri=(folder / one).as_uri()) for one in roots or ()]
        )

    async def main() -> None:
        options: dict[str, Any] = {} if roots is None else {"list_roots_callback": list_roots}
        async with over_stdio(folder, *words, mode=mode, **options) as client:
            for name in refused:
                result = await client.call_tool("convert_to_mp3", {"file": name})
                assert code_of(result) == "invalid_request", name
                assert "lies outside" in text_of(result) or "no file" in text_of(result)
            for name in allowed:
                result = await client.call_tool("convert_to_mp3", {"file": name, "bitrate": "32k"})
                assert not result.is_error, text_of(result)

    run(main())
    assert (asked > 0) is (roots is not None)


def test_a_current_folder_that_nobody_has_chosen(folder: Path) -> None:
    program = "import os, sys; os.chdir('/'); os.execv(sys.argv[1], sys.argv[1:])"
    words = [*python(program), *PROGRAM, "mcp"]
    call = {"name": "convert_to_mp3", "arguments": {"file": str(folder / "here.wav")}}
    lines = [handshake(), message("notifications/initialized", number=None),
             message("tools/call", call, 2)]  # fmt: skip
    answers = by_hand(words, folder, lines)
    assert "lies outside" in answers[2]["result"]["content"][0]["text"]


def by_hand(words: list[str], folder: Path, lines: list[bytes]) -> dict[int, Any]:
    """What answers came, by number; every line of standard output is one of the protocol."""
    with subprocess.Popen(
        words, cwd=folder, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        wanted = sum(b'"id"' in one for one in lines)
        process.stdin.write(b"".join(one + b"\n" for one in lines))
        process.stdin.flush()
        told = [json.loads(process.stdout.readline()) for _ in range(wanted)]
        process.stdin.close()
        rest = process.stdout.read()
        assert process.wait(20) == 0
    assert rest == b""
    assert all(one["jsonrpc"] == "2.0" for one in told)
    return {one["id"]: one for one in told}


def test_standard_output_has_nothing_but_the_protocol(folder: Path) -> None:
    """Whatever is asked, and whatever prints: engines of another process do it as well."""
    bad = {"name": "convert_to_mp3", "arguments": {"file": "in"}}
    good = {"name": "convert_to_mp3", "arguments": {"file": "in/song.wav"}}
    chat = {"name": "chat", "arguments": {"model": "none", "messages": []}}
    lines = [handshake(), message("notifications/initialized", number=None), b"no JSON", b"",
             b"\xff\xfe", b"[" * 10_000, message("tools/call", bad, 2),
             message("tools/call", good, 3), message("no/such", {}, 4),
             message("tools/call", chat, 5), message("tools/list", {}, 6)]  # fmt: skip
    printing = (
        "import sys, runpy, polymux.engines.process.in_process as one\n"
        "before = one.InProcessBackend.run\n"
        "async def run(*given):\n"
        "    print('noise')\n"
        "    return await before(*given)\n"
        "one.InProcessBackend.run = run\n"
        "sys.argv = ['polymux', 'mcp']\n"
        "runpy.run_module('polymux', run_name='__main__')\n"
    )
    answers = by_hand(python(printing), folder, lines)
    assert sorted(answers) == [1, 2, 3, 4, 5, 6]
    assert answers[2]["result"]["isError"] is True
    assert answers[3]["result"]["isError"] is False
    assert answers[4]["error"]["code"] == -32601
    assert answers[5]["result"]["isError"] is True
    assert len(answers[6]["result"]["tools"]) == 14


@pytest.mark.parametrize("end", ["input", "SIGTERM"])
def test_it_ends_with_its_client(folder: Path, end: str) -> None:
    """A call that goes on then is cancelled, and nothing is left."""
    (folder / "long.wav").write_bytes(wav(600.0))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        [*PROGRAM, "mcp"], cwd=folder, env=environment(folder, TMPDIR=str(folder)), **pipes
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(handshake() + b"\n")
        process.stdin.flush()
        assert b"polymux" in process.stdout.readline()
        call = {"name": "convert_to_mp3", "arguments": {"file": "long.wav"},
                "_meta": {"progressToken": 1}}  # fmt: skip
        for line in (message("notifications/initialized", number=None),
                     message("tools/call", call, 2)):  # fmt: skip
            process.stdin.write(line + b"\n")
        process.stdin.flush()
        assert b"notifications/progress" in process.stdout.readline()
        began = time.monotonic()
        if end == "input":
            process.stdin.close()
            assert process.wait(20) == 0
        else:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
        assert time.monotonic() - began < 10
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert list(folder.glob("polymux-local-*")) == []


def test_results_can_be_kept(folder: Path) -> None:
    async def main() -> None:
        async with over_stdio(folder, "--output-dir", "kept") as client:
            (link,) = links_in(await client.call_tool("convert_to_mp3", {"file": "here.wav"}))
        assert Path(link.uri.removeprefix("file://")).stat().st_size == link.size
        async with over_stdio(folder, "--output-dir", "kept") as client:
            assert [one.uri for one in (await client.list_resources()).resources] == [link.uri]
            assert len(await read(client, link.uri)) == link.size

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_by_a_server(folder: Path, server: PolymuxServer, box: Box, mode: str) -> None:
    received: list[bytes] = []
    before = box.backend.run

    async def watched(work: OperationRequest, sink: Any) -> Any:
        if "file" in work.values:
            received.append(work.values["file"].path.read_bytes())
        return await before(work, sink)

    box.backend.run = watched  # type: ignore[method-assign]

    async def main() -> None:
        async with over_stdio(folder, "--server", server.url, mode=mode, server=server) as client:
            result = await client.call_tool("convert_to_mp3", {"file": "in/song.wav"})
            (link,) = links_in(result)
            assert received == [(folder / "in/song.wav").read_bytes()]
            assert link.uri.startswith(f"{server.url}/media/")
            assert await read(client, link.uri) == box.backend.data
            assert [one.uri for one in (await client.list_resources()).resources] == [link.uri]
            for uri in (f"{server.url}/healthz", link.uri + "0", "file:///etc/passwd"):
                with pytest.raises(MCPError, match="no such resource"):
                    await client.read_resource(uri)
            assert text_of(await client.call_tool("read_text", {"file": "here.wav"})) == "read"
            result = await client.call_tool("convert_to_mp3", {"file": "/etc/passwd"})
            assert "lies outside" in text_of(result)
            result = await client.call_tool("convert_to_mp3", {"file": "here.wav", "chanels": 1})
            assert code_of(result) == "invalid_request"
            assert "channels" in text_of(result)
            result = await client.call_tool("search_music", {"song": "Blue Danube"})
            assert code_of(result) == "no_backend"

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_progress_and_cancelling_reach_the_server(
    folder: Path, server: PolymuxServer, box: Box, mode: str
) -> None:
    told: list[float] = []

    async def on_progress(progress: float, total: float | None, words: str | None) -> None:
        told.append(progress)

    async def main() -> None:
        server.loop.call_soon_threadsafe(box.backend.gate.clear)
        async with over_stdio(folder, "--server", server.url, mode=mode, server=server) as client:
            call = asyncio.ensure_future(
                client.call_tool(
                    "convert_to_mp3", {"file": "here.wav"}, progress_callback=on_progress
                )
            )
            await asyncio.to_thread(until, lambda: box.backend.began)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            await asyncio.to_thread(until, lambda: box.backend.ended == ["cancelled"])
            server.loop.call_soon_threadsafe(box.backend.gate.set)
            result = await client.call_tool("convert_to_mp3", {"file": "here.wav"})
            assert not result.is_error

    run(main())


def test_a_server_that_refuses_or_is_not_there(folder: Path, server: PolymuxServer) -> None:
    async def asked(url: str, **more: Any) -> str:
        async with over_stdio(folder, "--server", url, "--retries", "0", **more) as client:
            result = await client.call_tool("read_text", {"file": "here.wav"})
            assert server.key not in json.dumps(result.structured_content)
            return code_of(result)

    async def main() -> None:
        server.token = "wrong-key"  # type: ignore[attr-defined]
        assert await asked(server.url, server=server) == "unauthorized"
        assert await asked("http://127.0.0.1:9") != "internal"

    run(main())


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("tool", ["convert_to_mp3", "read_text"])
def test_cancelling_ends_the_work_of_this_machine(folder: Path, mode: str, tool: str) -> None:
    async def main() -> None:
        backend = Scripted()
        backend.gate.clear()
        async with running(folder / "s", backend) as service:
            desk = LocalExecutor(lambda: service, lambda job: job.output, lambda file: file.name)
            door = StdioFrontend(Folders([], folder))
            async with Client(make_server(desk, door), mode=mode) as client:
                call = asyncio.ensure_future(client.call_tool(tool, {"file": "here.wav"}))
                while not backend.began:
                    await asyncio.sleep(0.01)
                call.cancel()
                with suppress(asyncio.CancelledError):
                    await call
                while backend.ended != ["cancelled"] or service.jobs.count:
                    await asyncio.sleep(0.01)
                backend.gate.set()
                result = await client.call_tool(tool, {"file": "here.wav"})
                assert not result.is_error

    run(asyncio.wait_for(main(), 30))
