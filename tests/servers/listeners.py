"""Ports of 127.0.0.1 without a working server, each failing in another way."""

from __future__ import annotations

import contextlib
import errno
import select
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

_MAX_FILLERS = 64
_UNANSWERED_S = 0.2


@contextlib.contextmanager
def refusing_port() -> Iterator[int]:
    """A port that refuses connections and stays reserved in the meantime."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port whose connections the kernel completes, but no program accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port with a full accept queue: connecting waits forever."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(_MAX_FILLERS):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            if filler.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
                raise RuntimeError("the port refuses connections instead of queueing them")
            if not select.select([], [filler], [], _UNANSWERED_S)[1]:
                yield port
                return
        raise RuntimeError("the accept queue of this kernel never fills")
