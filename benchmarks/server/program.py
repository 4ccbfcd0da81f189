"""`polymux serve` in its own process with a settings file, as users run it."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT
from benchmarks.server.sides import STOP_S, Running
from benchmarks.server.wire import get, until

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def serving(settings: str, **env: str) -> Iterator[tuple[Running, float]]:
    """Run `polymux serve` with these settings; yields it with the seconds until it is ready.

    Raises:
        SystemExit: It does not start.
    """
    with tempfile.TemporaryDirectory(prefix="polymux-bench-") as name:
        folder = Path(name)
        path = folder / "polymux.toml"
        path.write_text(f'port = 0\n[store]\nfolder = "{folder}/store"\n{settings}')
        own = {**os.environ, "XDG_STATE_HOME": str(folder), "PYTHONPATH": str(ROOT), **env}
        command = [sys.executable, "-m", "polymux", "serve", "--config", str(path)]
        log = folder / "log"
        began = time.monotonic()
        with (
            log.open("w") as errors,
            subprocess.Popen(command, stderr=errors, cwd=ROOT, env=own) as process,
        ):
            try:
                until(lambda: "serving on " in log.read_text() or process.poll() is not None)
                if process.poll() is not None:
                    raise SystemExit(log.read_text().splitlines()[-1])
                address = log.read_text().partition("serving on ")[2].partition(";")[0]
                key = (folder / "polymux" / "local-key").read_text().split()[0]
                server = Running(int(address.rpartition(":")[2]), process.pid, key, folder, process)
                until(lambda: b'"ready"' in get(server, "/readyz"))
                yield server, time.monotonic() - began
                process.send_signal(signal.SIGTERM)
                process.wait(STOP_S)
            finally:
                process.kill()
