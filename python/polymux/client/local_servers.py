"""The file in which the servers of this user account publish their keys and URLs for the CLI.

It has one key and one URL for each server, most recently started first. A server that stops moves
to the end. Its key stays in the file, because the server itself stores only the key's hash.
"""

from __future__ import annotations

import fcntl
import os
from contextlib import contextmanager
from typing import TYPE_CHECKING

from polymux._util.atomic_file import write_private
from polymux.config import local_key_path, local_servers

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

#: Maximum number of servers in the file; the oldest entries are dropped.
_MAX_SERVERS = 16


def announce(key: str, address: str) -> None:
    """Add a server at the start of the file.

    Raises:
        OSError: The file cannot be written.
    """
    with _alone():
        own = (key, address)
        _write([own, *(one for one in local_servers() if one != own)])


def own_key(is_own: Callable[[str], bool]) -> str | None:
    """Return the first key in the file that `is_own` accepts, if any."""
    return next((key for key, _ in local_servers() if is_own(key)), None)


def retire(key: str, address: str) -> None:
    """Move a server that stops to the end of the file.

    Raises:
        OSError: The file cannot be written.
    """
    with _alone():
        found, own = local_servers(), (key, address)
        if own in found[:-1]:
            _write([*(one for one in found if one != own), own])


def _write(servers: list[tuple[str, str]]) -> None:
    lines = (f"{key}\n{address}\n" for key, address in servers[:_MAX_SERVERS])
    write_private(local_key_path(), "".join(lines))


@contextmanager
def _alone() -> Iterator[None]:
    """Lock the file against other processes, which would otherwise overwrite each other's entry."""
    folder = local_key_path().parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
