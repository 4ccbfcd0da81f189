"""Processes that exit during calls (K09), and imports in unusual environments (K23)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from servers import steps
from support.client_calls import CHUNK, FINE
from support.client_children import run, start, wait_for
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    import subprocess

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

CLIENTS = """
client, other = polymux.Client(url, key, retry=0), polymux.AsyncClient(url, key, retry=0)

def daemon(work):
    threading.Thread(target=work, daemon=True).start()

def pieces():
    while True:
        yield b"x" * 100_000

async def calls():
    await asyncio.gather(*(other.free_chat("x") for _ in range(20)), return_exceptions=True)

async def streams():
    made = [await other.chat("x", stream=True) for _ in range(20)]
    for stream in made:
        await anext(stream)
    return made
"""
STATES = {
    "a call": 'daemon(lambda: client.free_chat("x"))',
    "a stream": 'daemon(lambda: list(client.chat("x", stream=True)))',
    "an upload": 'daemon(lambda: client.read_text(("a.png", pieces())))',
    "calls of a loop": "daemon(lambda: asyncio.run(calls()))",
    "streams of a loop": """
import atexit
loop = asyncio.new_event_loop()
made = loop.run_until_complete(streams())
atexit.register(loop.close)
""",
}
ENDINGS = {"returns": "", "exits hard": "os._exit(0)"}
CASES = [*((state, "returns") for state in STATES), ("streams of a loop", "exits hard")]


def ends_well(child: subprocess.Popen[str]) -> None:
    _out, errors = child.communicate(timeout=30 * PATIENCE)
    assert child.returncode == 0, errors
    # A daemon thread may be stopped while it handles the error of its call.
    assert "Fatal" not in errors
    assert "terminate" not in errors


@pytest.mark.parametrize(("state", "ending"), CASES)
def test_an_interpreter_that_ends(state: str, ending: str, server: MisbehavingServer) -> None:
    """No hang or crash in any state (K09)."""
    server.script(steps.event_stream(), steps.send(CHUNK * 3), steps.stall(), times=None)
    busy = '\ntime.sleep(0.2)\nsay("busy")\n'
    child = start(CLIENTS + STATES[state] + busy + ENDINGS[ending], server.url, options=())
    wait_for(child, "busy")
    ends_well(child)


def test_exits_under_load(reference: ReferenceServer) -> None:
    """Threads and a loop make calls at full speed when the main thread returns (K09)."""
    code = """
def work():
    while True:
        client.chat("x")
        list(client.chat("x y z", stream=True))
async def many():
    async def one():
        while True:
            await other.chat("x")
            async for _ in await other.chat("x y z", stream=True):
                pass
    await asyncio.gather(*(one() for _ in range(10)))
client.chat("x")
for _ in range(3):
    daemon(work)
daemon(lambda: asyncio.run(many()))
time.sleep(0.3)
"""
    for _ in range(2):
        ends_well(start(CLIENTS + code, reference.url, options=()))


@pytest.mark.parametrize("register", ["atexit.register(", "weakref.finalize(threading, "])
def test_a_first_request_at_exit(register: str, server: MisbehavingServer) -> None:
    """The process ends after it, although it loaded the native module so late."""
    code = f"""
import atexit, weakref
async def awaited():
    global other
    other = polymux.AsyncClient(url, key, retry=0)
    return (await other.free_chat("x")).text
def ask():
    global client
    client = polymux.Client(url, key, retry=0)
    say(client.free_chat("x").text, asyncio.run(awaited()))
{register}ask)
"""
    server.script(FINE, times=2)
    assert run(code, server.url, timeout_s=20) == "fine fine\n"


def test_exit_in_the_middle_of_an_import() -> None:
    """Another thread is importing the client (K09)."""
    code = """
def load():
    import polymux._native._core
    polymux.Client(url, key, retry=0).free_chat("x")
threading.Thread(target=load, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""
    for delay in (0.02, 0.05):
        ends_well(start(code, "http://127.0.0.1:9", delay, options=()))


EVERYTHING = """
import gc, warnings
with polymux.Client(url, key) as client:
    assert client.chat("x").text
    with client.chat("x y", stream=True) as stream:
        next(stream)
    client.upscale_image(("a.png", b"x"))
    assert list(client.predictions.list())
    client.search_music("x")
dropped = polymux.Client(url, key)
dropped.chat("x")
dropped.chat("x", stream=True)
del dropped
async def main():
    async with polymux.AsyncClient(url, key) as client:
        assert (await client.chat("x")).text
        async with await client.chat("x y", stream=True) as stream:
            await anext(stream)
        await client.upscale_image(("a.png", iter([b"x"])))
    dropped = polymux.AsyncClient(url, key)
    await dropped.chat("x", stream=True)
asyncio.run(main(), debug=True)
gc.collect()
"""


@pytest.mark.parametrize("options", [("-X", "dev", "-W", "error", "-b", "-b"), ("-OO",)])
def test_no_warning(options: tuple[str, ...], reference: ReferenceServer) -> None:
    """No warning for an unclosed client, or without asserts and docstrings (-OO) (K23)."""
    run(EVERYTHING, reference.url, options=options)


def test_in_a_second_interpreter(reference: ReferenceServer) -> None:
    """The import works or raises ImportError. The first interpreter is not affected (K23)."""
    code = """
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
client = polymux.Client(url, key)
client.chat("x")
for _ in range(2):
    other = interpreters.create()
    interpreters.run_string(other, f'''
import sys
sys.path[:] = {sys.path!r}
try:
    import polymux
    assert polymux.Client({url!r}, {key!r}).chat("x").text == "You said: x"
except ImportError as error:
    assert "interpreter" in str(error), error
''')
    interpreters.destroy(other)
    assert client.chat("x").text == "You said: x"
"""
    run(code, reference.url, timeout_s=20)
