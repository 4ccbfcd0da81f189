"""llama MODEL: llama.cpp's own HTTP server, of the library that polymux uses; prints its port."""

from __future__ import annotations

import signal
import sys

from benchmarks.server.models import parameters


def main() -> None:
    """Until SIGTERM."""
    server = parameters(sys.argv[1])
    print(server.listening_address.rpartition(":")[2], flush=True)
    signal.sigwait([signal.SIGTERM, signal.SIGINT])


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGINT])
    main()
