"""The file in which this account's servers leave their keys and addresses for its commands.

A key and an address for each server, the one that was started last first. A server that stops goes
to the end, and its key stays: the server keeps no more than the hash of it.
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

#: Of servers whose keys are kept; the ones that were started longest ago are forgotten.
_MAX_SERVERS = 16


def announce(key: str, address: str) -> None:
    """Puts a server first.

    Raises:
        OSError: The file cannot be written.
    """
    with _alone():
        own = (key, address)
        _write([own, *(one for one in local_servers() if one != own)])


def own_key(is_own: Callable[[str], bool]) -> str | None:
    """The key of the file that a server knows as one of its own."""
    return next((key for key, _ in local_servers() if is_own(key)), None)


def retire(key: str, address: str) -> None:
    """Puts a server that stops behind those that may run.

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
    """One process at a time: two that start would each leave the other one out."""
    folder = local_key_path().parent
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    place = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(place, fcntl.LOCK_EX)
        yield
    finally:
        os.close(place)
