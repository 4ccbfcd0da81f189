"""Ports of 127.0.0.1 where no server answers, each in a way of its own."""

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
    """A port that refuses connections and that nobody else can take meanwhile."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


@contextlib.contextmanager
def silent_port() -> Iterator[int]:
    """A port whose connections the kernel completes and no program ever accepts."""
    with socket.create_server(("127.0.0.1", 0), backlog=1024) as listener:
        yield listener.getsockname()[1]


@contextlib.contextmanager
def full_port() -> Iterator[int]:
    """A port whose accept queue is full: connecting to it waits for an answer that never comes."""
    with contextlib.ExitStack() as stack:
        listener = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        port = listener.getsockname()[1]
        for _ in range(_MAX_FILLERS):
            filler = stack.enter_context(socket.socket())
            filler.setblocking(False)
            if filler.connect_ex(("127.0.0.1", port)) not in (0, errno.EINPROGRESS):
                raise RuntimeError("the port refuses instead of waiting")
            if not select.select([], [filler], [], _UNANSWERED_S)[1]:
                yield port
                return
        raise RuntimeError("this kernel accepts without end")
