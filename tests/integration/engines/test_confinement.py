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


def landlock_version() -> int:
    found: int = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1)
    return found


def test_doctor_tells_what_is_in_force(tmp_path: Path) -> None:
    """Equals the report of the process that opens untrusted files, except for resource limits."""
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"))
    how = Supervision(threads=1, confinement=media_confinement(settings))

    async def body() -> list[str]:
        media = EngineBackend("media", "media", ["convert_to_mp3"], supervision=how)
        found = (await media._ready()).in_force
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
