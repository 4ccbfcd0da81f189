"""Ctrl-C in everything that waits, and other signals (K04 in docs/development/testing.md)."""

from __future__ import annotations

import os
import signal
import time
from typing import TYPE_CHECKING

import pytest
from servers import steps
from servers.listeners import full_port, silent_port
from support import programs
from support.client_children import finish, start, wait_for
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    import subprocess
    from pathlib import Path

    import polymux
    from servers.misbehaving import MisbehavingServer
    from servers.reference import ReferenceServer

TRIES = 3
LIMIT_S = 0.2

#: Waits in a call, reports the interrupt and checks that no socket is open.
WAITING = """
client = polymux.Client(url, key, retry=0, timeout=60)
say("begins")
try:
    %s
except KeyboardInterrupt:
    say("interrupted")
else:
    say("ended by itself")
"""
CALLS = {
    "call": 'client.free_chat("x")',
    "answer": 'client.chat("answer")',
    "file": 'client.read_text(("a.png", b"x" * (64 << 20)))',
    "generator": 'client.read_text(("a.png", (b"x" * 100_000 for _ in range(10**6))))',
}


def interrupted(
    code: str, url: str, server: MisbehavingServer | None, *, kept: bool = False
) -> None:
    """Check that Ctrl-C interrupts within 200 ms after the server has the request, and that no
    socket remains.

    `kept`: no exchange was in progress, so its connection may stay open until the client is closed.
    """
    delays: list[float] = []
    # Uses the best of three tries, because another program may occupy the core.
    while len(delays) < TRIES and min(delays, default=1) > LIMIT_S * PATIENCE:
        requests = len(server.requests) if server else 0
        child = start(code + kept * "client.close()\n" + "assert sockets() == 0", url)
        wait_for(child, "begins")
        if server is not None:
            server.wait_requests(requests + 1, 10 * PATIENCE)
        time.sleep(0.2 if server else 0.5)  # Until the call waits in the native core.
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        wait_for(child, "interrupted")
        delays.append(time.monotonic() - sent)
        finish(child, 20)
    assert min(delays) <= LIMIT_S * PATIENCE, delays


@pytest.mark.parametrize("call", CALLS)
def test_control_c_in_every_call(call: str, server: MisbehavingServer) -> None:
    """KeyboardInterrupt is raised within 200 ms and the connection closes (K04)."""
    before = {
        "file": [steps.read_nothing()],
        "generator": [steps.read_nothing()],
        "answer": [steps.head(200, [("Content-Length", 9)])],
    }.get(call, [])
    server.script(*before, steps.stall(), times=None)
    interrupted(WAITING % CALLS[call], server.url, server)
    # The server still has unread upload data in front of the end of the connection.
    if call not in ("file", "generator"):
        server.wait_closed(server.requests[-1].connection)


def test_control_c_while_a_stream_is_read(server: MisbehavingServer) -> None:
    """Between two chunks. The text received before remains available (K04)."""
    code = """
client = polymux.Client(url, key, retry=0)
stream = client.chat("x", stream=True)
assert next(stream).content == "Hello"
say("begins")
try:
    next(stream)
except KeyboardInterrupt:
    say("interrupted")
assert stream.text == "Hello"
try:
    next(stream)
except polymux.StreamInterruptedError as error:
    assert error.text == "Hello"
except polymux.OperationCancelledError:
    pass
else:
    raise SystemExit("it went on")
"""
    chunk = b'data: {"choices":[{"index":0,"delta":{"content":"Hello"}}]}\n\n'
    server.script(steps.event_stream(), steps.send(chunk), steps.stall(), times=None)
    interrupted(code, server.url, server)


def test_control_c_while_a_job_is_waited_for(
    reference: ReferenceServer, ours: polymux.Client
) -> None:
    """Between two polls of a job, and in the call that creates it (K04)."""
    reference.predictions.job_s = 60
    job = ours.upscale_image(("a.png", b"x"), wait=False).id
    for call in (f'client.predictions.wait("{job}")', 'client.upscale_image(("a.png", b"x"))'):
        interrupted(WAITING % call, reference.url, None, kept=True)


def test_control_c_while_connecting() -> None:
    """To a port that never answers, and with a TLS handshake that never starts (K04)."""
    with full_port() as full, silent_port() as silent:
        for url in (f"http://127.0.0.1:{full}", f"https://127.0.0.1:{silent}"):
            interrupted(WAITING % CALLS["call"], url, None)


def test_control_c_while_waiting_to_try_again(server: MisbehavingServer) -> None:
    """Case K04."""
    server.script(steps.answer(503, b"{}", [("Retry-After", "30")]), times=None)
    code = WAITING.replace("retry=0", "retry=3") % CALLS["call"]
    interrupted(code, server.url, server, kept=True)


def test_control_c_under_asyncio(server: MisbehavingServer) -> None:
    """asyncio cancels the task. The connection closes and nothing is printed (K04)."""
    code = """
async def main():
    async with polymux.AsyncClient(url, key, retry=0) as client:
        say("begins")
        await client.free_chat("x")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    say("interrupted")
"""
    server.script(steps.stall(), times=None)
    interrupted(code, server.url, server)


#: A network whose only DNS server receives queries and never answers.
SILENT_NAMES = """
set -e
ip link set lo up
printf 'nameserver 127.0.0.53\\noptions timeout:30 attempts:1\\n' > "$1/resolv.conf"
mount --bind "$1/resolv.conf" "$(readlink -f /etc/resolv.conf)"
shift
exec "$@"
"""
NAME_SERVER = """
import socket
names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
names.bind(("127.0.0.53", 53))
"""


def in_a_silent_network(code: str, folder: Path, *arguments: object) -> subprocess.Popen[str]:
    """Run the child in a network with a silent DNS server."""
    rights = () if os.getuid() == 0 else ("--user", "--map-root-user")
    unshare = (programs.find("unshare"), *rights, "--net", "--mount")
    before = (*unshare, "sh", "-c", SILENT_NAMES, "sh", str(folder))
    return start(NAME_SERVER + code, "http://slow.example", *arguments, before=before)


def test_control_c_while_a_name_is_looked_up(tmp_path: Path) -> None:
    """The interrupt and `connect` do not wait for the resolver's thread (K04 and C06)."""
    code = """
client = polymux.Client(url, key, retry=0)
begun = time.monotonic()
try:
    client.free_chat("x", timeout=polymux.Timeout(20, connect=0.5))
except polymux.RequestTimeoutError as error:
    assert error.limit == "connect", error
assert time.monotonic() - begun < 15, "it has waited for the total of 20 s"
client.close()
"""
    delays: list[float] = []
    while len(delays) < TRIES and min(delays, default=1) > LIMIT_S * PATIENCE:
        child = in_a_silent_network(code + WAITING % CALLS["call"] + "os._exit(0)", tmp_path)
        wait_for(child, "begins")
        time.sleep(0.5)
        sent = time.monotonic()
        os.kill(child.pid, signal.SIGINT)
        wait_for(child, "interrupted")
        delays.append(time.monotonic() - sent)
        finish(child, 20)
    assert min(delays) <= LIMIT_S * PATIENCE, delays


@pytest.mark.parametrize("kind", ["given up", "AsyncClient", "fetch"])
def test_exit_while_a_name_is_looked_up(kind: str, tmp_path: Path) -> None:
    """No abandoned call or daemon thread delays the exit; the resolver waits 30 s (K09)."""
    code = """
from polymux.fetch.fetcher import fetch
async def main():
    async with polymux.AsyncClient(url, key, retry=0) as client:
        await client.free_chat("x")
def given_up():
    try:
        polymux.Client(url, key, retry=0).free_chat("x", timeout=0.3)
    except polymux.RequestTimeoutError:
        pass
works = {
    "given up": given_up,
    "AsyncClient": lambda: asyncio.run(main()),
    "fetch": lambda: fetch(url),
}
thread = threading.Thread(target=works[sys.argv[2]], daemon=True)
thread.start()
question, _ = names.recvfrom(1500)
assert b"slow" in question
if sys.argv[2] == "given up":
    thread.join()
say("started")
"""
    child = in_a_silent_network(code, tmp_path, kind)
    wait_for(child, "started")
    begun = time.monotonic()
    finish(child, 60)
    assert time.monotonic() - begun <= 25


def test_other_signals_do_not_end_a_call(server: MisbehavingServer) -> None:
    """A handler runs at once and the call continues. Its exception reaches the caller (K04)."""
    code = """
client = polymux.Client(url, key, retry=0, timeout=60)
def handle(number, frame):
    client_too = polymux.Client(url, key, retry=0, timeout=60)
    assert client_too.free_chat("x").text == "fine"
    say("handled")
def fail(number, frame):
    raise LookupError("from a handler")
signal.signal(signal.SIGUSR1, handle)
signal.signal(signal.SIGUSR2, fail)
assert client.free_chat("x").text == "slow"
say("answered")
try:
    client.free_chat("x")
except LookupError as error:
    say(error)
"""
    server.script(steps.sleep(1.2), steps.answer(200, b'{"response":"slow"}'))
    server.script(steps.answer(200, b'{"response":"fine"}'))
    server.script(steps.stall())
    child = start(code, server.url)
    server.wait_requests(1, 10 * PATIENCE)
    time.sleep(0.1)
    child.send_signal(signal.SIGUSR1)
    wait_for(child, "handled")
    wait_for(child, "answered")
    server.wait_requests(3, 10 * PATIENCE)
    time.sleep(0.1)
    child.send_signal(signal.SIGUSR2)
    wait_for(child, "from a handler")
    finish(child, 20)
