"""Servers and connections whose sockets a forked child has inherited (K05)."""

from __future__ import annotations

import contextlib
import signal

from servers.misbehaving import MisbehavingServer
from support.client_calls import SILENT_STREAM
from support.client_children import finish, start, wait_for
from support.hostile_check import PATIENCE

#: The child does not use polymux and lives until the test ends it.
PRELUDE = """
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])

client, other = polymux.Client(url, key, retry=0), polymux.AsyncClient(url, key, retry=0)

def begun():
    stream = client.chat("x", stream=True)
    next(stream)
    return stream

def after(work):
    # Forks during the call.
    def call():
        try:
            work()
        except polymux.RequestTimeoutError:
            pass
    thread = threading.Thread(target=call)
    thread.start()
    time.sleep(0.3)
    pid = linger()
    thread.join()
    return pid

def linger():
    pid = os.fork()
    if pid == 0:
        time.sleep(60)
        os._exit(0)
    return pid

def end(pid):
    say("ended")
    signal.sigwait([signal.SIGUSR1])
    # A socket held by the child must not cause a busy loop here.
    before = time.process_time()
    time.sleep(0.5)
    assert time.process_time() - before < 0.2
    os.kill(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
"""
#: Ways to end a call after a child has inherited its socket.
WAYS = {
    "a stream that is closed": """
stream = begun()
pid = linger()
stream.close()
""",
    "a client that is closed": """
stream = begun()
pid = linger()
client.close()
try:
    list(stream)
except polymux.PolymuxError:
    pass
""",
    "a stream of a loop that is closed": """
async def main():
    stream = await other.chat("x", stream=True)
    await anext(aiter(stream))
    pid = linger()
    await stream.aclose()
    return pid
loop = asyncio.new_event_loop()
pid = loop.run_until_complete(main())
""",
    "a task that is cancelled": """
async def main():
    task = asyncio.create_task(other.free_chat("x"))
    await asyncio.sleep(0.3)
    pid = linger()
    task.cancel()
    await asyncio.wait({task})
    return pid
loop = asyncio.new_event_loop()
pid = loop.run_until_complete(main())
""",
    "a deadline": """
pid = after(lambda: client.free_chat("x", timeout=1))
""",
}


def test_the_end_of_a_call_reaches_the_server() -> None:
    """The server sees the end immediately, although the child has the socket open (K05)."""
    with contextlib.ExitStack() as stack:
        servers = {way: stack.enter_context(MisbehavingServer()) for way in WAYS}
        for server in servers.values():
            server.script(*SILENT_STREAM)
        children = {way: start(PRELUDE + WAYS[way] + "end(pid)", servers[way].url) for way in WAYS}
        try:
            for way, child in children.items():
                wait_for(child, "ended")
                asked = servers[way].wait_requests(1, 20 * PATIENCE)[0]
                servers[way].wait_closed(asked.connection, 20 * PATIENCE)
        finally:
            for child in children.values():
                child.send_signal(signal.SIGUSR1)
        for child in children.values():
            finish(child, 30)
