"""`llama MODEL`: llama.cpp's own HTTP server, from the library that polymux uses; prints its
port."""

from __future__ import annotations

import signal
import sys
from typing import Any

CONTEXT_TOKENS, BATCH_TOKENS, THREADS = 2048, 64, 1


def parameters(path: str) -> Any:
    """Return the library's parameters: those that polymux sets, and a listener on loopback."""
    import xllamacpp

    made = xllamacpp.CommonParams()
    made.model.path = path
    made.n_parallel, made.n_ctx = 1, CONTEXT_TOKENS
    made.n_batch = made.n_ubatch = BATCH_TOKENS
    for one in (made.cpuparams, made.cpuparams_batch):
        one.n_threads, one.poll = THREADS, 0
    made.verbosity, made.use_jinja, made.ui = -1, True, False
    made.hostnames, made.port = ["127.0.0.1"], 0
    return xllamacpp.Server(made)


def main() -> None:
    """Serve until SIGTERM."""
    server = parameters(sys.argv[1])
    print(server.listening_address.rpartition(":")[2], flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main()
