"""Network egress of a sandboxed process: connections to loopback are relayed to a Unix socket.

A process in its own network namespace can reach no network, but still a Unix socket in the file
system. A small relay process accepts connections on its loopback interface and forwards them to
that socket.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import socket
import struct
import sys
from contextlib import suppress
from itertools import pairwise

from polymux.engines.process.sandbox import (
    ONLY_PORTS,
    Confinement,
    confine,
    die_with_parent,
    leave_network,
    run_module,
)

#: Name of this restriction in reports.
ONE_WAY_OUT = "own network namespace, access only through a proxy"
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_PIECE_BYTES = 64 << 10


def open_outlet(socket_path: str) -> int | None:
    """Leave the network except for a relay to a socket. Call it before starting threads.

    Args:
        socket_path: A listening Unix socket.

    Returns:
        The port on loopback that is relayed to the socket. None if the kernel does not allow
            leaving the network; nothing has changed then.
    """
    if not leave_network():
        return None
    _raise_loopback()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    parent = os.getpid()
    # Only the end of this process closes `held`, which ends the relay. Its parent-death signal is
    # not enough: the kernel treats it as a signal of this process, which Landlock may block.
    ended, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        _be_relay(listener, socket_path, parent, ended)
    os.close(ended)
    port: int = listener.getsockname()[1]
    listener.close()
    return port


def _raise_loopback() -> None:
    """Bring up loopback, which is down in a new namespace (netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked)
        flags = struct.unpack("16sh14x", answer)[1] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))


def _be_relay(listener: socket.socket, socket_path: str, parent: int, ended: int) -> None:
    """Run the relay process. Never returns; it ends with its parent."""
    try:
        die_with_parent(parent)
        # Close inherited descriptors: the connection to the server must end with the engine.
        kept = [2, *sorted((listener.fileno(), ended)), os.sysconf("SC_OPEN_MAX")]
        for before, after in pairwise(kept):
            os.closerange(before + 1, after)
        asyncio.run(_relay(listener, socket_path, ended))
    finally:
        os._exit(1)


async def _relay(listener: socket.socket, socket_path: str, ended: int) -> None:
    async def joined(here: asyncio.StreamReader, answer: asyncio.StreamWriter) -> None:
        there = None
        with suppress(OSError):
            reader, there = await asyncio.open_unix_connection(socket_path)
            up = asyncio.ensure_future(_pump(here, there))
            await _pump(reader, answer)
            up.cancel()
        for writer in (answer, there):
            if writer is not None:
                writer.close()

    asyncio.get_running_loop().add_reader(ended, os._exit, 0)
    server = await asyncio.start_server(joined, sock=listener)
    await server.serve_forever()


async def _pump(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while piece := await source.read(_PIECE_BYTES):
            sink.write(piece)
            await sink.drain()
        sink.write_eof()


def tried() -> str:
    """Test in a process which egress restriction works on this machine.

    Returns:
        `ONE_WAY_OUT`; `ONLY_PORTS` if processes cannot leave the network but Landlock can restrict
            TCP ports; empty if neither works.

    Raises:
        OSError: A process cannot be started.
    """
    return run_module(__name__).stdout.decode()


if __name__ == "__main__":
    # As in `polymux.engines.process.child`: restrict ports if the network cannot be left.
    if open_outlet(os.devnull) is not None:
        sys.stdout.write(ONE_WAY_OUT)
    elif ONLY_PORTS in confine(Confinement(readable=("/",), ports=(1,))):
        sys.stdout.write(ONLY_PORTS)
