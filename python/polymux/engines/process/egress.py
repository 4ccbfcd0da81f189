"""One way out of a process without a network: connections to loopback, handed on to a Unix socket.

In a network namespace of its own a process reaches nothing. A socket of the file system it reaches
nevertheless: a small process beside it takes connections on its loopback and joins them to one.
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

#: Told as in force.
ONE_WAY_OUT = "own network namespace, one way out"
_SIOCGIFFLAGS, _SIOCSIFFLAGS = 0x8913, 0x8914
_IFF_UP = 1
_PIECE_BYTES = 64 << 10


def open_outlet(socket_path: str) -> int | None:
    """Leaves the network, but for one way; to be called before threads are started.

    Args:
        socket_path: A Unix socket that is listened on.

    Returns:
        The port on loopback whose connections come out there; None where the kernel does not let
        this process leave the network: then nothing has changed.
    """
    if not leave_network():
        return None
    _raise_loopback()
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    parent = os.getpid()
    # Closed by nobody but the end of this process. Its signal alone would not do: Landlock can keep
    # a confined process from signalling others, and the kernel counts that one as its own.
    ended, held = os.pipe()
    if os.fork() == 0:
        os.close(held)
        _be_relay(listener, socket_path, parent, ended)
    os.close(ended)
    port: int = listener.getsockname()[1]
    listener.close()
    return port


def _raise_loopback() -> None:
    """A new namespace's loopback is down (netdevice(7))."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        asked = struct.pack("16sh14x", b"lo", 0)
        answer = fcntl.ioctl(any_socket, _SIOCGIFFLAGS, asked)
        flags = struct.unpack("16sh14x", answer)[1] | _IFF_UP
        fcntl.ioctl(any_socket, _SIOCSIFFLAGS, struct.pack("16sh14x", b"lo", flags))


def _be_relay(listener: socket.socket, socket_path: str, parent: int, ended: int) -> None:
    """The process beside; never returns, and ends with the one that has made it."""
    try:
        die_with_parent(parent)
        # The connection to the server is one of them: it must end with the process that it is of.
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
    """What bounds the way out of a process on this machine, found out by one that has tried it.

    Returns:
        `ONE_WAY_OUT`; `ONLY_PORTS` where no process may leave the network, and Landlock bounds the
        ports of TCP; empty where nothing does.

    Raises:
        OSError: No process can be started.
    """
    return run_module(__name__).stdout.decode()


if __name__ == "__main__":
    # As `polymux.engines.process.child` has it: where there is no network to leave, ports.
    if open_outlet(os.devnull) is not None:
        sys.stdout.write(ONE_WAY_OUT)
    elif ONLY_PORTS in confine(Confinement(readable=("/",), ports=(1,))):
        sys.stdout.write(ONLY_PORTS)
