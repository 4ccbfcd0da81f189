"""What servers see of connections whose sockets a child of a fork holds as well (K01, K05)."""

from __future__ import annotations

import signal
from typing import TYPE_CHECKING

import pytest
from servers import steps
from support.client_children import finish, run, start, wait_for
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer

#: A child that uses nothing of polymux and lives until the test has seen what it wanted to see.
PRELUDE = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

def linger():
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    return pid

def end(pid):
    say("ended")
    signal.sigwait([signal.SIGUSR1])
    # What the child holds keeps nobody busy here.
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.2
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""
WAYS = {
    "a stream that is closed": """
client = polymux.Client(url, key, retry=0)
stream = client.chat("x", stream=True)
next(stream)
pid = linger()
stream.close()
end(pid)
""",
    "a stream of a loop that is closed": """
async def main():
    client = polymux.AsyncClient(url, key, retry=0)
    stream = await client.chat("x", stream=True)
    await anext(aiter(stream))
    pid = linger()
    await stream.aclose()
    end(pid)
asyncio.run(main())
""",
    "a task that is cancelled": """
async def main():
    client = polymux.AsyncClient(url, key, retry=0)
    task = asyncio.create_task(client.free_chat("x"))
    await asyncio.sleep(0.3)
    pid = linger()
    task.cancel()
    await asyncio.wait({task})
    end(pid)
asyncio.run(main())
""",
    "a deadline": """
client = polymux.Client(url, key, retry=0)
def call():
    try:
        client.free_chat("x", timeout=1)
    except polymux.RequestTimeoutError:
        pass
thread = threading.Thread(target=call)
thread.start()
time.sleep(0.3)
pid = linger()
thread.join()
end(pid)
""",
    "a client that is closed": """
client = polymux.Client(url, key, retry=0)
stream = client.chat("x", stream=True)
next(stream)
pid = linger()
client.close()
try:
    list(stream)
except polymux.PolymuxError:
    pass
end(pid)
""",
    "a fetch": """
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, fetch
def call():
    try:
        fetch(url, policy=FetchPolicy(allowed_hosts=(url[7:],)), limits=FetchLimits(total_ms=1000))
    except polymux.RequestTimeoutError:
        pass
thread = threading.Thread(target=call)
thread.start()
time.sleep(0.3)
pid = linger()
thread.join()
end(pid)
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_the_end_of_a_call_reaches_the_server(way: str, server: MisbehavingServer) -> None:
    """K05: at once, though a child has the socket."""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"a"}}]}\n\n'
    server.script(steps.event_stream(), steps.send(chunk), steps.stall())
    child = start(PRELUDE + WAYS[way], server.url)
    try:
        wait_for(child, "ended")
        server.wait_closed(server.requests[0].connection, 2 * PATIENCE)
    finally:
        child.send_signal(signal.SIGUSR1)
        finish(child, 30)


def test_an_engine_that_another_thread_has_at_the_fork(server: MisbehavingServer) -> None:
    """K01: its connections are closed in the child as well, once that uses a client."""
    code = """
def connections():
    ours = {line.split()[9] for line in read("/proc/self/net/tcp").splitlines()[1:]}
    found = 0
    for one in os.listdir("/proc/self/fd"):
        try:
            link = os.readlink(f"/proc/self/fd/{one}")
        except OSError:
            continue
        found += link.removeprefix("socket:[").rstrip("]") in ours
    return found
client, other = polymux.Client(url, key, retry=0), polymux.Client(url, key, retry=0)
threads = [threading.Thread(target=lambda: other.free_chat("x")) for _ in range(3)]
for thread in threads:
    thread.start()
while connections() < 3:
    time.sleep(0.01)
pid = os.fork()
if pid == 0:
    client.free_chat("x")
    os._exit(0 if connections() == 1 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
assert connections() == 3
for thread in threads:
    thread.join()
"""
    good = steps.answer(200, b'{"response":"fine"}')
    server.script(steps.sleep(3), good, times=3)
    server.script(good)
    run(code, server.url, timeout_s=30)
