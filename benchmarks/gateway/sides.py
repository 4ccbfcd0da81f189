"""The fake upstream and the gateways in front of it, each in its own process."""

from __future__ import annotations

import json
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from benchmarks.environment import Environment
from benchmarks.floors.programs import built
from benchmarks.server.conversation import COMPLETION
from benchmarks.server.program import serving
from benchmarks.server.sides import OURS, Running, started

if TYPE_CHECKING:
    from collections.abc import Iterator

DIRECT, PROXY = "direct, without a gateway", "plain proxy: FastAPI + httpx2"
STOP_S = 10


@contextmanager
def upstream() -> Iterator[Running]:
    """Run the fake upstream of `upstream.cpp`, which accepts any key."""
    with tempfile.TemporaryDirectory(prefix="polymux-bench-") as name:
        folder = Path(name)
        answer = folder / "answer.json"
        answer.write_text(json.dumps(COMPLETION))
        with subprocess.Popen(
            [str(built("upstream")), str(answer)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as process:
            assert process.stdout is not None
            assert process.stdin is not None
            try:
                port = int(process.stdout.readline())
                yield Running(port, process.pid, "none", folder, process)
                process.stdin.close()
                process.wait(STOP_S)
            finally:
                process.kill()


@contextmanager
def in_front(side: str, fake: Running, max_concurrency: int) -> Iterator[Running]:
    """Run a gateway in front of the fake upstream, or return the upstream itself.

    Args:
        side: Name of the gateway.
        fake: The upstream.
        max_concurrency: Maximum concurrent requests to the upstream; the plain proxy has no limit.
    """
    if side == DIRECT:
        yield fake
    elif side == OURS:
        with serving(settings(fake.port, max_concurrency)) as (server, _):
            yield server
    else:
        command = [Environment("gateway").python, "-m", "benchmarks.gateway.proxy", str(fake.port)]
        with tempfile.TemporaryDirectory(prefix="polymux-bench-") as name:
            folder = Path(name)
            with started(command, folder) as (process, line):
                yield Running(int(line), process.pid, "none", folder, process)


def settings(port: int, max_concurrency: int) -> str:
    """Return the settings for `polymux serve`: one upstream and no engines."""
    return (
        f'[engines]\n[upstreams.fake]\nkind = "openai"\nbase_url = "http://127.0.0.1:{port}/v1"\n'
        f'max_concurrency = {max_concurrency}\nmodels = ["default"]\n'
    )
