"""Native objects: created and dropped many times, copied and half initialized (N17 and K19)."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from polymux._native import _core
from support.client_calls import FINE
from support.client_children import check_flat, run
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer

#: Creates and drops objects, and measures after a fifth of the rounds and at the end.
TIMES = """
import contextlib, copy, gc, itertools, pickle, select, socket, tracemalloc
import polymux.errors
from polymux._native import _core as core
from polymux.client import event_loop as loop
from polymux.fetch import fetcher
from polymux.client.options import QUICK, Retry, native_options

def session():
    return core.Session(headers=["Authorization: Bearer " + key], proxy="", no_proxy="",
                        certificates="", verify=True, http2=True)

def request(body=None):
    return "POST", url + "/x", ["X-A: b"], body, options

def body():
    return core.MultipartBody([("a", "b")], [], None)

options = native_options(QUICK, Retry(0))
client = session()
polymux_client = polymux.Client(url, key, retry=0)
async_client = polymux.AsyncClient(url, key, retry=0)
policy = fetcher.FetchPolicy(allowed_hosts=(url.removeprefix("http://"),))

class Kept:
    descriptor, have_bytes, whole_bytes = os.open(os.devnull, os.O_WRONLY), 5, None
    def __init__(self, etag=""):
        self.etag = etag
    def begins(self, start):
        if not self.etag:
            raise polymux.errors.InvalidRequestError("no")

def refused(work, *arguments):
    with contextlib.suppress(polymux.errors.InvalidRequestError, polymux.errors.URLRefusedError):
        work(*arguments, policy=policy) if len(arguments) > 1 else work(*arguments)

async def dropped():
    client.start(loop.port(), *request(), "buffered")

async def used_client():
    async with polymux.AsyncClient(url, key, retry=0) as one:
        await one.request("freellm", {"messages": "x"})
    await polymux.AsyncClient(url, key, retry=0).free_chat("x")  # Deliberately not closed.
    polymux.Client(url, key, retry=0).free_chat("x")

async def read_stream():
    async for _ in await async_client.free_chat("x", stream=True):
        pass

def front():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        made = core.ServerFront(listener.fileno(), io_threads=1, header_timeout_s=9.0,
                                keep_alive_timeout_s=9.0, write_timeout_s=9.0, max_connections=9,
                                max_connections_per_network=None, tls_certificate="", tls_key="")
        with socket.create_connection(listener.getsockname()) as one:
            one.sendall(b"GET / HTTP/1.1\\r\\nHost: x\\r\\n\\r\\n")
            select.select([made], [], [], 20)
            ((_, exchange),) = made.take()
            exchange.start(204, [])
            exchange.write(b"", True)
            one.recv(1000)
        made.close()

def gate():
    keys = core.KeyTable("/nowhere", None, [(bytes(32), ["ocr"], None), (bytes(32), None, 1.0)])
    endpoint = core.EndpointRules("ocr", ["POST"], is_public=False, is_loopback_public=False,
                                  accepts_any_address=False, accepts_token=False)
    rules = core.GateRules(allowed_hosts=["a"], allowed_origins=["b"], is_loopback_only=False)
    scope = {"method": "POST", "raw_path": b"/", "query_string": b"", "http_version": "1.1",
             "headers": [(b"host", b"a"), (b"prefer", b"b"), (b"prefer", b"c")]}
    rules.admit(endpoint, keys, scope, 0.0)
    keys.find(b"x", 0.0), keys.is_current()
    with contextlib.suppress(ValueError):
        core.KeyTable("", None, [(b"", None, None)])

async def measured(work, count, awaited):
    figures_at = []
    for number in range(count):
        given = work()
        if awaited:
            given = await given
        if number + 1 in (count // 5, count):
            del given
            gc.collect()
            await asyncio.sleep(0.1 if awaited else 0)
            now = figures() if count >= 1000 else settled()  # Nothing is released later.
            figures_at.append(now | {"traced": tracemalloc.get_traced_memory()[0]})
    return figures_at
"""
#: 1000 rounds if no request is made, otherwise enough rounds to detect a leak.
OBJECTS = {
    "CallOptions": "native_options.__wrapped__(QUICK, Retry(0))",
    "Session": "session()",
    "Session, closed": "session().close()",
    "LoopNotifier": "core.LoopNotifier(core)",
    "LoopNotifier, closed": "core.LoopNotifier(core).close()",
    "Client": "polymux.Client(url, key).close()",
    "ChatChunk": 'core.ChatChunk(b\'{"choices":[{"delta":{"content":"x"}}]}\').json()',
    "EventSplitter": 'core.EventSplitter(1000).feed(b"data: x\\n\\ndata: y")',
    "JsonScan": 'core.JsonScan("method").add(b"[1]")',
    "JsonBuffer": 'core.JsonBuffer().write({"a": [1, "x", None]})',
    "MultipartBody": "body()",
    "CancelToken": "core.CancelToken().cancel()",
    "FetchPolicy, FetchLimits": "(fetcher.FetchPolicy(), fetcher.FetchLimits())",
    "fetch, refused": "refused(fetcher.fetch, url)",
    "ServerFront, ServerExchange": "front()",
    "KeyTable, EndpointRules, GateRules": "gate()",
}
REQUESTS = {
    "Session, used": "session().perform(*request())",
    "Exchange": 'list(iter(client.open(*request(b"{}"), "raw").take_bytes, b""))',
    "Exchange, dropped": 'client.open(*request(), "buffered")',
    "Exchange, closed": 'client.open(*request(), "chat").close()',
    "Exchange of a body": 'client.open(*request(body()), "buffered")',
    "ChatStream": 'list(polymux_client.free_chat("x", stream=True))',
    "ChatStream, dropped": 'polymux_client.free_chat("x", stream=True)',
    "fetch": "fetcher.fetch(url, policy=policy)",
    "fetch, the rest": "fetcher.fetch_rest(url, Kept('\"a\"'), policy=policy)",
    "fetch, the rest refused": "refused(fetcher.fetch_rest, url, Kept())",
}
ASYNC = {
    "Exchange": 'loop.outcome(client.start(loop.port(), *request(), "buffered"), None, None)',
    "Exchange, dropped": "dropped()",
    "AsyncChatStream": "read_stream()",
    "AsyncChatStream, dropped": 'async_client.free_chat("x", stream=True)',
}


def test_every_native_class_is_made_a_thousand_times() -> None:
    """Fails if a new native class is not tested here (N17)."""
    words = {word for name in (*OBJECTS, *REQUESTS, *ASYNC) for word in re.findall(r"\w+", name)}
    classes = {
        name
        for name, value in vars(_core).items()
        if isinstance(value, type) and not issubclass(value, BaseException)
    }
    assert classes <= words


def check(
    server: MisbehavingServer, works: dict[str, str], count: int, *, awaited: bool = False
) -> None:
    """Check that memory (also traced), descriptors, threads stay level after 1/5 of the rounds."""
    server.script(FINE, times=None)
    named = "".join(f"    {name!r}: lambda: {code},\n" for name, code in works.items())
    code = f"""{TIMES}
tracemalloc.start()
for name, work in {{\n{named}}}.items():
    say(json.dumps([name, asyncio.run(measured(work, {count}, {awaited}))]))
"""
    lines = run(code, server.url, timeout_s=400).splitlines()
    assert len(lines) == len(works)
    for line in lines:
        name, (first, last) = json.loads(line)
        # Calls that are not awaited run concurrently. A few of their connections may remain, but
        # not one per call.
        check_flat(first, last, growth_mib=2, connections=16 if "dropped" in name else 1)
        assert SANITIZED or last["traced"] - first["traced"] <= 64 << 10, (name, first, last)


def test_a_thousand_times(server: MisbehavingServer) -> None:
    """Objects that make no requests (N17)."""
    check(server, OBJECTS, 1000)


def test_hundreds_of_requests(server: MisbehavingServer) -> None:
    check(server, REQUESTS, 200)


def test_a_thousand_times_in_a_loop(server: MisbehavingServer) -> None:
    """The same for the work on the thread of an AsyncClient (N17)."""
    check(server, ASYNC, 150, awaited=True)
    check(server, {"AsyncClient": "used_client()"}, 60, awaited=True)


def test_half_made_copied_and_pickled(server: MisbehavingServer) -> None:
    """Every native class raises TypeError and does not crash (K19)."""
    server.script(FINE, times=None)
    code = """
made = [options, client, core.LoopNotifier(core), client.open(*request(), "buffered"),
        core.CancelToken(), core.MultipartBody([("a", "b")], [], None)]
for one in made:
    for work in (copy.copy, copy.deepcopy,
                 *(lambda one, p=p: pickle.dumps(one, p) for p in range(6))):
        try:
            work(one)
        except (TypeError, pickle.PicklingError):
            continue
        raise SystemExit(f"{type(one)} was copied")
for kind in vars(core).values():
    if not isinstance(kind, type) or issubclass(kind, BaseException):
        continue
    try:
        half = kind.__new__(kind)
    except TypeError:
        continue
    for member in dir(half):
        if not member.startswith("__"):
            with contextlib.suppress(Exception):
                getattr(half, member)()
    repr(half)
    del half
gc.collect()
"""
    run(TIMES + code, server.url)
