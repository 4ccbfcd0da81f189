"""The door that the library opens by itself, whatever it is told: shut once it is open.

It listens before it loads. A socket in a folder would be left behind by a process that is killed
while it does: so its name is one of the kernel's, which is gone with the process. In a network of
its own nobody else can reach it; elsewhere there is the key, until it is shut.
"""

from __future__ import annotations

import os
import secrets
import socket
import stat
from contextlib import suppress
from pathlib import Path

from polymux.service.errors import engine_failed


class Door:
    """A Unix socket in the abstract namespace (unix(7)).

    Attributes:
        name: What the library is to listen on; by its end the library knows it for a socket's.
        key: What whoever comes would have to say.
    """

    def __init__(self) -> None:
        """It is not open yet."""
        self.name = f"\0polymux-chat-{secrets.token_hex(16)}.sock"
        self.key = secrets.token_hex(32)

    def shut(self) -> None:
        """Nobody comes any more: the library's listening ends.

        Raises:
            InternalServerError: It is not found, and so would stay open.
        """
        for one in Path("/proc/self/fd").iterdir():
            descriptor = int(one.name)
            with suppress(OSError):
                if stat.S_ISSOCK(os.fstat(descriptor).st_mode) and self._shut(descriptor):
                    return
        raise engine_failed("the socket of the chat library is not found, and cannot be shut")

    def _shut(self, descriptor: int) -> bool:
        """Shuts a socket, where it is this one; it is the library's to close."""
        with socket.socket(fileno=os.dup(descriptor)) as found:
            if found.family != socket.AF_UNIX or found.getsockname() != self.name.encode():
                return False
            found.shutdown(socket.SHUT_RDWR)
            return True
