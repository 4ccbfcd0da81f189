"""Batches and a server on a cluster of two machines give the usual results, even with kills."""

from __future__ import annotations

import hashlib
import http.client
import json
import os
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import polymux
import pytest
from support.batch_kills import noise
from support.invariants import until as comes_true
from support.polymux_server import CHAT, form
from support.ray_cluster import RayCluster, ray_cluster
from support.serve_command import ServeCommand

if TYPE_CHECKING:
    from collections.abc import Iterator

pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("ray")]
MAX_S = 180
FILES = 4
#: Long enough that workers are still converting when they are killed.
SOUND_S = 40
#: Larger than the blocks in which data is sent between the machines.
LARGE_BYTES = 5 << 20
RAY = """
[ray]
address = "%s"
cpus = 0.5
[ray.engines.chat]
queue = 2
gpus = 0.25
[ray.engines.media]
max_replicas = 2
target_ongoing_requests = 1
"""


@pytest.fixture(scope="module")
def cluster() -> Iterator[RayCluster]:
    with ray_cluster() as made:
        yield made


@pytest.fixture(scope="module")
def inputs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for number in range(FILES):
        (folder / f"{number}.wav").write_bytes(noise(number, SOUND_S))
    # An unknown chunk after the audio, which decoders skip.
    padding = b"JUNK" + LARGE_BYTES.to_bytes(4, "little") + bytes(LARGE_BYTES)
    (folder / "large.wav").write_bytes(noise(99) + padding)
    (folder / "broken.wav").write_bytes(b"this is no sound")
    return folder


def begun(cluster: RayCluster, folder: Path, *words: str | Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "polymux", "batch", *map(str, words)]
    return subprocess.Popen(
        [*command, f"--ray={cluster.address}", "--json", "-q"], cwd=folder,
        env=cluster.environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )  # fmt: skip


def ended(process: subprocess.Popen[bytes], code: int) -> list[dict[str, Any]]:
    out, errors = process.communicate(timeout=MAX_S)
    assert process.returncode == code, errors.decode()
    return [json.loads(line) for line in out.splitlines()]


def digests(folder: Path) -> dict[str, str]:
    return {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in folder.glob("*.mp3")}


def test_batch_is_the_batch_of_one_machine_though_workers_are_killed(
    cluster: RayCluster, inputs: Path, tmp_path: Path
) -> None:
    local = polymux.batch("convert_to_mp3", inputs, output_dir=tmp_path / "local", bitrate="64k")
    assert (local.done, local.failed) == (FILES + 1, 1)
    words = ("convert-to-mp3", inputs, "--output-dir", "out", "--bitrate", "64k", "--workers", "2")
    process = begun(cluster, tmp_path, *words)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    workers = cluster.workers("BatchWorker")
    assert workers
    for pid in workers:
        os.kill(pid, signal.SIGKILL)
    *items, summary = [first, *ended(process, 1)]
    assert (summary["done"], summary["failed"]) == (FILES + 1, 1)
    assert digests(tmp_path / "out") == digests(tmp_path / "local")
    [failed] = [one for one in items if one["status"] == "failed"]
    [alike] = local.items("failed")
    # The error message names the file on the client, not the copy on the worker.
    assert (failed["error_code"], failed["error_message"]) == (
        alike.error_code, alike.error_message,
    )  # fmt: skip


@pytest.mark.long
def test_killed_driver_goes_on(cluster: RayCluster, inputs: Path, tmp_path: Path) -> None:
    words = ("convert-to-mp3", inputs, "--output-dir", "out")
    process = begun(cluster, tmp_path, *words)
    assert process.stdout is not None
    first = json.loads(process.stdout.readline())
    process.kill()
    process.communicate(timeout=MAX_S)
    before = digests(tmp_path / "out")
    *items, summary = ended(begun(cluster, tmp_path, *words, "--resume"), 1)
    assert (summary["done"], summary["failed"]) == (FILES + 1, 1)
    assert first["id"] not in [one["id"] for one in items]
    after = digests(tmp_path / "out")
    assert before.items() <= after.items()
    # Resuming converts nothing twice and restores the deleted output.
    (tmp_path / "out" / "3.mp3").unlink()
    *items, summary = ended(begun(cluster, tmp_path, *words, "--resume"), 1)
    assert (summary["kept"], summary["remade"]) == (FILES, 1)
    assert [Path(one["input"]).name for one in items] == ["3.wav"]
    assert digests(tmp_path / "out") == after
    # After the batch is killed, none of its workers continues.
    assert comes_true(lambda: not cluster.workers("BatchWorker"), 60)


class Served(ServeCommand):
    """A polymux server on the cluster."""

    def __init__(self, cluster: RayCluster, folder: Path) -> None:
        super().__init__(folder, RAY % cluster.address)
        self.cluster = cluster

    @property
    def environment(self) -> dict[str, str]:
        names = ("RAY_TMPDIR", "RAY_USAGE_STATS_ENABLED", "RAY_BACKEND_LOG_LEVEL")
        return super().environment | {name: self.cluster.environment[name] for name in names}

    def opened(self, prompt: str) -> tuple[http.client.HTTPConnection, http.client.HTTPResponse]:
        """Start a streamed chat and read its first chunk."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=MAX_S)
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        connection.request("POST", CHAT, asking(prompt, stream=True), headers)
        answer = connection.getresponse()
        assert answer.status == 200
        line = answer.readline()
        while not line.startswith(b"data: "):  # Skips comments and warnings.
            assert line
            line = answer.readline()
        return connection, answer

    def engine(self) -> int:
        """The process ID of the chat engine. May wait until a replica starts."""
        headers = [("Content-Type", "application/json")]
        answer = self.request("POST", CHAT, asking("echo x"), headers, timeout_s=MAX_S)
        pid: int = answer.json()["pid"]
        return pid


def asking(prompt: str, **more: Any) -> bytes:
    value = {"model": "default", "messages": [{"role": "user", "content": prompt}], **more}
    return json.dumps(value).encode()


@pytest.fixture(scope="module")
def served(cluster: RayCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with Served(cluster, tmp_path_factory.mktemp("served")).start() as made:
        yield made
        assert made.stop() == 0, made.log_text


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


def test_conversion_by_handle(served: Served, inputs: Path) -> None:
    for data in (noise(98), (inputs / "large.wav").read_bytes()):
        body, own = form(("file", ("a.wav", data)), ("bitrate", "64000"))
        answer = served.request("POST", "/api/v1/convert2mp3", body, own, timeout_s=MAX_S)
        assert answer.status == 200, answer.body
        link = urlsplit(answer.json()["response"])
        made = served.request("GET", f"{link.path}?{link.query}")
        assert made.body == polymux.convert_to_mp3(data, bitrate="64k").read()
    refused = served.convert(b"this is no sound")
    assert refused.status == 415
    assert refused.json()["code"] == "unsupported_media"


def test_replicas_are_as_the_settings_say(served: Served, cluster: RayCluster) -> None:
    engine = served.engine()
    # The first check proves that `workers` finds actors, so the second one is meaningful.
    assert cluster.workers("ServeController")
    assert not cluster.workers("ProxyActor")
    scaling = cluster.scaling("polymux-media")
    assert (scaling["max_replicas"], scaling["target_ongoing_requests"]) == (2, 1)
    whole, free = cluster.resources()
    replicas = len(cluster.workers("ServeReplica:polymux-chat"))
    assert (whole["GPU"], replicas) == (1, 1)
    assert free["GPU"] == 0.75
    # Ray assigns the GPU to the replica, which passes it on to its engine.
    variables = Path(f"/proc/{engine}/environ").read_bytes().split(b"\0")
    assert b"CUDA_VISIBLE_DEVICES=0" in variables


@pytest.mark.long
def test_more_to_do_starts_another_replica(served: Served, cluster: RayCluster) -> None:
    """Four concurrent conversions with a target of one per replica. The maximum is two replicas."""
    title = "ServeReplica:polymux-media"
    assert comes_true(lambda: len(cluster.workers(title)) == 1, 60)
    body, own = form(("file", ("long.wav", noise(97, 140))))
    enough = threading.Event()

    def keep_busy() -> set[int]:
        found = set()
        while not enough.is_set():
            answer = served.request("POST", "/api/v1/convert2mp3", body, own, timeout_s=MAX_S)
            found.add(answer.status)
        return found

    with ThreadPoolExecutor(4) as pool:
        busy = [pool.submit(keep_busy) for _ in range(4)]
        try:
            # Ray waits for half a minute before it scales up.
            grown = comes_true(lambda: len(cluster.workers(title)) == 2, MAX_S)
            asked = comes_true(lambda: cluster.replicas("polymux-media") == 2, MAX_S)
        finally:
            enough.set()
        assert [one.result() for one in busy] == [{200}] * 4
    assert (grown, asked) == (True, True)


def test_stream_comes_in_pieces_and_ends(served: Served) -> None:
    connection, answer = served.opened("stream 5")
    with closing(connection):
        rest = answer.read().decode()
    assert rest.count("data: ") == 5  # The first chunk was read before. The last one is "[DONE]".
    assert rest.rstrip().endswith("data: [DONE]")


def test_caller_who_leaves_ends_the_work_in_the_engine(served: Served) -> None:
    before = served.engine()
    # The engine ignores cancellation, so only the end of its process stops the work.
    connection, answer = served.opened("deaf 600")
    answer.close()
    connection.close()
    assert comes_true(lambda: not is_alive(before), 60)


def test_killed_replica_ends_its_stream(served: Served, cluster: RayCluster) -> None:
    engine = served.engine()
    connection, answer = served.opened("endless")
    [replica] = cluster.workers("ServeReplica:polymux-chat")
    os.kill(replica, signal.SIGKILL)
    with closing(connection):
        text = answer.read().decode()
    assert "engine_failed" in text.splitlines()[-2], text[-500:]
    assert "[DONE]" not in text
    # The engine ends together with its replica.
    assert comes_true(lambda: not is_alive(engine), 60)
