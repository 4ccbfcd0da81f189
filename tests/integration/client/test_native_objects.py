"""Native objects of the client: made and dropped 1,000 times (N17), copied, half made (K19)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from polymux._native import _core
from servers import steps
from support.client_children import check_flat, run, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer

#: Makes and drops something so often, and measures after a fifth and at the end.
TIMES = """
import copy, gc, pickle, tracemalloc
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
policy = fetcher.FetchPolicy(allowed_hosts=(url.removeprefix("http://"),))

class Kept:
    descriptor, have_bytes, whole_bytes = os.open(os.devnull, os.O_WRONLY), 5, None
    def __init__(self, etag=""):
        self.etag = etag
    def begins(self, start):
        if not self.etag:
            raise polymux.errors.InvalidRequestError("no")

def refused_beginning():
    try:
        fetcher.fetch_rest(url, Kept(), policy=policy)
    except polymux.errors.InvalidRequestError:
        pass

def refused():
    try:
        fetcher.fetch(url)
    except polymux.errors.URLRefusedError:
        pass

def measured(work, count):
    figures_at = []
    for number in range(count):
        work()
        if number + 1 in (count // 5, count):
            gc.collect()
            figures_at.append(settled() | {"traced": tracemalloc.get_traced_memory()[0]})
    return figures_at

async def async_measured(work, count):
    figures_at = []
    for number in range(count):
        await work()
        if number + 1 in (count // 5, count):
            gc.collect()
            await asyncio.sleep(0.2)
            figures_at.append(settled() | {"traced": tracemalloc.get_traced_memory()[0]})
    return figures_at
"""

SYNC = {
    "CallOptions": "native_options(QUICK, Retry(0))",
    "Session": "session()",
    "Session, closed": "session().close()",
    "Session, used": "session().perform(*request())",
    "LoopNotifier": "core.LoopNotifier(core)",
    "LoopNotifier, closed": "core.LoopNotifier(core).close()",
    "Exchange": 'list(iter(client.open(*request(b"{}"), "raw").take_bytes, b""))',
    "Exchange, dropped": 'client.open(*request(), "buffered")',
    "Exchange, closed": 'client.open(*request(), "chat").close()',
    "Exchange of a body": 'client.open(*request(body()), "buffered")',
    "perform": 'client.perform(*request(b"{}"))',
    "Client": "polymux.Client(url, key).close()",
    "ChatStream": 'list(polymux_client.free_chat("x", stream=True))',
    "ChatStream, dropped": 'polymux_client.free_chat("x", stream=True)',
    "ChatChunk": 'core.ChatChunk(b\'{"choices":[{"delta":{"content":"x"}}]}\').json()',
    "EventSplitter": 'core.EventSplitter(1000).feed(b"data: x\\n\\ndata: y")',
    "JsonBuffer": 'core.JsonBuffer().write({"a": [1, "x", None]})',
    "MultipartBody": "body()",
    "CancelToken": "core.CancelToken().cancel()",
    "FetchPolicy, FetchLimits": "(fetcher.FetchPolicy(), fetcher.FetchLimits())",
    "fetch": "fetcher.fetch(url, policy=policy)",
    "fetch, refused": "refused()",
    "fetch, the rest": "fetcher.fetch_rest(url, Kept('\"a\"'), policy=policy)",
    "fetch, the rest refused": "refused_beginning()",
}
ASYNC = {
    "Exchange": 'loop.outcome(client.start(loop.port(), *request(), "buffered"), None, None)',
    "Exchange, dropped": "dropped()",
    "AsyncClient": "used_client()",
    "AsyncChatStream": "read_stream()",
    "AsyncChatStream, dropped": 'async_client.free_chat("x", stream=True)',
}
HELPERS = """
async def dropped():
    client.start(loop.port(), *request(), "buffered")
async def used_client():
    async with polymux.AsyncClient(url, key, retry=0) as one:
        await one.request("freellm", {"messages": "x"})
async_client = polymux.AsyncClient(url, key, retry=0)
async def read_stream():
    async for _ in await async_client.free_chat("x", stream=True):
        pass
"""


def test_every_native_class_is_made_a_thousand_times() -> None:
    """N17: and a class that is added will be missed here."""
    words = {word for name in (*SYNC, *ASYNC) for word in re.findall(r"\w+", name)}
    classes = {
        name
        for name, value in vars(_core).items()
        if isinstance(value, type) and not issubclass(value, BaseException)
    }
    assert classes <= words


def check(figures: list[dict[str, int]], connections: int = 1) -> None:
    first, last = figures
    check_flat(first, last, growth_mib=2, connections=connections)
    assert SANITIZED or last["traced"] - first["traced"] <= 64 << 10, figures


@pytest.mark.parametrize("what", SYNC)
def test_a_thousand_times(what: str, server: MisbehavingServer) -> None:
    """N17: memory, traced memory, descriptors and threads are as after a fifth of them."""
    server.script(steps.answer(200, b'{"response":"x"}'), times=None)
    code = f"{TIMES}\ntracemalloc.start()\nsay(json.dumps(measured(lambda: {SYNC[what]}, 1000)))"
    check(run_json(code, server.url))


@pytest.mark.parametrize("what", ASYNC)
def test_a_thousand_times_in_a_loop(what: str, server: MisbehavingServer) -> None:
    """N17: the same for what a thread of the client's does."""
    server.script(steps.answer(200, b'{"response":"x"}'), times=None)
    code = (
        f"{TIMES}{HELPERS}\ntracemalloc.start()\nasync def main():\n"
        f"    return await async_measured(lambda: {ASYNC[what]}, 1000)\n"
        "say(json.dumps(asyncio.run(main())))"
    )
    # Calls that nobody waits for are under way many at once; how many of their connections are kept
    # is chance, but none stays of each of 800.
    check(run_json(code, server.url), connections=16 if what == "Exchange, dropped" else 1)


def test_half_made_copied_and_pickled(server: MisbehavingServer) -> None:
    """K19: refused with TypeError, for every native class; no crash."""
    server.script(steps.answer(200, b'{"response":"x"}'), times=None)
    code = (
        TIMES
        + """
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
for name in dir(core):
    kind = getattr(core, name)
    if not isinstance(kind, type) or issubclass(kind, BaseException):
        continue
    try:
        half = kind.__new__(kind)
    except TypeError:
        continue
    for member in dir(half):
        if not member.startswith("__"):
            try:
                found = getattr(half, member)
                found()
            except Exception:
                pass
    repr(half)
    del half
gc.collect()
"""
    )
    run(code, server.url)


def test_wrong_arguments_to_native_objects(server: MisbehavingServer) -> None:
    """K19: whatever is given, an exception comes back."""
    server.script(steps.answer(200, b'{"response":"x"}'), times=None)
    code = (
        TIMES
        + """
wrong = [None, 5, -1, 2**70, 1.5, "x", "", b"x", b"\\\\xff", [], {}, (), object(), key * 1000,
         "\\\\ud800", "a\\\\0b", client, options]
import itertools
exchange = client.open(*request(), "buffered")
calls = [client.perform, client.open, client.start, core.Session, core.LoopNotifier,
         exchange.set_waiter]
good = list(request()) + ["buffered"]
for call in calls:
    for count in range(8):
        for one in wrong:
            try:
                call(*[one] * count)
            except Exception:
                pass
for place, one in itertools.product(range(6), wrong):
    arguments = list(good)
    arguments[place] = one
    try:
        client.open(*arguments).close()
    except Exception:
        pass
assert client.perform(*request())[0] == 200
"""
    )
    run(code.replace("\\\\\\\\", "\\\\"), server.url)
