"""What the first request of a process does without: it is what a short program waits for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support.client_children import run_json

if TYPE_CHECKING:
    from servers.reference import ReferenceServer

#: One of each kind: JSON, a form without a file and with one, a job, streams, and with asyncio.
#: Files that come back are dataclasses, and are none of these.
KINDS = {
    "JSON": 'with client() as asked: asked.chat("hello").text',
    "form": 'with client() as asked: asked.search_music("Blue Danube")',
    "upload": 'with client() as asked: asked.read_text(b"abcd").text',
    "job": 'with client() as asked: asked.generate_image("a boat").status',
    "watched job": 'with client() as asked: asked.generate_image("a boat", on_progress=say)',
    "stream": 'with client() as asked: "".join(asked.chat("hello", stream=True).texts())',
    "raw": 'with client() as asked: asked.request("search_music", {"song": "x"})',
    "asyncio": "asyncio.run(main())",
    "asyncio's stream": "asyncio.run(streamed())",
}
CHILD = """
HEAVY = ("dataclasses", "polymux.contract")
assert not [one for one in HEAVY if one in sys.modules], "the interpreter has it already"

def client(kind=None):
    return (kind or polymux.Client)(url, key, timeout=60)

async def main():
    async with client(polymux.AsyncClient) as asked:
        (await asked.chat("hello")).text

async def streamed():
    async with client(polymux.AsyncClient) as asked:
        async for chunk in await asked.chat("hello", stream=True):
            chunk.content

exec(sys.argv[2])
say(json.dumps([one for one in HEAVY if one in sys.modules]))
"""


@pytest.mark.parametrize("kind", KINDS)
def test_neither_dataclasses_nor_the_contract(reference: ReferenceServer, kind: str) -> None:
    """As Python's objects both take longer to make than the request."""
    loaded = run_json(CHILD, reference.url, KINDS[kind])
    assert len(reference.calls) >= 1
    assert loaded == []
