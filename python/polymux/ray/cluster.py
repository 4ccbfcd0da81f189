"""Connection of a process to a Ray cluster."""

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

#: Starts a Ray cluster for this process alone.
LOCAL = "local"
#: Uses the cluster that ``ray start`` has added this machine to.
AUTO = "auto"
#: Ray's default is 30 % of the memory. Batches need less: objects are passed on immediately.
_OBJECTS_BYTES = 512 << 20
_LARGEST_PORT = 65535


def check_address(address: str) -> str:
    """Return the address of a cluster if it is valid.

    Args:
        address: ``"local"``, ``"auto"`` or ``"HOST:PORT"``.

    Raises:
        InvalidRequestError: The address is invalid.

    Example:
        >>> from polymux.ray.cluster import check_address
        >>> check_address("head.example:6379")
        'head.example:6379'
    """
    if address.startswith("ray://"):
        raise InvalidRequestError(
            f"ray={shown(address)}: Ray Client (ray://) is not supported. Run this command on a "
            "machine of the cluster with 'auto'"
        )
    host, _, port = address.rpartition(":")
    is_port = port.isascii() and port.isdigit() and 0 < int(port) <= _LARGEST_PORT
    if address in (LOCAL, AUTO) or (host and is_port and "/" not in host):
        return address
    raise InvalidRequestError(
        f"ray={shown(address)}: invalid cluster address. Use HOST:PORT, 'auto' for the "
        "cluster of this machine, or 'local' for a new cluster on this machine"
    )


def ray_module(name: str = "ray") -> Any:
    """Import a module of Ray.

    Raises:
        MissingDependencyError: Ray, or a module that it needs, is not installed.
    """
    # By default, Ray and Ray Serve report usage to their developers and log to standard error.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    os.environ.setdefault("RAY_BACKEND_LOG_LEVEL", "fatal")
    # Prevents Ray from starting a new cluster if a thread finds no connection.
    os.environ.setdefault("RAY_ENABLE_AUTO_CONNECT", "0")
    try:
        return import_module(name)
    except ImportError as error:
        raise MissingDependencyError(
            f"missing dependency: {error.name or name}. Run: pip install 'polymux[ray]'"
        ) from error


def connect(address: str) -> bool:
    """Connect this process to a cluster.

    Args:
        address: An address, see `check_address`.

    Returns:
        Whether this call has connected the process. If so, call `disconnect` at the end. Returns
            False if the process was already connected, and keeps that connection.

    Raises:
        InvalidRequestError: The address is invalid.
        MissingDependencyError: Ray is not installed.
        ConnectError: The cluster does not exist or refused the connection.
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
            raise ConnectError(
                f"ray={shown(address)}: cannot start or reach the cluster: {error}"
            ) from error
    _set_spoken(spoken=False)
    return True


def disconnect() -> None:
    """Disconnect from the cluster. A cluster that was started for this process ends."""
    with _signals_kept():
        ray_module().shutdown()
    _set_spoken(spoken=True)


def _set_spoken(*, spoken: bool) -> None:
    """Set whether Ray prints messages about dead workers to standard output.

    Standard output is reserved for results. ``log_to_driver`` only covers the output of workers,
    and Ray has no option for its own messages.
    """
    ray_module("ray._private.worker")._worker_logs_enabled = spoken  # noqa: SLF001


@contextmanager
def _signals_kept() -> Iterator[None]:
    """Restore our SIGTERM handler, which Ray replaces."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.getsignal(signal.SIGTERM)
    try:
        yield
    finally:
        if before is not None:
            signal.signal(signal.SIGTERM, before)
