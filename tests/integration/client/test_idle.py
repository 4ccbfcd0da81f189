"""A client that waits costs nothing: no thread is woken until something comes."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from support.client_calls import FINE, SILENT_STREAM
from support.client_children import start, wait_for

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer

WATCHED_S = 1.0

STATES = {
    "clients with kept connections": """
client, other = polymux.Client(url, key), polymux.AsyncClient(url, key)
client.free_chat("x")
list(client.free_chat("x", stream=True))
loop = asyncio.new_event_loop()
loop.run_until_complete(other.free_chat("x"))
wait()
""",
    "asyncio with a request under way": """
async def main():
    async with polymux.AsyncClient(url, key) as client:
        await client.free_chat("x")
        call = asyncio.ensure_future(client.chat("silence"))
        await asyncio.sleep(0.3)
        asyncio.get_running_loop().run_in_executor(None, wait)
        await call
asyncio.run(main())
""",
    "asyncio with a silent stream": """
async def main():
    async with polymux.AsyncClient(url, key) as client:
        stream = await client.chat("silence", stream=True)
        await anext(stream)
        asyncio.get_running_loop().run_in_executor(None, wait)
        await anext(stream)
asyncio.run(main())
""",
}
WAIT = """
def wait():
    time.sleep(0.5)
    say("idle")
    time.sleep(600)
"""


def wake_ups(process: int) -> dict[str, int]:
    """How often each thread of it went to sleep, by the thread's number."""
    found = {}
    for status in Path(f"/proc/{process}/task").glob("*/status"):
        fields = dict(line.split(":", 1) for line in status.read_text().splitlines() if ":" in line)
        found[status.parent.name] = int(fields["voluntary_ctxt_switches"])
    return found


def test_nothing_is_woken(server: MisbehavingServer) -> None:
    """With connections that are kept, and with requests that nobody answers."""
    server.script(*SILENT_STREAM, path="/api/v1/fastllm/chatcompletion", times=None)
    server.script(FINE, path="/api/v1/freellm", times=None)
    children = {start(WAIT + code, server.url): state for state, code in STATES.items()}
    try:
        for child in children:
            wait_for(child, "idle")
        # What just ended may take a while to settle; what is woken again and again never does.
        for _ in range(4):
            before = {state: wake_ups(child.pid) for child, state in children.items()}
            time.sleep(WATCHED_S)
            after = {state: wake_ups(child.pid) for child, state in children.items()}
            if after == before:
                break
        assert after == before
    finally:
        for child in children:
            child.kill()
            child.communicate()
