"""Streams over HTTP/2 with one that is not read for a while (C35)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servers import steps
from servers.misbehaving import MisbehavingServer
from servers.proxies import nghttpx
from support.client_children import MIB, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from pathlib import Path

    from servers.certificates import Authority

_PADDING = b"p" * (64 << 10)
_CHUNK = b'data: {"padding":"%b","choices":[{"index":0,"delta":{"content":"x"}}]}\n\n' % _PADDING
_LONG, _OTHER = 700, 300  # Chunks: more than 40 MiB and more than 17 MiB.
#: Several streams of one client, one of which is read after the others have ended.
_CODE = """
async def main():
    async with polymux.AsyncClient(url, key, retry=0, verify=sys.argv[2]) as client:
        async def begin(path):
            stream = await client.with_options(paths={"chat": path}).chat("x", stream=True)
            return stream, len((await anext(stream)).content)

        async def rest(stream, count):
            async for chunk in stream:
                count += len(chunk.content)
            return count

        unread = await begin("/long")
        before = status("VmRSS")
        others = [await rest(*await begin("/other")) for _ in range(2)]
        figures = [*others, await rest(*unread)]
        say(json.dumps([*figures, (status("VmHWM") - before) * 1024]))
asyncio.run(main())
"""


def test_a_stream_that_is_not_read_beside_others(authority: Authority, tmp_path: Path) -> None:
    """The other streams complete. The unread one waits on the server and is then complete."""
    with (
        MisbehavingServer() as server,
        nghttpx(server.port, authority.certificate(), tmp_path) as proxy,
    ):
        for path, count in (("/long", _LONG), ("/other", _OTHER)):
            body = steps.send(_CHUNK * count + b"data: [DONE]\n\n")
            server.script(steps.event_stream(), body, path=path, times=None)
        *counts, memory = run_json(_CODE, proxy.url, proxy.ca)
        assert {one.header("via") for one in server.requests} == {"2 nghttpx"}
    assert counts == [_OTHER, _OTHER, _LONG]
    assert SANITIZED or memory <= 16 * MIB
