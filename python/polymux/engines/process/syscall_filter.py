"""A filter of system calls for engine processes (seccomp(2), classic BPF).

It denies what no engine needs and what Landlock and namespaces do not cover: sockets of other
families, changes of permissions, io_uring, memory files, tracing, mounting and new namespaces.
"""

from __future__ import annotations

import ctypes
import errno
import platform
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_PR_SET_SECCOMP = 22
_SECCOMP_MODE_FILTER = 2
# linux/filter.h and linux/bpf_common.h.
_LOAD, _EQUAL, _AT_LEAST, _AND, _RETURN = 0x20, 0x15, 0x35, 0x54, 0x06
_ALLOW, _ERRNO = 0x7FFF0000, 0x00050000
# struct seccomp_data: offsets of the number, the architecture and the low half of arguments.
_NUMBER, _ARCHITECTURE, _FIRST, _SECOND = 0, 4, 16, 24
#: System calls with the numbers of this bit belong to another ABI, x32.
_X32_BIT = 0x40000000
#: Flags of clone(2) that create namespaces.
_NEW_NAMESPACES = 0x7E020080
_SOCK_STREAM, _SOCK_SEQPACKET, _SOCKET_KINDS = 1, 5, 0xF


class _Machine(NamedTuple):
    architecture: int
    column: int
    socket: int
    socketpair: int
    clone: int


#: Denied system calls: their numbers on x86-64 and on other machines; None where it is missing.
_DENIED = {
    "chmod": (90, None),
    "fchmod": (91, 52),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "chown": (92, None),
    "lchown": (94, None),
    "fchown": (93, 55),
    "fchownat": (260, 54),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "fsetxattr": (190, 7),
    "setxattrat": (463, 463),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "fremovexattr": (199, 16),
    "removexattrat": (466, 466),
    "mknod": (133, None),
    "mknodat": (259, 33),
    "ptrace": (101, 117),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "pidfd_getfd": (438, 438),
    "bpf": (321, 280),
    "perf_event_open": (298, 241),
    "userfaultfd": (323, 282),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "memfd_create": (319, 279),
    "memfd_secret": (447, 447),
    "mount": (165, 40),
    "umount2": (166, 39),
    "pivot_root": (155, 41),
    "chroot": (161, 51),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "mount_setattr": (442, 442),
    "setns": (308, 268),
    "unshare": (272, 97),
    "open_by_handle_at": (304, 265),
    "init_module": (175, 105),
    "finit_module": (313, 273),
    "delete_module": (176, 106),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "fanotify_init": (300, 262),
    "acct": (163, 89),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "quotactl": (179, 60),
    "syslog": (103, 116),
    "iopl": (172, None),
    "ioperm": (173, None),
}
_CLONE3 = 435
_MACHINES = {
    "x86_64": _Machine(0xC000003E, 0, socket=41, socketpair=53, clone=56),
    "aarch64": _Machine(0xC00000B7, 1, socket=198, socketpair=199, clone=220),
    "riscv64": _Machine(0xC00000F3, 1, socket=198, socketpair=199, clone=220),
}


def _program(machine: _Machine, families: Sequence[int]) -> Iterator[tuple[int, int, int, int]]:
    """Yield the instructions: code, jump if true, jump if false, value."""
    yield _LOAD, 0, 0, _ARCHITECTURE
    yield _EQUAL, 1, 0, machine.architecture
    yield _RETURN, 0, 0, _ERRNO | errno.ENOSYS
    yield _LOAD, 0, 0, _NUMBER
    for numbers in _DENIED.values():
        number = numbers[machine.column]
        if number is not None:
            yield _EQUAL, 0, 1, number
            yield _RETURN, 0, 0, _ERRNO | errno.EPERM
    # The C library then uses clone(2), whose flags a filter can read.
    yield _EQUAL, 0, 1, _CLONE3
    yield _RETURN, 0, 0, _ERRNO | errno.ENOSYS
    yield _AT_LEAST, 0, 1, _X32_BIT
    yield _RETURN, 0, 0, _ERRNO | errno.ENOSYS
    yield from _rule(machine.socket, _FIRST, None, families, errno.EAFNOSUPPORT)
    # A datagram socket of a pair could connect to any address.
    kinds = (_SOCK_STREAM, _SOCK_SEQPACKET)
    yield from _rule(machine.socketpair, _SECOND, _SOCKET_KINDS, kinds, errno.EPERM)
    yield from _rule(machine.clone, _FIRST, _NEW_NAMESPACES, (0,), errno.EPERM)
    yield _RETURN, 0, 0, _ALLOW


def _rule(
    number: int, argument: int, mask: int | None, allowed: Sequence[int], failure: int
) -> Iterator[tuple[int, int, int, int]]:
    """Yield the check of an argument, which must be one of the allowed values after masking."""
    check = [(_LOAD, 0, 0, argument)]
    if mask is not None:
        check.append((_AND, 0, 0, mask))
    for value in allowed:
        check += [(_EQUAL, 0, 1, value), (_RETURN, 0, 0, _ALLOW)]
    check.append((_RETURN, 0, 0, _ERRNO | failure))
    yield _EQUAL, 0, len(check), number
    yield from check


def install(families: Sequence[int]) -> bool:
    """Filter the system calls of this thread and of threads and programs that it starts.

    Requires no_new_privs or CAP_SYS_ADMIN.

    Args:
        families: Allowed families of sockets, such as `socket.AF_UNIX`. Connected pairs of stream
            sockets are always allowed.

    Returns:
        Whether the filter is in force; False on other machines and if the kernel has none.
    """
    machine = _MACHINES.get(platform.machine())
    if machine is None:
        return False
    code = b"".join(struct.pack("=HBBI", *one) for one in _program(machine, families))
    instructions = ctypes.create_string_buffer(code, len(code))
    # struct sock_fprog: the count, padding, and a pointer.
    program = struct.pack("@HP", len(code) // 8, ctypes.addressof(instructions))
    libc = ctypes.CDLL(None, use_errno=True)
    arguments = (_PR_SET_SECCOMP, _SECCOMP_MODE_FILTER, program, 0, 0)
    return bool(libc.prctl(*arguments) == 0)
