"""Inputs and outputs of the tools of /mcp: files, images and resources."""

from __future__ import annotations

import base64
from typing import TYPE_CHECKING

import pytest
from support.lazy_imports import mcp
from support.mcp_clients import (
    FILE,
    MODES,
    Making,
    code_of,
    links_in,
    over_http,
    read,
    run,
    text_of,
)

if TYPE_CHECKING:
    from support.polymux_server import PolymuxServer


@pytest.fixture(scope="module")
def made() -> Making:
    return Making()


@pytest.mark.parametrize("mode", MODES)
def test_what_comes_back(server: PolymuxServer, backend: Making, mode: str) -> None:
    """A file longer than the SDK client's maximum event size can be read completely."""
    backend.data = bytes(range(256)) * (3 << 12)

    async def main() -> None:
        async with over_http(server, mode) as client:
            result = await client.call_tool("read_text", FILE)
            assert text_of(result) == "read"
            assert result.structured_content == {"text": "read"}
            upload = backend.began[-1].values["file"]
            assert upload.size_bytes == 5
            assert not upload.path.exists()
            result = await client.call_tool("convert_to_mp3", FILE | {"stream": 2, "nonsense": 1})
            assert backend.began[-1].values["stream"] == 2
            last = result.content[-1]
            assert last.type == "text"
            assert "nonsense" in last.text
            (link,) = links_in(result)
            assert link.name == "a.mp3"
            assert await read(client, link.uri) == backend.data

    run(main())


def test_small_pictures_are_in_the_answer_and_large_ones_are_not(
    server: PolymuxServer, backend: Making
) -> None:
    async def main() -> None:
        sizes = (10, 400 << 10, 400 << 10, 20)
        backend.sizes = sizes
        async with over_http(server) as client:
            result = await client.call_tool("generate_image", {"prompt": "waves"})
            pictures = [len(base64.b64decode(one.data)) for one in result.content
                        if one.type == "image"]  # fmt: skip
            assert pictures == [10, 400 << 10, 20]  # At most 512 KiB in total.
            links = links_in(result)
            assert [one.size for one in links] == list(sizes)
            assert [one.name for one in links] == ["0.png", "1.png", "2.png", "3.png"]
            assert await read(client, links[2].uri) == bytes([2]) * (400 << 10)
            assert len(result.structured_content["output"]) == 4
            assert result.structured_content["status"] == "succeeded"
            backend.kind, backend.sizes = "video/mp4", (10,)
            result = await client.call_tool("generate_image", {"prompt": "waves"})
            assert [one.type for one in result.content] == ["text", "resource_link"]

    run(main())


def test_a_file_that_is_too_long_to_be_read_whole(server: PolymuxServer, backend: Making) -> None:
    async def main() -> None:
        backend.sizes = ((32 << 20) + 1,)
        async with over_http(server) as client:
            (link,) = links_in(await client.call_tool("generate_image", {"prompt": "waves"}))
            with pytest.raises(mcp.MCPError, match="33554432"):
                await client.read_resource(link.uri)

    run(main())


@pytest.mark.parametrize("mode", MODES)
def test_files_are_those_of_their_key(server: PolymuxServer, backend: Making, mode: str) -> None:
    """Other keys cannot list or read them, or pass them to a tool."""
    key, _ = server.keys.add(f"other {mode}")

    async def main() -> None:
        async with over_http(server, mode) as client, over_http(server, mode, key=key) as other:
            (link,) = links_in(await client.call_tool("convert_to_mp3", FILE))
            assert (await other.list_resources()).resources == []
            name = link.uri.rpartition("/")[2]
            others = [
                f"{start}{name}" for start in ("", "file:///", "polymux://media/../", "a://b/")
            ]
            for uri in (link.uri, *others, "file:///etc/passwd", "polymux://media/"):
                for one in (client, other) if uri != link.uri else (other,):
                    with pytest.raises(mcp.MCPError, match="resource"):
                        await one.read_resource(uri)
            with pytest.raises(mcp.MCPError, match="cursor"):
                await client.list_resources(cursor="x" * 50)
            assert text_of(await client.call_tool("read_text", {"file": link.uri})) == "read"
            upload = backend.began[-1].values["file"]
            assert backend.read[-1] == backend.data
            assert upload.file_name == "a.mp3"
            # The tool gets a copy, because the original may expire meanwhile.
            assert not upload.path.exists()
            count = len(backend.began)
            refused = await other.call_tool("read_text", {"file": link.uri})
            assert code_of(refused) == "invalid_request"
            assert len(backend.began) == count
            assert await read(client, link.uri) == backend.data  # The original file remains.

    run(main())
