"""Clients in forked and other child processes (K01 and K02 in docs/development/testing.md)."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from servers import steps
from support import client_children
from support.client_calls import CHUNK, END, FINE

if TYPE_CHECKING:
    from pathlib import Path

    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

#: Makes many calls with distinct texts and checks each response.
CALLING = """
def calls(client, who, count=20):
    for number in range(count):
        text = f"{who} {number}"
        assert client.chat(text).text == f"You said: {text}", text
        assert "".join(client.chat(text, stream=True).texts()) == f"You said: {text}"

async def async_calls(client, who, count=20):
    async def one(number):
        text = f"{who} {number}"
        assert (await client.chat(text)).text == f"You said: {text}", text
        stream = await client.chat(text, stream=True)
        assert "".join([one async for one in stream.texts()]) == f"You said: {text}"
    await asyncio.gather(*map(one, range(count)))

def in_child(work):
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
    return pid

def join(*pids):
    codes = [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids]
    assert not any(codes), codes
"""


def run(code: str, url: str, **how: Any) -> None:
    client_children.run(CALLING + code, url, **how)


def answered_apart(server: ReferenceServer) -> None:
    """Check that no connection was used by two processes."""
    for connection in server.connections:
        names = set()
        for request in connection.requests:
            text = json.loads(request.body)["messages"][0]["content"]
            names.add(text.rpartition(" ")[0])
        assert len({name for name in names if name.startswith("child")}) <= 1, names
        assert not ("parent" in names and any(name.startswith("child") for name in names)), names


def test_parent_and_children_call(reference: ReferenceServer) -> None:
    """Both make calls without sharing a connection or mixing up responses (K01)."""
    code = """
client = polymux.Client(url, key)
for generation in range(2):
    calls(client, "before", 3)
    children = [in_child(lambda: calls(client, f"child {number}", 10)) for number in range(4)]
    calls(client, "parent", 10)
    join(*children)
calls(client, "after", 3)
client.close()
"""
    run(code, reference.url)
    assert len(reference.calls) == 2 * (2 * 3 + 2 * 10 * 5) + 2 * 3
    answered_apart(reference)


def test_parent_and_children_call_from_event_loops(reference: ReferenceServer) -> None:
    """The same with an async client, whose thread does not exist in the child (K01)."""
    code = """
client = polymux.AsyncClient(url, key)
for generation in range(2):
    asyncio.run(async_calls(client, "before", 5))
    children = [in_child(lambda: asyncio.run(async_calls(client, f"child {number}", 10)))
                for number in range(3)]
    asyncio.run(async_calls(client, "parent", 10))
    join(*children)
asyncio.run(async_calls(client, "after", 5))
asyncio.run(client.aclose())
"""
    run(code, reference.url)
    answered_apart(reference)


def test_forks_in_the_middle_of_work(reference: ReferenceServer) -> None:
    """Threads and a loop are busy while children are created, and all make calls at once (K01)."""
    code = """
client, other = polymux.Client(url, key), polymux.AsyncClient(url, key)
stop = threading.Event()
failures = []
def busy(work):
    try:
        while not stop.is_set():
            work()
    except BaseException as error:
        failures.append(error)
works = [lambda: calls(client, "busy", 1), lambda: asyncio.run(async_calls(other, "busy", 4))]
threads = [threading.Thread(target=busy, daemon=True, args=(work,)) for work in works]
for thread in threads:
    thread.start()
def in_the_middle():
    signal.alarm(20)
    calls(client, "child", 1)
    asyncio.run(async_calls(other, "child", 2))
    client.close()
    asyncio.run(other.aclose())
for _ in range(8):
    join(in_child(in_the_middle))
stop.set()
for thread in threads:
    thread.join()
assert not failures, failures
"""
    run(code, reference.url)


def test_a_fork_while_a_thread_makes_the_first_call(reference: ReferenceServer) -> None:
    """The child must not wait for the first call of the parent's thread (K01)."""
    code = """
client = polymux.Client(url, key)
os.environ["POLYMUX_CONFIG"] = fifo = f"/tmp/polymux-{os.getpid()}.fifo"
os.mkfifo(fifo)
first = threading.Thread(target=client.chat, args=("first",))
first.start()
time.sleep(0.5)  # Until it reads its configuration file.
def work():
    signal.alarm(10)
    os.environ["POLYMUX_CONFIG"] = "/dev/null"
    calls(client, "child", 1)
child = in_child(work)
try:
    join(child)
finally:
    with open(fifo, "w"):
        os.unlink(fifo)
first.join()
calls(client, "parent", 1)
"""
    run(code, reference.url)


def test_forks_while_a_thread_imports(reference: ReferenceServer) -> None:
    """A child does not wait for a module that a thread of its parent was importing."""
    code = """
importing, forked = threading.Event(), threading.Event()
def work():
    client = polymux.Client(url, key)
    calls(client, "child", 1)
    client.convert_to_mp3(("a.wav", b"x")).read()
    client.transcribe(("a.wav", b"x"))
    try:
        client.generate_image("a", width=1001)
    except polymux.InvalidRequestError:
        pass
def pause(event, arguments):
    if event == "import" and arguments[0].startswith("polymux.") and (
            threading.current_thread() is thread):
        forked.clear()
        importing.set()
        forked.wait(0.1)
def in_time():
    signal.alarm(20)
    work()
thread = threading.Thread(target=work)
sys.addaudithook(pause)
thread.start()
children = []
while thread.is_alive():
    if importing.wait(0.1):
        importing.clear()
        children.append(in_child(in_time))
        forked.set()
assert children
join(*children)
"""
    run(code, reference.url)


def test_a_stream_over_a_fork(server: MisbehavingServer) -> None:
    """The child closes and drops the stream. The parent's stream continues (K01)."""
    code = """
import gc
client = polymux.Client(url, key)
stream = client.chat("x", stream=True)
assert next(stream).content == "x"
def drop():
    global stream
    try:
        stream.close()
    except polymux.PolymuxError:
        pass
    stream = None
    gc.collect()
    client.close()
join(in_child(drop))
def read():
    signal.alarm(10)
    try:
        list(stream)
    except (polymux.PolymuxError, RuntimeError):
        return
    raise SystemExit("the child read the parent's stream")
join(in_child(read))
say("forked")
assert "".join(stream.texts()) == "x"
"""
    server.script(steps.event_stream(), steps.send(CHUNK), steps.sleep(1), steps.send(END))
    run(code, server.url)


def test_a_call_under_way_in_a_loop_over_a_fork(server: MisbehavingServer) -> None:
    """A child that exits or collects inherited objects must not end the parent's calls (K01)."""
    code = """
import gc
client = polymux.AsyncClient(url, key)
async def main():
    calls = [asyncio.ensure_future(client.free_chat("x")) for _ in range(5)]
    await asyncio.sleep(0.5)
    join(in_child(lambda: None))
    def collect():
        signal.alarm(10)
        global client
        for call in calls:
            call.get_coro().close()
        calls.clear()
        client = None
        gc.collect()
    join(in_child(collect))
    return [answer.text for answer in await asyncio.gather(*calls)]
assert asyncio.run(main()) == ["fine"] * 5
"""
    server.script(steps.sleep(1.2), FINE, times=5)
    run(code, server.url)


def test_programs_that_a_program_starts(reference: ReferenceServer) -> None:
    """Started programs inherit no connection and no epoll descriptor (K01)."""
    code = """
client, other = polymux.Client(url, key), polymux.AsyncClient(url, key)
client.chat("x")
async def main():
    await other.chat("x")
    ours = {line.split()[9] for line in read("/proc/self/net/tcp").splitlines()[1:]}
    program = await asyncio.create_subprocess_exec(
        "ls", "-l", "/proc/self/fd", close_fds=False, stdout=-1)
    listing = (await program.communicate())[0].decode()
    assert not any(f"socket:[{one}]" in listing for one in ours), listing
    assert "eventfd" not in listing and "eventpoll" not in listing, listing
asyncio.run(main())
"""
    run(code, reference.url)


WORKER = """
import polymux
def work(url, key, number):
    with polymux.Client(url, key) as client:
        return client.chat(f"child {number}").text
def use(client):
    return client.chat("x").text
"""


@pytest.mark.parametrize("method", ["spawn", "forkserver"])
def test_multiprocessing_by_other_ways(
    method: str, reference: ReferenceServer, tmp_path: Path
) -> None:
    """Passing a client raises a clear error. A client created in each process works (K02)."""
    (tmp_path / "worker.py").write_text(WORKER)
    code = f"""
sys.path.insert(0, {str(tmp_path)!r})
import multiprocessing, worker
client = polymux.Client(url, key)
client.chat("before")
with multiprocessing.get_context({method!r}).Pool(1) as pool:
    for number in range(3):
        assert pool.apply(worker.work, (url, key, number)) == f"You said: child {{number}}"
    try:
        pool.apply(worker.use, (client,))
    except TypeError as error:
        assert key not in str(error), error
    else:
        raise SystemExit("a client was pickled")
    pool.close()
    pool.join()
"""
    run(code, reference.url)
