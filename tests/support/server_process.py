"""A polymux server in a separate process, with the real media engine and fast scripted engines.

The program ``python -m support.server_process SETTINGS_AS_JSON`` is this process.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.server.auth.api_keys import KeyFile

from support.hostile_check import SANITIZED
from support.invariants import MORE_BYTES, SETTLED_S, check_log, check_store
from support.polymux_server import Asked
from support.supervised_engine import TESTS, backend_context

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self


class ServerProcess(Asked):
    """Runs a server. The end of the context stops it and checks its exit and its log.

    Args:
        folder: The folder of its store and log.
        limits: `polymux.runtime.settings.Limits`, instead of the defaults.
        max_concurrency: Simultaneous chats.
        write_s: How long a client may stop reading, in seconds, instead of the default.
        log: The log level.
        descriptors: The limit of open descriptors, instead of this process's.
        more_bytes: How much the peak memory may exceed the memory at the start.
        settings: Other fields of `polymux.server.settings.settings.ServerSettings`.
    """

    answer_within_s = 60.0

    def __init__(
        self,
        folder: Path,
        *,
        limits: dict[str, Any] | None = None,
        max_concurrency: int = 4,
        write_s: float | None = None,
        log: str = "info",
        descriptors: int | None = None,
        more_bytes: int = MORE_BYTES,
        **settings: Any,
    ) -> None:
        self.more_bytes = more_bytes
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.key, _ = KeyFile(folder / "store" / "keys.json").add("test")
        self.log_path = folder / "log"
        wanted = {
            "folder": os.fspath(folder / "store"),
            "limits": limits or {},
            "max_concurrency": max_concurrency,
            "write_s": write_s,
            "log": log,
            "descriptors": descriptors,
            "settings": settings,
        }
        self._command = [sys.executable, "-m", "support.server_process", json.dumps(wanted)]

    def __enter__(self) -> Self:
        address_path = self.folder / "address"
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*self._command, os.fspath(address_path)],
                stdout=log,
                stderr=log,
                env={**os.environ, "PYTHONPATH": os.fspath(TESTS)},
            )
        until(lambda: address_path.exists() or self.process.poll() is not None, 180)
        assert self.process.poll() is None, self.log()
        self.url = address_path.read_text()
        self._began_bytes = self.memory_bytes("VmHWM", children=False)
        return self

    @property
    def secrets(self) -> tuple[str, ...]:
        return self.key, os.fspath(self.folder / "store")

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if kind is None and self.process.poll() is None:
                self._check_alive()
        finally:
            self._end()
        if kind is None:
            check_log(self.log(), (self.key,))
            check_store(self.folder / "store")

    def _check_alive(self) -> None:
        """Check I3, I4 and I6: the same process serves a request within its memory limit."""
        assert until(self.is_alive, SETTLED_S)
        more = self.memory_bytes("VmHWM", children=False) - self._began_bytes
        assert more <= self.more_bytes, f"{more >> 20} MiB more than at the start"

    def _end(self) -> None:
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(30)
        finally:
            self.process.kill()
            self.process.wait()
        assert status == 0, self.log()

    def log(self) -> str:
        return self.log_path.read_text("utf-8", "surrogateescape")

    def tree(self) -> list[int]:
        found = [self.process.pid]
        for pid in found:
            for task in Path(f"/proc/{pid}/task").glob("*/children"):
                found += [int(one) for one in task.read_text().split()]
        return found

    def memory_bytes(self, kind: str = "VmRSS", *, children: bool = True) -> int:
        """The memory of all its processes: resident (``VmRSS``) or peak (``VmHWM``)."""
        if SANITIZED:
            return 0  # Memory of an instrumented build is not comparable.
        total = 0
        for pid in self.tree() if children else [self.process.pid]:
            for line in Path(f"/proc/{pid}/status").read_text().splitlines():
                if line.startswith(f"{kind}:"):
                    total += int(line.split()[1]) << 10
        return total

    def descriptors(self) -> int:
        return len(list(Path(f"/proc/{self.process.pid}/fd").iterdir()))

    def cpu_s(self) -> float:
        if SANITIZED:
            return 0.0
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def is_alive(self) -> bool:
        """Whether it runs and serves a request."""
        return self.process.poll() is None and self.ask("GET", "/healthz", key=None).status == 200


def until(condition: Callable[[], object], max_s: float = 60) -> float:
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < max_s
        time.sleep(0.01)
    return time.monotonic() - began


def _serve(wanted: dict[str, Any], address_path: Path) -> int:
    import resource

    from polymux.engines.media.backend import ocr_backend, speech_backend, upscale_backend
    from polymux.engines.process.supervisor import EngineBackend, Supervision
    from polymux.runtime.build import backends_of
    from polymux.runtime.settings import EngineSettings, Limits, StoreSettings
    from polymux.server import run
    from polymux.server.http import front
    from polymux.server.settings.settings import ServerSettings

    from support.quick_engines import FAMILY, OPERATIONS

    if wanted["descriptors"] is not None:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted["descriptors"],) * 2)
    if wanted["write_s"] is not None:
        front.WRITE_S = wanted["write_s"]
    settings = replace(
        ServerSettings(),
        port=0,
        store=StoreSettings(Path(wanted["folder"])),
        limits=Limits(**wanted["limits"]),
        engines={"media": EngineSettings("media", threads=1)},
        **{name: tuple(one) if isinstance(one, list) else one
           for name, one in wanted["settings"].items()},
    )  # fmt: skip

    def quick(name: str, *operations: str, max_concurrency: int = 1) -> EngineBackend:
        how = Supervision(threads=1, idle_s=600)
        options = {"max_concurrency": max_concurrency}
        return EngineBackend(
            name, FAMILY, operations, options, max_concurrency=max_concurrency, supervision=how
        )

    def on_ready(server: object, address: str) -> None:
        part = address_path.with_name("address.part")
        part.write_text(address)
        part.rename(address_path)

    run.set_up_logging(wanted["log"])
    media, *_ = backends_of(settings)
    context = backend_context(media)
    backends = [
        media,
        quick("quick", *OPERATIONS, max_concurrency=wanted["max_concurrency"]),
        ocr_backend(quick("reader", "read_text"), context),
        upscale_backend(quick("upscaler", "upscale_image"), context),
        speech_backend(quick("listener", "transcribe"), context),
    ]
    return run.serve(settings, backends=backends, on_ready=on_ready)


if __name__ == "__main__":
    sys.exit(_serve(json.loads(sys.argv[1]), Path(sys.argv[2])))
