"""Processes that end in the middle of work (K09), and odd ways to load the client (K23)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest
from servers import steps
from servers.misbehaving import MisbehavingServer
from servers.proxies import nghttpx
from support.client_children import finish, run, start, wait_for
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from pathlib import Path

    from servers.certificates import Authority
    from servers.reference import ReferenceServer

CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"x"}}]}\n\n'
ENDINGS = {
    "returns": "",
    "exits": "sys.exit(0)",
    "exits hard": "os._exit(0)",
    "raises in a thread": "threading.Thread(target=sys.exit).start()",
}
STATES = {
    "a call in a daemon thread": """
client = polymux.Client(url, key, retry=0)
threading.Thread(target=lambda: client.free_chat("x"), daemon=True).start()
""",
    "a stream in a daemon thread": """
client = polymux.Client(url, key, retry=0)
threading.Thread(target=lambda: list(client.chat("x", stream=True)), daemon=True).start()
""",
    "an upload in a daemon thread": """
client = polymux.Client(url, key, retry=0)
def pieces():
    while True:
        yield b"x" * 100_000
threading.Thread(target=lambda: client.read_text(("a.png", pieces())), daemon=True).start()
""",
    "streams half read": """
client = polymux.Client(url, key, retry=0)
streams = [client.chat("x", stream=True) for _ in range(5)]
for stream in streams:
    next(stream)
""",
    "streams of a loop": """
client = polymux.AsyncClient(url, key, retry=0)
loop = asyncio.new_event_loop()
async def main():
    streams = [await client.chat("x", stream=True) for _ in range(20)]
    for stream in streams:
        await anext(stream)
    return streams
streams = loop.run_until_complete(main())
import atexit
atexit.register(loop.close)
""",
    "calls of a loop in a daemon thread": """
client = polymux.AsyncClient(url, key, retry=0)
async def main():
    await asyncio.gather(*(client.free_chat("x") for _ in range(20)), return_exceptions=True)
threading.Thread(target=lambda: asyncio.run(main()), daemon=True).start()
""",
    "a job that is waited for in a daemon thread": """
client = polymux.Client(url, key, retry=0)
threading.Thread(target=lambda: client.predictions.wait("a"), daemon=True).start()
""",
}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("state", STATES)
def test_an_interpreter_that_ends(state: str, ending: str, server: MisbehavingServer) -> None:
    """K09: no hang over 2 s, no crash, whatever is under way."""
    server.script(steps.event_stream(), steps.send(CHUNK * 3), steps.stall(), times=None)
    busy = 'time.sleep(0.2)\nsay("busy")\n'
    child = start(STATES[state] + busy + ENDINGS[ending], server.url, options=())
    wait_for(child, "busy")
    begun = time.monotonic()
    _out, errors = child.communicate(timeout=30)
    assert time.monotonic() - begun <= 2.0 * PATIENCE
    assert child.returncode == 0, errors
    # A daemon thread may be told why its call has ended, and be cut off while it says so.
    assert "Fatal" not in errors
    assert "terminate" not in errors


def test_exits_under_load(reference: ReferenceServer) -> None:
    """K09: threads and a loop work at full speed when the main thread returns; many times."""
    code = """
client, other = polymux.Client(url, key), polymux.AsyncClient(url, key)
def work():
    while True:
        client.chat("x")
        list(client.chat("x y z", stream=True))
async def calls():
    async def one():
        while True:
            await other.chat("x")
            async for _ in await other.chat("x y z", stream=True):
                pass
    await asyncio.gather(*(one() for _ in range(10)))
client.chat("x")
for _ in range(3):
    threading.Thread(target=work, daemon=True).start()
threading.Thread(target=lambda: asyncio.run(calls()), daemon=True).start()
time.sleep(0.3)
"""
    for _ in range(8):
        child = start(code, reference.url, options=())
        _out, errors = child.communicate(timeout=30)
        assert child.returncode == 0, errors
        assert "Fatal" not in errors
        assert "terminate" not in errors


#: libc's own handlers run after the interpreter's end, and here they take a while.
SLOW_END = """
import ctypes
libc = ctypes.CDLL(None)
assert libc.__cxa_atexit(libc.sleep, ctypes.c_void_p(2), None) == 0
"""
WITHOUT_INTERPRETER = {
    **{name: STATES[f"{name} in a daemon thread"] for name in ("a call", "a stream")},
    "calls of a loop": STATES["calls of a loop in a daemon thread"],
    # The write waits until the body is read, which it is when there is no interpreter any more.
    "a fetch": """
from polymux.fetch import fetcher
host = url.removeprefix("http://")
policy = fetcher.native_policy(fetcher.FetchPolicy(allowed_hosts=(host,)))
limits = fetcher.native_limits(fetcher.FetchLimits())
reading, writing = os.pipe()
def fetch():
    core = polymux._native._core
    core.fetch(url.encode(), policy, limits, ("descriptor", writing), None, core.CancelToken())
import polymux._native._core
threading.Thread(target=fetch, daemon=True).start()
if os.fork() == 0:
    os.closerange(writing, writing + 1)
    time.sleep(1)
    while os.read(reading, 65536):
        pass
    os._exit(0)
""",
}


@pytest.mark.parametrize("state", WITHOUT_INTERPRETER)
def test_work_that_outlives_the_interpreter(state: str, server: MisbehavingServer) -> None:
    """K09: an answer that comes between the interpreter's end and the process's harms nothing."""
    late = b"x" * 300_000 if state == "a fetch" else CHUNK
    head = steps.event_stream()
    server.script(head, steps.send(late), steps.sleep(0.8), steps.send(late), times=None)
    child = start(
        SLOW_END + WITHOUT_INTERPRETER[state] + 'time.sleep(0.3)\nsay("busy")', server.url
    )
    wait_for(child, "busy")
    begun = time.monotonic()
    _out, errors = child.communicate(timeout=30)
    assert child.returncode == 0, errors
    assert time.monotonic() - begun >= 1.5, "the process ended before the answer came"


def test_exits_with_streams_over_tls(authority: Authority, tmp_path: Path) -> None:
    """K09: what TLS leaves for the end of a process meets threads that still use it."""
    code = """
client = polymux.AsyncClient(url, key, retry=0, verify=sys.argv[2])
async def main():
    streams = [await client.chat("x", stream=True) for _ in range(20)]
    for stream in streams:
        await anext(stream)
    async def read(stream):
        async for _ in stream:
            pass
    asyncio.get_running_loop().call_later(0.2, loop.stop)
    await asyncio.gather(*map(read, streams))
loop = asyncio.new_event_loop()
task = loop.create_task(main())
try:
    loop.run_forever()
finally:
    task.cancel()
"""
    with MisbehavingServer() as server:
        server.script(steps.event_stream(), steps.repeat_forever(CHUNK), times=None)
        with nghttpx(server.port, authority.certificate(), tmp_path) as proxy:
            for _ in range(4):
                child = start(code, proxy.url, proxy.ca, options=())
                _out, errors = child.communicate(timeout=30)
                assert child.returncode == 0, errors


def test_exit_in_the_middle_of_an_import() -> None:
    """K09: a thread still loads the client."""
    for delay in (0, 0.01, 0.03, 0.06):
        code = """
def load():
    import polymux._native._core
    polymux.Client(url, key, retry=0).free_chat("x")
threading.Thread(target=load, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""
        child = start(code, "http://127.0.0.1:9", delay, options=())
        _out, errors = child.communicate(timeout=30)
        assert child.returncode == 0, errors
        assert "Fatal" not in errors


def test_a_killed_process_leaves_no_connection(server: MisbehavingServer) -> None:
    """K09: the server learns of it."""
    server.script(steps.stall(), times=None)
    child = start(STATES["a call in a daemon thread"] + "time.sleep(60)", server.url)
    server.wait_requests(1, 10 * PATIENCE)
    child.kill()
    child.communicate()
    server.wait_closed(server.connections[0])


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


@pytest.mark.parametrize(
    "options", [("-W", "error"), ("-X", "dev", "-W", "error"), ("-O",), ("-OO",), ("-b", "-b")]
)
def test_no_warning(options: tuple[str, ...], reference: ReferenceServer) -> None:
    """K23: under `-X dev` and `-W error`, with and without closing; asserts and docstrings off."""
    child = start(EVERYTHING, reference.url, options=options)
    finish(child)
    assert child.stderr is not None


def test_twice_in_one_process(reference: ReferenceServer) -> None:
    """K23: the modules are dropped and imported again; both copies work, or the second says no."""
    code = """
polymux.Client(url, key).chat("x")
first = {name: sys.modules.pop(name) for name in list(sys.modules) if name.startswith("polymux")}
try:
    import polymux as again
    assert again is not first["polymux"]
    assert again.Client(url, key).chat("x").text == "You said: x"
except ImportError as error:
    say(error)
assert first["polymux"].Client(url, key).chat("y").text == "You said: y"
"""
    run(code, reference.url)


def test_in_a_second_interpreter(reference: ReferenceServer) -> None:
    """K23: works, or is refused as an import; the first interpreter goes on."""
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
