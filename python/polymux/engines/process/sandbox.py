"""Sandboxing of engine processes on Linux: limits, Landlock, namespaces, system calls.

Restrictions that the kernel does not support are skipped, and those in force are reported. See
landlock(7), prctl(2), unshare(2), setrlimit(2).
"""

from __future__ import annotations

import ctypes
import json
import os
import platform
import resource
import signal
import struct
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux.engines.process import syscall_filter

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

_TRIED_WITHIN_S = 10.0
_PR_SET_PDEATHSIG = 1
_PR_SET_DUMPABLE = 4
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWUSER = 0x10000000
_CLONE_NEWNET = 0x40000000
_LANDLOCK_CREATE_RULESET = 444
_LANDLOCK_ADD_RULE = 445
_LANDLOCK_RESTRICT_SELF = 446
_LANDLOCK_VERSION = 1
_RULE_PATH_BENEATH = 1

# landlock(7), "Access rights": the rights that each ABI version supports.
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1 << 0, 1 << 1, 1 << 2, 1 << 3
_FIRST_RIGHTS = (1 << 13) - 1
_RIGHTS_SINCE = {2: 1 << 13, 3: 1 << 14, 5: 1 << 15}
_NETWORK_SINCE = 4
_SCOPES_SINCE = 6
_BIND, _CONNECT = 1 << 0, 1 << 1
_RULE_NET_PORT = 2
_ABSTRACT_SOCKETS_AND_SIGNALS = 0b11


#: Name of the restriction to some TCP ports in reports.
ONLY_PORTS = "TCP connections to allowed ports only"
#: Name of the restriction to no network in reports.
NO_NETWORK = "own network namespace"
#: Name of the restriction in reports if only TCP is blocked.
NO_TCP = "no TCP"
NO_CAPABILITIES = "no capabilities"
FILTERED_CALLS = "system call filter"
_PR_CAPBSET_DROP = 24
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION = 0x20080522
_CAP_DAC_OVERRIDE, _CAP_DAC_READ_SEARCH = 1 << 1, 1 << 2


class Confinement(NamedTuple):
    """Restrictions of a process.

    Attributes:
        readable: Directories and files that it may read and execute, including subdirectories.
        writable: Directories in which it may read and write files.
        network: Whether it may use the network. If a network namespace is not possible, Landlock
            blocks only TCP; older kernels block nothing.
        ports: The only TCP ports that it may connect to; empty for all. Kernels without support for
            this allow all ports.
        limits: Names of `resource` limits, such as ``"AS"``, with their values.
        families: Families of sockets that it may create, such as `socket.AF_UNIX`.
    """

    readable: tuple[str, ...] = ()
    writable: tuple[str, ...] = ()
    network: bool = True
    limits: Mapping[str, int] = {}
    ports: tuple[int, ...] = ()
    families: tuple[int, ...] = ()


def tried() -> list[str]:
    """Test in a process which restrictions work on this machine.

    Raises:
        OSError: A process cannot be started.
        ValueError: Its output is invalid.
    """
    found: list[str] = json.loads(run_module(__name__).stdout)
    return found


def run_module(name: str) -> subprocess.CompletedProcess[bytes]:
    """Run a module of this package in a process that tests restrictions on itself.

    Raises:
        OSError: A process cannot be started.
        subprocess.TimeoutExpired: It takes too long.
    """
    return subprocess.run(  # noqa: S603 - this interpreter and a module of ours
        [sys.executable, "-P", "-m", name],
        capture_output=True,
        check=False,
        stdin=subprocess.DEVNULL,
        timeout=_TRIED_WITHIN_S,
    )


def python_paths() -> set[str]:
    """Return the folders with Python and its packages, which a confined process must read.

    ``python -m`` adds the current directory to `sys.path`. It is left out.
    """
    here = ""
    with suppress(FileNotFoundError):  # The directory was deleted.
        here = os.path.realpath(os.getcwd())  # noqa: PTH109
    imported = {one for one in sys.path if one and os.path.realpath(one) != here}
    return {sys.prefix, sys.base_prefix, str(Path(__file__).parents[3]), *imported}


def die_with_parent(parent: int) -> None:
    """Make the kernel kill this process when its parent ends for any reason."""
    _libc().prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != parent:
        os._exit(1)  # The parent has already ended.


def protect_server() -> None:
    """Hide this process from others of its account: its environment and memory contain secrets.

    It cannot be traced any more, leaves no core dump, and programs that it starts gain no
    privileges (prctl(2)).
    """
    libc = _libc()
    libc.prctl(_PR_SET_DUMPABLE, 0, 0, 0, 0)
    libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)


def confine(wanted: Confinement) -> list[str]:
    """Permanently restrict this process, and return the restrictions in force.

    Call this before starting threads: Landlock and namespaces only apply to the calling thread and
    threads started by it.
    """
    in_force = []
    for name, value in wanted.limits.items():
        if _limit(name, value):
            in_force.append(f"limit {name} {value}")
    if _libc().prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0:
        in_force.append("no new privileges")
    has_left = not wanted.network and leave_network()
    if has_left:
        in_force.append(NO_NETWORK)
    has_files = bool(wanted.readable or wanted.writable or wanted.ports)
    if has_files or not (wanted.network or has_left):
        version = _landlock(wanted, files=has_files)
        if version and has_files:
            in_force.append(f"landlock {version}")
        if version >= _NETWORK_SINCE and wanted.ports:
            in_force.append(ONLY_PORTS)
        elif version >= _NETWORK_SINCE and not (wanted.network or has_left):
            in_force.append(NO_TCP)
    if _drop_capabilities(wanted):
        in_force.append(NO_CAPABILITIES)
    # Last, because it denies some of the calls above.
    if syscall_filter.install(wanted.families):
        in_force.append(FILTERED_CALLS)
    return in_force


def lacking(wanted: Mapping[str, Any], in_force: Iterable[str]) -> list[str]:
    """Return the restrictions of a process that are not in force, for people.

    Args:
        wanted: Requested restrictions, see `Supervision.confinement`.
        in_force: Reported restrictions.
    """
    reported = list(in_force)
    found = [] if FILTERED_CALLS in reported else [FILTERED_CALLS]
    if wanted["readable"] and not any(one.startswith("landlock") for one in reported):
        found.append("file access (Landlock)")
    if not wanted["network"] and NO_NETWORK not in reported:
        found.append(NO_NETWORK)
    return found


def _drop_capabilities(wanted: Confinement) -> bool:
    """Drop the privileges of root, and of a new user namespace (capabilities(7)).

    Access to files of other users is kept if the process needs it: for its models, which may be
    anywhere, and to write into a folder of another user.
    """
    files_of_others = not wanted.readable or any(
        os.path.exists(one) and os.stat(one).st_uid != os.geteuid()  # noqa: PTH110, PTH116
        for one in wanted.writable
    )
    is_root = os.geteuid() == 0
    kept = _CAP_DAC_OVERRIDE | _CAP_DAC_READ_SEARCH if is_root and files_of_others else 0
    libc = _libc()
    libc.prctl(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    for number in range(64):
        if not kept >> number & 1:
            libc.prctl(_PR_CAPBSET_DROP, number, 0, 0, 0)
    # Effective, permitted and inheritable sets, in two halves.
    header = struct.pack("=II", _CAPABILITY_VERSION, 0)
    sets = struct.pack("=6I", kept, kept, 0, 0, 0, 0)
    return bool(libc.capset(header, sets) == 0) and kept == 0


def _limit(name: str, value: int) -> bool:
    which = getattr(resource, f"RLIMIT_{name}")
    _, hard = resource.getrlimit(which)
    if hard != resource.RLIM_INFINITY:
        value = min(value, hard)
    try:
        resource.setrlimit(which, (value, value))
    except (ValueError, OSError):
        return False
    return True


def leave_network() -> bool:
    """Enter a network namespace with only a loopback interface, which is down."""
    libc = _libc()
    if os.geteuid() == 0 and libc.unshare(_CLONE_NEWNET) == 0:
        return True
    return bool(libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET) == 0)


def _landlock(wanted: Confinement, *, files: bool) -> int:
    """Restrict this thread. Return the Landlock ABI version; 0 if it is not supported.

    Without `files`, file access is not restricted.
    """
    version = _syscall(_LANDLOCK_CREATE_RULESET, None, 0, _LANDLOCK_VERSION)
    if version < 1 or sys.byteorder != "little" or platform.machine() not in _MACHINES:
        return 0
    rights = _rights_of_files(version) if files else 0
    network = _network_rights(wanted) if version >= _NETWORK_SINCE else 0
    scopes = _ABSTRACT_SOCKETS_AND_SIGNALS if version >= _SCOPES_SINCE else 0
    attributes = struct.pack("=QQQ", rights, network, scopes)
    # Older kernels have a shorter structure, and reject a longer one unless the rest is zero.
    size = 8 if version < _NETWORK_SINCE else 16 if version < _SCOPES_SINCE else 24
    ruleset = _syscall(_LANDLOCK_CREATE_RULESET, attributes, size, 0)
    if ruleset < 0:  # Also if nothing can be denied: no network support.
        return 0
    try:
        reading = _EXECUTE | _READ_FILE | _READ_DIR
        _allow(ruleset, wanted.readable, reading)
        _allow(ruleset, wanted.writable, rights & _WRITING)
        for port in wanted.ports if network else ():
            rule = struct.pack("=QQ", _CONNECT, port)
            _syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_NET_PORT, rule, 0)
        return version if _syscall(_LANDLOCK_RESTRICT_SELF, ruleset, 0, 0) == 0 else 0
    finally:
        os.close(ruleset)


def _rights_of_files(version: int) -> int:
    rights = _FIRST_RIGHTS
    for since, more in _RIGHTS_SINCE.items():
        if version >= since:
            rights |= more
    return rights


def _network_rights(wanted: Confinement) -> int:
    """Return the TCP rights to deny, except for allowed ports."""
    if not wanted.network:
        return _BIND | _CONNECT
    return _BIND | _CONNECT if wanted.ports else 0


#: Read, write, list, remove, create regular files, truncate. No links, pipes, sockets or devices.
_WRITING = _READ_FILE | _WRITE_FILE | _READ_DIR | 1 << 5 | 1 << 8 | 1 << 13 | 1 << 14
_MACHINES = ("x86_64", "aarch64", "riscv64")
_RIGHTS_OF_FILES = _EXECUTE | _WRITE_FILE | _READ_FILE | 1 << 14 | 1 << 15


def _allow(ruleset: int, paths: Iterable[str], rights: int) -> None:
    for path in paths:
        try:
            descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
        except OSError:
            continue  # A missing path needs no rule.
        try:
            allowed = rights if os.path.isdir(path) else rights & _RIGHTS_OF_FILES  # noqa: PTH112
            rule = struct.pack("=Qi", allowed, descriptor)
            _syscall(_LANDLOCK_ADD_RULE, ruleset, _RULE_PATH_BENEATH, rule, 0)
        finally:
            os.close(descriptor)


def _libc() -> ctypes.CDLL:
    return ctypes.CDLL(None, use_errno=True)


def _syscall(number: int, *arguments: int | bytes | None) -> int:
    converted = [
        ctypes.c_long(one) if isinstance(one, int) else ctypes.c_char_p(one) for one in arguments
    ]
    return int(_libc().syscall(ctypes.c_long(number), *converted))


if __name__ == "__main__":
    # The restrictions of the media engine; `tried` reads the output.
    everything = Confinement(("/usr",), (), network=False, limits={"CORE": 0})
    sys.stdout.write(json.dumps(confine(everything)))
