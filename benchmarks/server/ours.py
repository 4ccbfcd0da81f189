"""`ours FOLDER OPTIONS`: `polymux serve` with a no-op engine; prints its port and a key.

This runs the code of ``polymux serve``, including its log. Only the engine differs, because a
settings file cannot assign operations to it. OPTIONS is JSON: ``max_concurrency``, ``limits``,
``shutdown_timeout_s``, ``log``, ``in_process``, ``uvloop`` (its folder) and ``count``. With
``count`` the file ``counted`` has the bytes read before and after the start of each answer.
"""

from __future__ import annotations

import asyncio
import json
import site
import sys
import threading
import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux._util.memory import freeze_gc
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.runtime.settings import Limits, StoreSettings
from polymux.server.auth.api_keys import KeyFile
from polymux.server.run import Server, serve, set_up_logging
from polymux.server.settings.settings import ServerSettings

from benchmarks.server.engines import FAMILY, OPERATIONS, NoopBackend

if TYPE_CHECKING:
    from polymux.service.backend import Backend

STORE_BYTES = 40 << 30


def backend(max_concurrency: int, *, in_process: bool) -> Backend:
    """Return the no-op engine."""
    if in_process:
        return NoopBackend(max_concurrency)
    how = Supervision(threads=1)
    return EngineBackend(
        "noop",
        FAMILY,
        OPERATIONS,
        {"max_concurrency": max_concurrency},
        max_concurrency=max_concurrency,
        supervision=how,
    )


def count(server: Server, path: Path) -> None:
    """Record the bytes of each connection that were read, and that were dropped after its answer.

    There must be one connection at a time.
    """
    assert server.front is not None
    native = server.front.native
    before = (0, 0)
    while True:
        time.sleep(0.001)
        now = native.received_bytes, native.dropped_bytes
        if now != before and native.connections == 0:
            with path.open("a") as file:
                file.write(json.dumps([now[0] - before[0], now[1] - before[1]]) + "\n")
            before = now


def main() -> None:
    """Serve until SIGTERM."""
    options: dict[str, Any] = json.loads(sys.argv[2])
    folder = Path(sys.argv[1])
    settings = replace(
        ServerSettings(),
        port=0,
        store=StoreSettings(folder / "store", bytes=STORE_BYTES),
        limits=Limits(**options.get("limits", {})),
        shutdown_timeout_s=options.get("shutdown_timeout_s", 10.0),
    )
    # The quota is counted but is too large to be reached.
    key, _ = KeyFile(settings.key_file).add("benchmark", requests_per_minute=1e9, concurrent=10_000)
    set_up_logging(options.get("log", "info"))
    if options.get("uvloop"):
        site.addsitedir(options["uvloop"])
        import uvloop

        asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())

    def tell(server: Server, address: str) -> None:
        freeze_gc()
        if options.get("count"):
            threading.Thread(target=count, args=(server, folder / "counted"), daemon=True).start()
        print(json.dumps({"port": int(address.rpartition(":")[2]), "key": key}), flush=True)

    made = backend(
        int(options.get("max_concurrency", 64)), in_process=bool(options.get("in_process"))
    )
    sys.exit(serve(settings, backends=[made], on_ready=tell))


if __name__ == "__main__":
    main()
