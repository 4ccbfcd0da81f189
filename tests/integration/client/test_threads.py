"""One client in many threads (K03), closed by another thread (K18), and the GIL (N13)."""

from __future__ import annotations

import asyncio
import concurrent.futures
import itertools
import threading
import time
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import CHUNK, FINE, SILENT_STREAM
from support.client_children import KEY, eventually, run_json
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from collections.abc import Callable

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

CLOSED = (errors.OperationCancelledError, errors.StreamInterruptedError)


@pytest.mark.parametrize("calls", [320, pytest.param(10_000, marks=pytest.mark.long)])
def test_64_threads_on_one_client(calls: int, reference: ReferenceServer) -> None:
    """Every call, and a stream for some threads, gets its own response (K03)."""

    def work(thread: int) -> None:
        for number in range(calls // 64):
            text = f"thread {thread} {number}"
            own = client.with_options(timeout=60) if number % 2 else client
            assert own.chat(text).text == f"You said: {text}"
            if number % 4 == 0:
                with own.chat(text, stream=True) as stream:
                    assert "".join(stream.texts()) == f"You said: {text}"

    with (
        polymux.Client(reference.url, KEY, timeout=120) as client,
        concurrent.futures.ThreadPoolExecutor(64) as pool,
    ):
        list(pool.map(work, range(64)))
    assert len(reference.connections) <= 2 * 64


def test_the_first_call_of_64_threads_at_once(reference: ReferenceServer) -> None:
    """The first thread creates the session, and there is only one (K03)."""
    client = polymux.Client(reference.url, KEY)
    barrier = threading.Barrier(64)

    def work(number: int) -> str:
        barrier.wait(30)
        return client.chat(f"{number}").text

    with concurrent.futures.ThreadPoolExecutor(64) as pool:
        assert list(pool.map(work, range(64))) == [f"You said: {one}" for one in range(64)]
    client.close()
    assert eventually(lambda: not reference.open_connections)


def outcome_in_thread(work: Callable[[], Any]) -> concurrent.futures.Future[Any]:
    future: concurrent.futures.Future[Any] = concurrent.futures.Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    return future


CALLS: dict[str, Callable[[Any], Any]] = {
    "call": lambda client: client.free_chat("x"),
    "stream, before its head": lambda client: client.chat("x", stream=True),
    "upload": lambda client: client.read_text(("a.png", b"x" * 1_000_000)),
    "job": lambda client: client.predictions.get("a"),
}


WAITS: dict[str, Callable[[Any], Any]] = {
    **CALLS,
    "another try": lambda client: client.with_options(retry=5).free_chat("x"),
    "the end of a job": lambda client: client.predictions.wait("a"),
}


@pytest.mark.parametrize("call", WAITS)
def test_closing_under_a_call(call: str, server: MisbehavingServer) -> None:
    """The other thread's call ends at once; its error names the reason. No retry (K18)."""
    plays = {
        "another try": steps.answer(503, b"{}", [("Retry-After", "20")]),
        "the end of a job": steps.answer(200, b'{"id":"a","status":"processing"}'),
    }
    server.script(plays.get(call, steps.stall()), times=None)
    client = polymux.Client(server.url, KEY, retry=0, timeout=60)
    outcome = outcome_in_thread(lambda: WAITS[call](client))
    server.wait_requests(1)
    time.sleep(0.2 if call in plays else 0)  # Until the call waits.
    client.close()
    # Waiting for a job reports it at the next poll, other calls at once.
    error = outcome.exception(20 * PATIENCE)
    assert isinstance(error, (errors.OperationCancelledError, errors.InvalidRequestError)), error
    assert "closed" in str(error).lower()
    if call != "the end of a job":
        assert isinstance(error, errors.OperationCancelledError)
        assert len(server.requests) == 1
    server.wait_closed(server.connections[0])


@pytest.mark.parametrize("closed", ["stream", "client"])
def test_closing_under_a_reader(closed: str, server: MisbehavingServer) -> None:
    """The other thread's reader ends at once. Earlier text remains (K18)."""
    for _ in range(3):
        server.script(steps.event_stream(), steps.send(CHUNK * 2), steps.stall())
        client = polymux.Client(server.url, KEY, retry=0, timeout=30)
        stream = client.chat("x", stream=True)
        assert next(stream).content == next(stream).content == "x"
        outcome = outcome_in_thread(lambda: next(stream))  # noqa: B023
        time.sleep(0.1)
        (stream if closed == "stream" else client).close()
        assert isinstance(outcome.exception(20 * PATIENCE), CLOSED)
        assert stream.text == "xx"
        server.wait_closed(server.connections[-1])
        stream.close()
        client.close()


def test_closing_as_another_thread_begins_to_read(server: MisbehavingServer) -> None:
    """The reader must notice at once, not at the next wakeup of its wait (K18)."""
    server.script(*SILENT_STREAM, times=None)
    client = polymux.Client(server.url, KEY, retry=0, timeout=30)
    late = 0
    for _ in range(30):
        stream = client.chat("x", stream=True)
        next(stream)
        begun = time.monotonic()
        outcome = outcome_in_thread(lambda: next(stream))  # noqa: B023
        stream.close()
        assert isinstance(outcome.exception(5 * PATIENCE), CLOSED)
        late += time.monotonic() - begun >= 0.09
    client.close()
    assert late <= 20  # A few may be late on a busy machine.


@pytest.mark.parametrize("used", [False, True])
def test_use_after_close(used: bool, server: MisbehavingServer) -> None:
    """Every use raises a clear error, also if closed several times or never used (K18)."""
    server.script(FINE, times=None)
    client = polymux.Client(server.url, KEY)
    if used:
        client.free_chat("x")
    other = client.with_options(timeout=5)
    for _ in range(3):
        client.close()
    for one, call in itertools.product((client, other), CALLS.values()):
        with pytest.raises(errors.InvalidRequestError, match=r"(?i)closed"):
            call(one)

    async def main() -> None:
        client = polymux.AsyncClient(server.url, KEY)
        if used:
            await client.free_chat("x")
        for _ in range(3):
            await client.aclose()
        for name in ("call", "stream, before its head", "job"):
            with pytest.raises(errors.InvalidRequestError, match=r"(?i)closed"):
                await CALLS[name](client)

    asyncio.run(main())
    assert eventually(lambda: not server.open_connections)


# One thread counts. "kept" is the share of time in which it ran or waited for a core: in the
# remaining time it waited for the GIL.
COUNTING = """
from polymux.fetch.fetcher import FetchPolicy, fetch
SLICE_S = 0.15

def schedule():
    ran, waited, _ = read(f"/proc/self/task/{threading.get_native_id()}/schedstat").split()
    return (int(ran) + int(waited)) / 1e9

def count():
    begun, before = time.monotonic(), schedule()
    while (now := time.monotonic()) - begun < SLICE_S:
        for _ in range(1000):
            pass
    return (schedule() - before) / (now - begun)

clients = []

def on(path):
    paths = {"free_chat": path, "chat": path, "read_text": path}
    clients.append(polymux.Client(url, key, retry=0, timeout=60, paths=paths))
    return clients[-1]

policy = FetchPolicy(allowed_hosts=(url.removeprefix("http://"),))
works = {
    "waits": lambda: on("/waits").free_chat("x"),
    "reads": lambda: list(on("/reads").chat("x", stream=True)),
    "uploads": lambda: on("/uploads").read_text(("a.png", b"x" * (64 << 20))),
    "watches": lambda: list(clients[0].predictions.events("a")),
    "fetches": lambda: fetch(url + "/fetches", policy=policy),
}
seen = {}
for name, work in works.items():
    seen[name] = []
    while len(seen[name]) < 15 and sum(one >= 0.95 for one in seen[name]) < 2:
        threading.Thread(target=work, daemon=True).start()
        time.sleep(0.1)
        seen[name].append(count())
say(json.dumps(seen))
sys.stdout.flush()
os._exit(0)
"""


def test_another_thread_keeps_its_speed(server: MisbehavingServer) -> None:
    """During silent calls, streams, job events and fetches, and a slow upload (N13)."""
    plays = {
        "/waits": (steps.stall(),),
        "/reads": SILENT_STREAM,
        "/uploads": (steps.read_slowly(4 << 20), steps.stall()),
        "/api/v1/predictions/a/events": (steps.event_stream(), steps.stall()),
        "/fetches": (steps.head(200, [("Content-Length", 9)]), steps.stall()),
    }
    for path, play in plays.items():
        server.script(*play, path=path, times=None)
    seen = run_json(COUNTING, server.url)
    assert {one.path for one in server.requests} == plays.keys()
    for name, kept in seen.items():
        assert sum(one >= 0.95 for one in kept) >= 2, (name, kept)
