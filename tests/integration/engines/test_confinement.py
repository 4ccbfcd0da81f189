"""The environment and the sandbox of an engine's process."""

from __future__ import annotations

import asyncio
import ctypes
import json
import os
import socket
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process import sandbox
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.runtime.build import media_confinement, model_confinement
from polymux.runtime.settings import StoreSettings
from polymux.server.settings.settings import ServerSettings
from support.programs import find
from support.supervised_engine import QUICK, TESTS, asked, served

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.service import Service

#: Run by a shell in its own user namespace: the following programs cannot create network
#: namespaces.
NO_NETWORKS = (
    "echo 0 > /proc/sys/user/max_net_namespaces && echo 0 > /proc/sys/user/max_user_namespaces "
    '&& exec "$@"'
)


def test_what_a_process_inherits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No keys, proxies or file descriptors, offline mode, and one thread for its libraries."""
    monkeypatch.setenv("POLYMUX_API_KEY", "secret-canary")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    read, write = os.pipe()
    os.set_inheritable(write, True)

    @served()
    async def test(service: Service) -> None:
        found = (await service.call(asked("facts"))).output
        environment = found["environment"]
        assert "secret-canary" not in str(environment)
        assert "https_proxy" not in environment
        assert environment["OMP_NUM_THREADS"] == environment["OMP_THREAD_LIMIT"] == "1"
        assert environment["HF_HUB_OFFLINE"] == "1"
        # Standard streams 0 to 2 and the connection.
        assert len(found["descriptors"]) == 4

    try:
        test(tmp_path)
    finally:
        os.close(read)
        os.close(write)


def tried(
    tmp_path: Path, paths: str, confinement: dict[str, Any] | None = None
) -> tuple[dict[str, bool], list[str]]:
    """The actions that remain possible in a process, and the restrictions that it reports."""
    found: list[Any] = []
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        @served(QUICK._replace(confinement=confinement), port=port)
        async def test(service: Service, backend: EngineBackend) -> None:
            found.append((await service.call(asked(f"try {paths}"))).output)
            assert backend.process is not None
            found.append(backend.process.in_force)

        test(tmp_path)
    return found[0], found[1]


def test_a_confined_process(tmp_path: Path) -> None:
    """Landlock and a network namespace, if supported. The process reports which are in force."""
    allowed, secret = tmp_path / "allowed", tmp_path / "secret"
    for folder in (allowed, secret):
        folder.mkdir()
        (folder / "file").write_bytes(b"x")
    system = ["/usr", "/lib", "/lib64", "/etc/ld.so.cache", "/dev/null", "/dev/urandom", "/proc"]
    wanted = {
        "readable": [sys.prefix, sys.base_prefix, *system, str(TESTS), str(TESTS.parent)],
        "writable": [str(allowed)],
        "network": False,
        "limits": {"CORE": 0, "FSIZE": 1 << 20},
    }
    paths = f"{allowed / 'file'},{secret / 'file'}"
    done, in_force = tried(tmp_path, paths, wanted)
    free, _ = tried(tmp_path, paths)
    assert all(free.values())
    assert any("privileges" in one for one in in_force)
    assert done[f"read {allowed / 'file'}"]
    assert done[f"write {allowed / 'file'}"]
    if any("landlock" in one for one in in_force):
        assert not done[f"read {secret / 'file'}"]
        assert not done[f"write {secret / 'file'}"]
    if sandbox.NO_NETWORK in in_force:
        assert not done["connect"]
    # Every supported kernel enforces at least one, so the test cannot pass without any effect.
    assert any("landlock" in one or one == sandbox.NO_NETWORK for one in in_force), in_force


def test_a_process_with_a_model_has_no_network_and_all_files(tmp_path: Path) -> None:
    settings = ServerSettings(store=StoreSettings(tmp_path / "store"))
    (tmp_path / "model").write_bytes(b"x")
    path = str(tmp_path / "model")
    done, in_force = tried(tmp_path, path, model_confinement(settings))
    assert {"CORE", sandbox.NO_NETWORK} <= {*in_force, *" ".join(in_force).split()}
    assert not done["connect"]
    assert done[f"read {path}"]


#: The restrictions of a model process if the kernel does not allow leaving the network.
STAYING = """
import json, os, socket, sys
from pathlib import Path
from polymux.engines.process import sandbox
from polymux.runtime.build import media_confinement, model_confinement
from polymux.server.settings.settings import ServerSettings
from polymux.runtime.settings import StoreSettings
kind, folder, port = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3])
settings = ServerSettings(store=StoreSettings(folder))
wanted = {"media": media_confinement, "model": model_confinement}[kind](settings)
in_force = sandbox.confine(sandbox.Confinement(**wanted))
done = {}
def tried(name, what):
    try:
        what()
        done[name] = True
    except OSError:
        done[name] = False
tried("connect", lambda: socket.create_connection(("127.0.0.1", port), 5).close())
tried("listen", lambda: socket.create_server(("127.0.0.1", 0)).close())
tried("move", lambda: os.rename(folder / "file", folder / "other" / "file"))
print(json.dumps({"in_force": in_force, "done": done}))
"""


def without_namespaces(*command: str) -> bytes:
    """The output of a program that cannot create namespaces, as in a container."""
    limited = [find("unshare"), "--user", "--map-root-user", "sh", "-c", NO_NETWORKS, "sh"]
    done = subprocess.run([*limited, *command], capture_output=True, check=True, timeout=60)
    return done.stdout


@pytest.mark.parametrize("kind", ["model", "media"])
def test_who_cannot_leave_the_network_has_no_tcp_there(tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "file").touch()
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        words = [sys.executable, "-c", STAYING, kind, str(tmp_path), str(port)]
        found = json.loads(without_namespaces(*words))
    assert sandbox.NO_NETWORK not in found["in_force"]
    if landlock_version() >= 4:
        assert sandbox.NO_TCP in found["in_force"]
        assert not found["done"]["connect"]
        assert not found["done"]["listen"]
    else:
        assert sandbox.NO_TCP not in found["in_force"]
    # Model processes may not change files.
    assert found["done"]["move"] == (kind == "model")


#: What a process with the confinement of one kind can do, beside files and TCP.
TRYING = """
import ctypes, json, os, socket, subprocess, sys, threading
from pathlib import Path
from polymux.engines.process import sandbox
folder, wanted = Path(sys.argv[1]), json.loads(sys.argv[2])
libc = ctypes.CDLL(None, use_errno=True)
if wanted is not None:
    in_force = sandbox.confine(sandbox.Confinement(**wanted))
done = {}
def tried(name, what):
    try:
        what()
        done[name] = True
    except OSError:
        done[name] = False
def call(number, *arguments):
    if libc.syscall(ctypes.c_long(number), *map(ctypes.c_long, arguments)) < 0:
        raise OSError(ctypes.get_errno(), "")
def connected(family, address):
    with socket.socket(family) as one:
        one.connect(address)
def reconnected():
    for one in socket.socketpair(type=socket.SOCK_DGRAM):
        one.close()
path = str(folder / "socket")
tried("local socket", lambda: connected(socket.AF_UNIX, path))
tried("any local socket", lambda: socket.socket(socket.AF_UNIX).close())
tried("internet socket", lambda: socket.socket(socket.AF_INET).close())
tried("netlink", lambda: socket.socket(socket.AF_NETLINK, socket.SOCK_RAW).close())
tried("datagram pair", reconnected)
tried("pair", lambda: [one.close() for one in socket.socketpair()])
tried("chmod", lambda: os.chmod(folder / "file", 0o777))
tried("fchmod", lambda: os.chmod(os.open(folder / "file", os.O_RDONLY), 0o600))
tried("memory file", lambda: os.close(os.memfd_create("a")))
tried("io_uring", lambda: call(425, 1, 0))  # EFAULT without a filter
fault = ctypes.get_errno() == 14
done["io_uring"] = fault
tried("namespace", lambda: call({"x86_64": 272}.get(os.uname().machine, 97), 0x08000000))
tried("thread", lambda: threading.Thread(target=print, args=("",), kwargs={"end": ""}).start())
tried("program", lambda: subprocess.run(["/usr/bin/true"], check=True))
status = Path("/proc/self/status").read_text()
done["capabilities"] = int(status.split("CapEff:")[1].split()[0], 16)
print(json.dumps(done))
"""


@pytest.mark.parametrize("kind", ["none", "media", "model", "downloads"])
def test_what_a_filter_of_system_calls_denies(tmp_path: Path, kind: str) -> None:
    (tmp_path / "file").touch()
    settings = ServerSettings(store=StoreSettings(tmp_path / "store"))
    media = media_confinement(settings)
    wanted = {
        "none": None,
        "media": media | {"readable": [*media["readable"], str(tmp_path)]},
        "model": model_confinement(settings),
        "downloads": {"families": [socket.AF_INET, socket.AF_INET6], "readable": ["/"]},
    }[kind]
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(str(tmp_path / "socket"))
        server.listen()
        words = [sys.executable, "-c", TRYING, str(tmp_path), json.dumps(wanted)]
        found = json.loads(subprocess.run(words, capture_output=True, check=True).stdout)
    capabilities = found.pop("capabilities")
    always = {"pair", "thread", "program"}
    of_kind = {
        "none": found.keys() - {"namespace"},
        "media": set(),
        "model": {"local socket", "any local socket"},
        "downloads": {"internet socket"},
    }[kind]
    assert {name for name, is_done in found.items() if is_done} - {"namespace"} == always | of_kind
    if kind != "none":
        assert not found["namespace"]
        # A model may belong to any user, so root may still read it.
        assert capabilities == (0b110 if kind == "model" and os.geteuid() == 0 else 0)


def test_a_server_hides_its_environment(tmp_path: Path) -> None:
    """From processes of the same account that have no capabilities."""
    script = (
        "import os, subprocess, sys; from polymux.engines.process import sandbox; "
        "sandbox.protect_server(); read = 'from polymux.engines.process import sandbox; "
        'sandbox.confine(sandbox.Confinement(readable=("/",))); '
        'open("/proc/%d/environ").read()\' % os.getpid(); '
        "sys.exit(subprocess.run([sys.executable, '-c', read], stderr=-3).returncode)"
    )
    assert subprocess.run([sys.executable, "-c", script], cwd=tmp_path, check=False).returncode == 1


def test_media_cannot_read_the_current_folder(tmp_path: Path) -> None:
    """`python -m` adds it to the paths of imports."""
    script = (
        "import json; from pathlib import Path; from polymux.runtime.build import "
        "media_confinement as of; from polymux.runtime.settings import StoreSettings as Store; "
        "from polymux.server.settings.settings import ServerSettings as All; "
        "print(json.dumps(of(All(store=Store(Path('/s'))))))"
    )
    (tmp_path / "told.py").write_text(script)
    words = [sys.executable, "-m", "told"]
    found = json.loads(subprocess.check_output(words, cwd=tmp_path))
    assert str(tmp_path) not in found["readable"]
    assert sys.prefix in found["readable"]


def landlock_version() -> int:
    found: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return found


def test_doctor_tells_what_is_in_force(tmp_path: Path) -> None:
    """Equals the report of the process that opens untrusted files, except for resource limits."""
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"))
    how = Supervision(threads=1, confinement=media_confinement(settings))

    async def body() -> list[str]:
        media = EngineBackend("media", "media", ["convert_to_mp3"], supervision=how)
        found = (await media._ready("local")).in_force
        await media.close()
        return found

    completed = subprocess.run(
        [sys.executable, "-m", "polymux", "doctor", "--json"], capture_output=True, check=True
    )
    reported = json.loads(completed.stdout)["confinement"]
    assert any("privileges" in one for one in reported)
    of_both = [[one for one in found if "limit" not in one]
               for found in (asyncio.run(body()), reported)]  # fmt: skip
    assert of_both[0] == of_both[1]
