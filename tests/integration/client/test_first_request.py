"""What the first request of a process does without: it is what a short program waits for."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from support.client_children import run

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

for kind, code in json.loads(sys.argv[2]).items():
    exec(code)
    loaded = [one for one in HEAVY if one in sys.modules]
    assert not loaded, f"{kind} has loaded {loaded}"
"""


def test_neither_dataclasses_nor_the_contract(reference: ReferenceServer) -> None:
    """As Python's objects both take longer to make than the request."""
    run(CHILD, reference.url, json.dumps(KINDS))
    assert len(reference.calls) >= len(KINDS)
