"""`closing_server`: chat streams of one token per second, and the times at which their
connections closed.

Prints its port on 127.0.0.1 and serves until standard input ends. A request to a path with ``id=N``
opens an endless stream. A request to ``/closed`` returns, for each N, the time at which the server
saw its connection close (CLOCK_MONOTONIC, in nanoseconds).
"""

import asyncio
import json
import re
import resource
import sys
import time

HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b'data: {"choices":[{"index":0,"delta":{"content":" w"},"finish_reason":null}]}\n\n'
CHUNK = b"%x\r\n%s\r\n" % (len(EVENT), EVENT)
SLICES = 50


class Streams:
    """The open streams, and the times at which the others closed."""

    def __init__(self) -> None:
        self.closed_ns: dict[int, int] = {}
        self.writers: dict[int, asyncio.StreamWriter] = {}

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = None
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            found = re.search(rb"[?&]id=(\d+)", head.partition(b"\r\n")[0])
            if found is None:
                body = json.dumps(self.closed_ns).encode()
                writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + body)
                return
            number = int(found[1])
            self.writers[number] = writer
            writer.write(HEAD + CHUNK)
            while await reader.read(1 << 16):
                pass
        except (OSError, asyncio.IncompleteReadError):
            pass  # A reset counts as a close.
        finally:
            if number is not None:
                self.closed_ns[number] = time.monotonic_ns()
                self.writers.pop(number, None)
            writer.close()

    async def tick(self) -> None:
        """Send each stream a token per second, spread over the second."""
        turn = 0
        while True:
            await asyncio.sleep(1 / SLICES)
            turn = (turn + 1) % SLICES
            for number, writer in list(self.writers.items()):
                if number % SLICES == turn and not writer.is_closing():
                    writer.write(CHUNK)


async def main() -> None:
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    streams = Streams()
    server = await asyncio.start_server(streams.serve, "127.0.0.1", 0, backlog=4096)
    ticking = asyncio.create_task(streams.tick())
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    ticking.cancel()
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
