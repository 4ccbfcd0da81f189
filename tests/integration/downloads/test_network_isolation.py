"""The downloader's proxy cannot be bypassed, because of a network namespace or Landlock port rules.

`polymux doctor` shows which one a machine supports. The tests cover both if the kernel supports
them.
"""

from __future__ import annotations

import asyncio
import json
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from polymux.downloads import health
from polymux.downloads.proxy import GuardedProxy
from polymux.engines.process import egress, sandbox
from polymux.fetch.fetcher import FetchPolicy
from support.fetches import answering
from support.http_server import Server

if TYPE_CHECKING:
    from pathlib import Path

#: Runs in a process confined like the downloader. `argv`: whether it may leave the network, the
#: proxy, and another service's loopback port.
_CONFINED = """
import json, socket, sys
from polymux.engines.process import child, egress
from polymux.downloads.downloader import _READABLE
may_leave, wanted, port = sys.argv[1] == "leaves", json.loads(sys.argv[2]), int(sys.argv[3])
if not may_leave:
    egress.leave_network = lambda: False
header = {"options": {}, "confinement": {
    "readable": [*_READABLE, "/"], "writable": [], "network": True, "outlet": wanted, "limits": {},
    "families": [socket.AF_INET],
}}
in_force = child._confine(header)
def reached(port):
    try:
        with socket.create_connection(("127.0.0.1", port), 5):
            return "reached"
    except OSError as error:
        return type(error).__name__
proxy = header["options"]["proxy"]
print(json.dumps({"in_force": in_force, "proxy": proxy, "decoy": reached(port),
                  "way_out": reached(int(proxy.rpartition(":")[2].rstrip("/")))}))
"""


def confined(folder: Path, *, leaves: bool) -> tuple[dict[str, Any], int]:
    async def run(decoy: Server) -> bytes:
        async with GuardedProxy(FetchPolicy(), 1 << 20) as proxy:
            await proxy.start(folder / "out")
            wanted = {"socket": str(folder / "out"), "url": proxy.url, "port": proxy.port}
            words = ["leaves" if leaves else "stays", json.dumps(wanted), str(decoy.port)]
            command = [sys.executable, "-c", _CONFINED, *words]
            done = await asyncio.to_thread(
                subprocess.run, command, stdout=subprocess.PIPE, check=True, timeout=60
            )
            return done.stdout

    with Server(answering(200, b"secret")) as decoy:
        found = json.loads(asyncio.run(run(decoy)))
        return found, decoy.connections


def test_a_network_of_its_own(tmp_path: Path) -> None:
    found, came = confined(tmp_path, leaves=True)
    if egress.tried() == egress.ONE_WAY_OUT:
        assert egress.ONE_WAY_OUT in found["in_force"]
        assert found["decoy"] == "ConnectionRefusedError"
        assert came == 0
    else:
        assert egress.ONE_WAY_OUT not in found["in_force"]
    assert found["way_out"] == "reached"


def test_landlock_bounds_the_ports(tmp_path: Path) -> None:
    """If the kernel forbids leaving the network, Landlock allows only the proxy's port."""
    found, came = confined(tmp_path, leaves=False)
    assert egress.ONE_WAY_OUT not in found["in_force"]
    # Other processes can reach the proxy, so it requires a password.
    assert "@127.0.0.1:" in found["proxy"]
    assert found["way_out"] == "reached"
    if landlock_version() >= 4:
        assert sandbox.ONLY_PORTS in found["in_force"]
        assert (found["decoy"], came) == ("PermissionError", 0)
    else:  # The report must not claim a restriction that is not enforced.
        assert sandbox.ONLY_PORTS not in found["in_force"]
        assert (found["decoy"], came) == ("reached", 1)


def landlock_version() -> int:
    """The kernel's Landlock ABI version, or 0. A separate process asks and confines nothing."""
    code = "import ctypes; print(ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    return max(0, int(done.stdout))


@pytest.mark.parametrize("version", [0, 3, 4, 6])
def test_what_is_asked_of_each_version(monkeypatch: pytest.MonkeyPatch, version: int) -> None:
    calls: list[tuple[int, tuple[Any, ...]]] = []

    def syscall(number: int, *arguments: Any) -> int:
        calls.append((number, arguments))
        if number != 444:
            return 0
        # One call asks for the version, the other creates a rule set, whose descriptor is closed
        # later.
        return version if arguments[2] == 1 else socket.socket().detach()

    class Nothing:
        def prctl(self, *_: int) -> int:
            return 0

        def capset(self, *_: bytes) -> int:
            return -1

    monkeypatch.setattr(sandbox, "_syscall", syscall)
    monkeypatch.setattr(sandbox, "_libc", Nothing)
    monkeypatch.setattr("polymux.engines.process.syscall_filter.install", lambda _: False)
    in_force = sandbox.confine(sandbox.Confinement(readable=("/usr",), ports=(8080,)))
    made = [arguments for number, arguments in calls if number == 444 and arguments[2] != 1]
    of_ports = [arguments for number, arguments in calls if number == 445 and arguments[1] == 2]
    if version == 0:
        assert (len(in_force), made) == (1, [])
        return
    assert f"landlock {version}" in in_force
    assert (sandbox.ONLY_PORTS in in_force) == (version >= 4)
    assert made[0][1] == (8 if version < 4 else 16 if version < 6 else 24)
    network = int.from_bytes(made[0][0][8:16], "little")
    assert network == (0b11 if version >= 4 else 0)  # bind and connect.
    rules = [(one[2][:8], int.from_bytes(one[2][8:16], "little")) for one in of_ports]
    connect = (0b10).to_bytes(8, "little")
    assert rules == ([(connect, 8080)] if version >= 4 else [])


@pytest.mark.parametrize(
    ("in_force", "way_out", "says"),
    [
        (egress.ONE_WAY_OUT, "network namespace", "ok "),
        (sandbox.ONLY_PORTS, "ports", "partly "),
        ("", "open", "absent "),
    ],
)
def test_what_doctor_says(
    monkeypatch: pytest.MonkeyPatch, in_force: str, way_out: str, says: str
) -> None:
    monkeypatch.setattr(egress, "tried", lambda: in_force)
    found = health.downloads()
    assert found["way_out"] == way_out
    assert health.lines(found)[-1].startswith(says)


#: The result of `outlet` if processes cannot leave the network.
_STAYING = """
import runpy
from polymux.engines.process import sandbox
sandbox.leave_network = lambda: False
runpy.run_module("polymux.engines.process.egress", run_name="__main__")
"""


def test_what_is_found_where_no_process_may_leave() -> None:
    command = [sys.executable, "-c", _STAYING]
    done = subprocess.run(command, capture_output=True, check=True, timeout=60)
    wanted = sandbox.ONLY_PORTS if landlock_version() >= 4 else ""
    assert done.stdout.decode() == wanted
