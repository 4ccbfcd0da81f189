"""How a process becomes part of a cluster of Ray."""

from __future__ import annotations

import logging
import os
import signal
import threading
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from polymux._util.text import shown
from polymux.errors import ConnectError, InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Iterator

#: A Ray that is started for this process alone.
LOCAL = "local"
#: The one that this machine is part of, as ``ray start`` has made it.
AUTO = "auto"
#: Ray takes three tenths of the memory by itself; orders and results are passed on at once.
_OBJECTS_BYTES = 512 << 20
_LARGEST_PORT = 65535


def check_address(address: str) -> str:
    """An address of a cluster, as it is.

    Args:
        address: ``"local"``, ``"auto"`` or ``"HOST:PORT"``.

    Raises:
        InvalidRequestError: It is none.

    Example:
        >>> from polymux.ray.cluster import check_address
        >>> check_address("head.example:6379")
        'head.example:6379'
    """
    if address.startswith("ray://"):
        raise InvalidRequestError(
            f"ray={shown(address)}: Ray's client is not used, as files go through the machine's "
            "own part of the cluster: run this on a machine of the cluster, with 'auto'"
        )
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _LARGEST_PORT
    if address in (LOCAL, AUTO) or (host and is_port and "/" not in host):
        return address
    raise InvalidRequestError(
        f"ray={shown(address)} is no address of a cluster: it is HOST:PORT, 'auto' for the cluster "
        "that this machine is part of, or 'local' for a Ray of its own"
    )


def ray_module(name: str = "ray") -> Any:
    """A module of Ray.

    Raises:
        MissingDependencyError: It, or what it needs, is not installed.
    """
    # Both tell their makers of each start, and chat on standard error, unless they are told.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Nor shall it start a cluster of its own where one of its threads finds none.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"work on a cluster needs {error.name or name}: install it with "
            "pip install 'polymux[ray]'"
        ) from error


def connect(address: str) -> bool:
    """Makes this process part of a cluster.

    Args:
        address: As `check_address` has it.

    Returns:
        Whether it has become so here, and is to be left with `disconnect`; a process that is part
        of one already stays in that.

    Raises:
        InvalidRequestError: It is no address.
        MissingDependencyError: Ray is not installed.
        ConnectError: There is no such cluster, or it lets nobody in.
    """
    check_address(address)
    ray = ray_module()
    if ray.is_initialized():
        return False
    options: dict[str, Any] = {"address": address}
    if address == LOCAL:
        options |= {"include_dashboard": False, "object_store_memory": _OBJECTS_BYTES}
    with _signals_kept():
        try:
            ray.init(
                **options,
                log_to_driver=False,
                logging_level=logging.ERROR,
                configure_logging=False,
                namespace="polymux",
            )
        except (ConnectionError, ValueError, RuntimeError, TimeoutError, OSError) as error:
            raise ConnectError(f"cannot join the Ray cluster {address}: {error}") from error
    _set_spoken(spoken=False)
    return True


def disconnect() -> None:
    """Leaves the cluster; a Ray that was started for this process ends."""
    with _signals_kept():
        ray_module().shutdown()
    _set_spoken(spoken=True)


def _set_spoken(*, spoken: bool) -> None:
    """Whether Ray may tell of dead workers on standard output, which is for results.

    ``log_to_driver`` is about others' words alone, and Ray has no option for these.
    """
    ray_module("ray._private.worker")._worker_logs_enabled = spoken  # noqa: SLF001


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Ray puts a handler of its own in the place of ours."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
