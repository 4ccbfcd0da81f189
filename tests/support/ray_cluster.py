"""A Ray cluster with two nodes in an isolated network; one node claims a GPU.

Ray replaces 127.0.0.1 by the host's address if there is one. It keeps the loopback address only in
a network namespace whose only interface is loopback. Everything that is started from such a
namespace stays in it. As a program, this module makes the cluster and prints its address.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

TESTS = Path(__file__).parents[1]
_NEW_NETWORK = 0x40000000
_SET_FLAGS, _UP = 0x8914, 0x1
_CPUS = 2
_OBJECTS_BYTES = 150_000_000


@contextmanager
def own_network() -> Iterator[None]:
    """Move this thread and its future child processes into a network with only loopback."""
    library = ctypes.CDLL(None, use_errno=True)
    with Path("/proc/thread-self/ns/net").open() as before:
        if library.unshare(_NEW_NETWORK):
            raise OSError(ctypes.get_errno(), "cannot create a network namespace (is this root?)")
        try:
            with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
                fcntl.ioctl(control, _SET_FLAGS, struct.pack("16sh14x", b"lo", _UP))
            yield
        finally:
            assert library.setns(before.fileno(), _NEW_NETWORK) == 0


class RayCluster:
    """Two nodes with two processors each, and a GPU that exists only in Ray's resource count.

    Args:
        temporary: The folder of Ray's files. Its path must be short, because it holds sockets.
    """

    def __init__(self, temporary: Path) -> None:
        self.temporary = temporary
        (temporary / "ray").mkdir()
        self.environment = {name: value for name, value in os.environ.items()
                            if name != "PYTHONWARNINGS"} | {
            "RAY_TMPDIR": str(temporary),
            "RAY_USAGE_STATS_ENABLED": "0",
            "RAY_BACKEND_LOG_LEVEL": "fatal",
            # Otherwise each driver starts an idle worker per processor, which takes seconds.
            "RAY_prestart_worker_first_driver": "0",
            "HOME": str(temporary),
            "TMPDIR": str(temporary),
            "PYTHONPATH": str(TESTS),
        }  # fmt: skip
        self._process = subprocess.Popen(
            [sys.executable, "-m", "support.ray_cluster", str(temporary)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
            env=self.environment, text=True,
        )  # fmt: skip
        assert self._process.stdout is not None
        self.address = self._process.stdout.readline().strip()
        assert self.address, "the cluster does not start"

    def workers(self, title: str) -> list[int]:
        """The process ids of actors whose title contains `words`."""
        found: dict[int, int] = {}
        for one in Path("/proc").glob("[0-9]*/cmdline"):
            try:
                words = one.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if words.startswith("ray::") and title in words:
                    # Another user of this host may have a cluster.
                    mine = f"RAY_TMPDIR={self.temporary}".encode()
                    if mine in (one.parent / "environ").read_bytes():
                        state = (one.parent / "stat").read_text().rpartition(")")[2]
                        found[int(one.parent.name)] = int(state.split()[1])
            except OSError:
                continue
        # A child of an actor keeps the actor's title until it executes another program.
        return [pid for pid, parent in found.items() if parent not in found]

    def resources(self) -> tuple[dict[str, float], dict[str, float]]:
        """Ray's total and available resources."""
        whole, free = self._query("[ray.cluster_resources(), ray.available_resources()]")
        return whole, free

    def scaling(self, application: str) -> dict[str, Any]:
        """The autoscaling configuration of an application in Ray Serve."""
        details = "ray.serve.context._get_global_client().get_serve_details()"
        every = f"{details}['applications'][{application!r}]['deployments'].values()"
        names = "('max_replicas', 'target_ongoing_requests')"
        config = "one['deployment_config']['autoscaling_config']"
        [found] = self._query(f"[{{name: {config}[name] for name in {names}}} for one in {every}]")
        return dict(found)

    def replicas(self, application: str) -> int:
        """The current and the target number of an application's replicas in Ray Serve."""
        states = "one.replica_states.get('RUNNING', 0)"
        every = f"ray.serve.status().applications[{application!r}].deployments.values()"
        return int(self._query(f"sum({states} for one in {every})"))

    def _query(self, words: str) -> Any:
        """Evaluate an expression in the program that made the cluster and is connected to it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(words, file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.stdout.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        # A new worker may not have noticed the end of its node.
        for pid in self.workers(""):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


@contextmanager
def ray_cluster() -> Iterator[RayCluster]:
    """A cluster, with this thread in its network."""
    temporary = Path(tempfile.mkdtemp(prefix="r", dir="/tmp"))
    try:
        with own_network():
            cluster = RayCluster(temporary)
            try:
                yield cluster
            finally:
                cluster.close()
    finally:
        shutil.rmtree(temporary, ignore_errors=True)


def main() -> None:
    """Make the cluster, evaluate expressions, and stop it when standard input ends."""
    import ray.serve
    from ray.cluster_utils import Cluster

    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Ray's own output must not mix with the results.
    machine = {"num_cpus": _CPUS, "object_store_memory": _OBJECTS_BYTES}
    # Without the dashboard, the log monitor and the autoscaler.
    none = {"include_dashboard": False, "include_log_monitor": False, "no_monitor": True}
    head = {**machine, **none, "temp_dir": sys.argv[1]}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    cluster.add_node(**machine, num_gpus=1)
    cluster.wait_for_nodes()
    print(cluster.address, file=answers, flush=True)
    for words in sys.stdin:
        if not ray.is_initialized():
            ray.init(cluster.address, log_to_driver=False)
        print(json.dumps(eval(words, {"ray": ray})), file=answers, flush=True)
    ray.shutdown()
    cluster.shutdown()


if __name__ == "__main__":
    main()
