"""`measure SIDE THREADS BUSY`: median seconds of a chat of 48 tokens, beside BUSY processes that
compute."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from support.chat_model import model_path  # noqa: E402

COUNT = 5
TOKENS = 48
BODY = {
    "messages": [{"role": "user", "content": "Tell me a long story about the sea."}],
    "temperature": 0.0,
    "seed": 3,
}


@contextmanager
def busy() -> Iterator[None]:
    """Keep one processor busy."""
    with subprocess.Popen([sys.executable, "-c", "while True: pass"]) as process:
        yield
        process.kill()


def ours() -> Callable[[], None]:
    """Return a call of polymux's chat engine."""
    from polymux.engines.base import Request, Token
    from polymux.engines.chat.engine import ChatEngine
    from support.sinks import HeardSink

    engine = ChatEngine()
    engine.load({"model": str(model_path())})
    values = {**BODY, "model": "default", "max_completion_tokens": TOKENS}
    folder = Path(tempfile.mkdtemp(prefix="polymux-bench-"))

    def chat() -> None:
        request = Request("chat", "", "", values, frozenset(values))
        engine.run(request, HeardSink(folder), Token())

    return chat


def plain(threads: int) -> Callable[[], None]:
    """Return a call of the library with a fixed number of threads."""
    import xllamacpp

    made = xllamacpp.CommonParams()
    made.model.path = str(model_path())
    made.n_parallel, made.n_ctx, made.n_batch, made.n_ubatch = 1, 4096, 64, 64
    for one in (made.cpuparams, made.cpuparams_batch):
        one.n_threads, one.poll = threads, 0
    made.verbosity, made.use_jinja, made.ui = -1, True, False
    made.hostnames, made.port = ["127.0.0.1"], 0
    server = xllamacpp.Server(made)
    body = {**BODY, "max_tokens": TOKENS, "stream": True}

    def chat() -> None:
        server.handle_chat_completions(body, _go_on)

    return chat


def _go_on(chunk: Any) -> bool:
    del chunk
    return False


def main(side: str, threads: int, others: int) -> None:
    chat = ours() if side == "ours" else plain(threads)
    chat()
    seconds = []
    with ExitStack() as stack:
        for _ in range(others):
            stack.enter_context(busy())
        time.sleep(0.5)
        for _ in range(COUNT):
            started = time.perf_counter()
            chat()
            seconds.append(time.perf_counter() - started)
    print(json.dumps({"median_s": statistics.median(seconds)}), flush=True)
    os._exit(0)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
