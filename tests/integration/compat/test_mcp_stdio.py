"""`polymux mcp` with the SDK's client: local engines, files, a remote server and shutdown."""

from __future__ import annotations

import asyncio
import base64
import json
import signal
import subprocess
import threading
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support.commands import PROGRAM, environment
from support.conversions import wav
from support.lazy_imports import mcp, mcp_types
from support.mcp_clients import (
    MODES,
    batch,
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
from support.server_process import until
from support.services import Scripted, running

if TYPE_CHECKING:
    from mcp import Client
    from polymux.service.service import Service
    from support.polymux_server import PolymuxServer


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "in").mkdir()
    (tmp_path / "out").mkdir()
    for name in ("in/song.wav", "out/other.wav", "here.wav"):
        (tmp_path / name).write_bytes(wav(0.5))
    (tmp_path / "in/link.wav").symlink_to(tmp_path / "out/other.wav")
    return tmp_path


def beside(service: Service, folder: Path, **options: Any) -> Client:
    """A client of the same MCP server in this process."""
    from polymux.mcp.executor import LocalExecutor
    from polymux.mcp.files import Folders
    from polymux.mcp.protocol import make_server
    from polymux.mcp.stdio import StdioFrontend

    desk = LocalExecutor(lambda: service, lambda job: job.output, lambda file: file.name)
    return mcp.Client(make_server(desk, StdioFrontend(Folders([], folder))), **options)


def test_a_real_conversion(folder: Path) -> None:
    """With --output-dir, the result remains after the exit."""
    reports: list[float] = []

    async def on_progress(progress: float, total: float | None, words: str | None) -> None:
        del words
        assert total == 1.0
        reports.append(progress)

    async def main() -> None:
        words = ["--output-dir", "kept"]
        async with over_stdio(folder, *words, mode="legacy") as client:
            assert len((await client.list_tools()).tools) == 14
            given = {"file": "in/song.wav", "bitrate": "64k"}
            result = await client.call_tool("convert_to_mp3", given, progress_callback=on_progress)
            (link,) = links_in(result)
            expected = polymux.convert_to_mp3(folder / "in/song.wav", bitrate="64k").read()
            assert await read(client, link.uri) == expected
            # The link is the path of the file.
            path = Path(link.uri.removeprefix("file://"))
            assert path.read_bytes() == expected
            assert result.structured_content["response"] == link.uri
            assert link.name == "song.mp3"
            data = base64.b64encode(wav(0.5)).decode()
            for text in (f"data:audio/wav;base64,{data}", (folder / "in/song.wav").as_uri()):
                again = await client.call_tool("convert_to_mp3", {"file": text, "bitrate": "64k"})
                assert await read(client, links_in(again)[0].uri) == expected
            again = await client.call_tool("convert_to_mp3", {"file": link.uri})
            assert not again.is_error, text_of(again)
            for uri in ((folder / "here.wav").as_uri(), "file:///etc/passwd", f"{path.parent}"):
                with pytest.raises(mcp.MCPError, match="resource"):
                    await client.read_resource(uri)
        assert path.exists()
        async with over_stdio(folder, *words) as client:
            assert link.uri in [one.uri for one in (await client.list_resources()).resources]
            assert await read(client, link.uri) == expected

    run(main())
    assert reports == sorted(reports)
    assert list(folder.glob("polymux-local-*")) == []


def roots_of(folder: Path, names: list[str] | None) -> dict[str, Any]:
    """The options of a client that announces folders as its roots."""
    if names is None:
        return {}
    roots = [mcp_types.Root(uri=(folder / one).as_uri()) for one in names]

    async def list_roots(_: object) -> mcp_types.ListRootsResult:
        return mcp_types.ListRootsResult(roots=roots)

    return {"list_roots_callback": list_roots}


async def check_reads(client: Client, allowed: list[str], refused: list[str]) -> None:
    for name in refused:
        result = await client.call_tool("read_text", {"file": name})
        assert code_of(result) == "invalid_request", name
        assert name.rpartition("/")[2] in text_of(result)
    for name in allowed:
        assert text_of(await client.call_tool("read_text", {"file": name})) == "read"


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("roots", "allowed", "refused"),
    [
        (None, ["in/song.wav", "in/link.wav"], ["/etc/passwd"]),
        (["in"], ["in/song.wav", "song.wav"], ["here.wav", "in/link.wav"]),
        ([], [], ["here.wav"]),
    ],
)
def test_which_files_may_be_read(
    folder: Path, mode: str, roots: list[str] | None, allowed: list[str], refused: list[str]
) -> None:
    async def main() -> None:
        async with running(folder / "s", Scripted()) as service:
            options = roots_of(folder, roots)
            async with beside(service, folder, mode=mode, **options) as client:
                await check_reads(client, allowed, refused)

    run(main())


def by_hand(words: list[str], folder: Path, lines: list[bytes]) -> dict[int, Any]:
    """Send raw lines; return responses by number. Standard output has only protocol messages."""
    with subprocess.Popen(
        words, cwd=folder, env=environment(folder), stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        wanted = {json.loads(one)["id"] for one in lines if b'"id"' in one}
        process.stdin.write(b"".join(one + b"\n" for one in lines))
        process.stdin.flush()
        answers: dict[int, Any] = {}
        # Other lines may follow, because the error for an invalid message has no number.
        while wanted - answers.keys():
            line = process.stdout.readline()
            assert line, answers
            incoming = json.loads(line)
            assert incoming["jsonrpc"] == "2.0"
            if "method" not in incoming:
                answers[incoming["id"]] = incoming
        process.stdin.close()
        assert all(json.loads(one)["jsonrpc"] == "2.0" for one in process.stdout)
        assert process.wait(60) == 0
    return answers


def test_standard_output_has_nothing_but_the_protocol(folder: Path) -> None:
    """All kinds of messages and all prints, including those of engines in other processes."""
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
    assert answers[2]["result"]["isError"] is True
    assert answers[3]["result"]["isError"] is False
    assert answers[4]["error"]["code"] == -32601
    assert answers[5]["result"]["isError"] is True
    assert len(answers[6]["result"]["tools"]) == 14


def answers_to(folder: Path, lines: list[bytes], count: int) -> list[Any]:
    """The first lines that `polymux mcp` writes."""
    with subprocess.Popen(
        [*PROGRAM, "mcp"],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(b"".join(one + b"\n" for one in lines))
        process.stdin.flush()
        limit = threading.Timer(60, process.kill)
        limit.start()
        found = [json.loads(process.stdout.readline()) for _ in range(count)]
        limit.cancel()
        process.stdin.close()
        assert process.wait(60) == 0
    return found


def error_code(answer: Any) -> tuple[Any, int]:
    return answer["id"], answer["error"]["code"]


def test_lines_that_are_no_messages(folder: Path) -> None:
    lines = [b"no JSON", b" \t", b"\xff\xfe", b"[" * 10_000, b"5", b'{"id": 1}', handshake()]
    lines += [batch(message("ping")), b'{"jsonrpc": "2.0",']
    found = answers_to(folder, lines, 8)
    assert [error_code(one) for one in found if "error" in one] == [
        (None, -32700), (None, -32700), (None, -32700), (None, -32600), (None, -32600),
        (None, -32600), (None, -32700),
    ]  # fmt: skip
    assert sum("result" in one for one in found) == 1


def test_a_batch(folder: Path) -> None:
    listing = message("resources/templates/list", number=3)
    lines = [
        handshake("2025-03-26"),
        batch(message("ping", number=2), b"5", listing, message("no/such", number="a")),
        batch(message("notifications/initialized", number=None)),
        batch(handshake()),
        batch(*[message("ping")] * 21),
        batch(message("ping", {"a": "x" * (64 << 10)})),
    ]
    opened, *rest = answers_to(folder, lines, 5)
    assert opened["result"]["protocolVersion"] == "2025-03-26"
    lists = [one for one in rest if isinstance(one, list)]
    answers, alone = sorted(lists, key=len, reverse=True)
    assert [one["result"] for one in answers if one["id"] == 2] == [{}]
    assert [one["result"]["resourceTemplates"] for one in answers if one["id"] == 3] == [[]]
    errors = {error_code(one) for one in answers if "error" in one}
    assert errors == {(None, -32600), ("a", -32601)}
    assert [error_code(one) for one in alone] == [(None, -32600)]
    assert [error_code(one) for one in rest if not isinstance(one, list)] == [(None, -32600)] * 2


@pytest.mark.parametrize("number", [2, "2"])
def test_a_canceled_request_of_a_batch(folder: Path, number: int | str) -> None:
    """It gets no answer, and the others get theirs. A number may be written as a string."""
    (folder / "long.wav").write_bytes(wav(600.0))
    call = {"name": "convert_to_mp3", "arguments": {"file": "long.wav"}}
    lines = [
        handshake("2025-03-26"),
        batch(message("tools/call", call, 2), message("ping", number=3)),
        message("notifications/cancelled", {"requestId": number}, None),
    ]
    _, answers = answers_to(folder, lines, 2)
    assert [one["id"] for one in answers] == [3]


@pytest.mark.parametrize("end", ["input", "SIGTERM"])
def test_it_ends_with_its_client(folder: Path, end: str) -> None:
    (folder / "long.wav").write_bytes(wav(600.0))
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    with subprocess.Popen(
        [*PROGRAM, "mcp"], cwd=folder, env=environment(folder, TMPDIR=str(folder)), **pipes
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        call = {"name": "convert_to_mp3", "arguments": {"file": "long.wav"},
                "_meta": {"progressToken": 1}}  # fmt: skip
        for line in (handshake(), message("notifications/initialized", number=None),
                     message("tools/call", call, 2)):  # fmt: skip
            process.stdin.write(line + b"\n")
        process.stdin.flush()
        while b"notifications/progress" not in process.stdout.readline():
            assert process.poll() is None
        if end == "input":
            process.stdin.close()
            assert process.wait(20) == 0
        else:
            process.send_signal(signal.SIGTERM)
            assert process.wait(20) == 128 + signal.SIGTERM
        assert process.stderr is not None
        assert b"Traceback" not in process.stderr.read()
    assert list(folder.glob("polymux-local-*")) == []


def test_by_a_server(folder: Path, server: PolymuxServer, backend: Scripted) -> None:
    """Tests the command's options for a server, folders and a key."""
    received: list[bytes] = []
    before = backend.run

    async def watched(work: Any, sink: Any) -> Any:
        received.append(work.values["file"].path.read_bytes())
        return await before(work, sink)

    backend.run = watched  # type: ignore[method-assign]
    server.token = server.key  # type: ignore[attr-defined]

    async def main() -> None:
        words = ["--server", server.url, "--allow-dir", "in"]
        options = roots_of(folder, ["out"])
        async with over_stdio(folder, *words, server=server, **options) as client:
            (link,) = links_in(await client.call_tool("convert_to_mp3", {"file": "in/song.wav"}))
            assert received == [(folder / "in/song.wav").read_bytes()]
            assert link.uri.startswith(f"{server.url}/media/")
            assert await read(client, link.uri) == backend.data
            assert [one.uri for one in (await client.list_resources()).resources] == [link.uri]
            for uri in (f"{server.url}/healthz", link.uri + "0", "file:///etc/passwd"):
                with pytest.raises(mcp.MCPError, match="resource"):
                    await client.read_resource(uri)
            await check_reads(client, ["in/link.wav"], ["here.wav", "/etc/passwd"])
            given = {"file": "in/song.wav", "chanels": 1}
            result = await client.call_tool("convert_to_mp3", given)
            assert code_of(result) == "invalid_request"
            assert "channels" in text_of(result)
            result = await client.call_tool("search_music", {"song": "Blue Danube"})
            assert code_of(result) == "no_backend"

    run(main())


def test_progress_and_cancelling_reach_the_server(
    folder: Path, server: PolymuxServer, backend: Scripted
) -> None:
    reports: list[float] = []

    async def on_progress(progress: float, total: float | None, words: str | None) -> None:
        reports.append(progress)

    async def main() -> None:
        server.loop.call_soon_threadsafe(backend.gate.clear)
        given = {"file": "here.wav"}
        async with over_stdio(folder, "--server", server.url, server=server) as client:
            call = asyncio.ensure_future(
                client.call_tool("convert_to_mp3", given, progress_callback=on_progress)
            )
            await asyncio.to_thread(until, lambda: backend.began and reports)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            await asyncio.to_thread(until, lambda: backend.ended == ["cancelled"])
            server.loop.call_soon_threadsafe(backend.gate.set)
            assert not (await client.call_tool("convert_to_mp3", given)).is_error

    server.token = server.key  # type: ignore[attr-defined]
    run(main())


@pytest.mark.parametrize("tool", ["convert_to_mp3", "read_text"])
def test_cancelling_ends_the_work_of_this_machine(folder: Path, tool: str) -> None:
    async def main() -> None:
        backend = Scripted()
        backend.gate.clear()
        async with running(folder / "s", backend) as service, beside(service, folder) as client:
            call = asyncio.ensure_future(client.call_tool(tool, {"file": "here.wav"}))
            while not backend.began:
                await asyncio.sleep(0.01)
            call.cancel()
            with suppress(asyncio.CancelledError):
                await call
            while backend.ended != ["cancelled"] or service.jobs.count:
                await asyncio.sleep(0.01)
            backend.gate.set()
            assert not (await client.call_tool(tool, {"file": "here.wav"})).is_error

    run(main())
