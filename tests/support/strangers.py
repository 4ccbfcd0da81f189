"""Commands as a user that no list of users has, with no home and few rights."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

from support import programs
from support.supervised import TESTS


def anybody(folder: Path, number: int) -> tuple[str, ...]:
    """What runs a command as the user of that number; of a plain user, as that one.

    Args:
        folder: What that user must come to; it becomes theirs, with all that is in it.
        number: Of the user and the group.
    """
    if os.geteuid() != 0:
        return ()
    reach(folder)
    become = f"setpriv --reuid={number} --regid={number} --clear-groups"
    steps = ["mount --make-rprivate /"]
    # An interpreter in root's home is shown where it is, without the rest of that home.
    needed = [Path(sys.base_prefix).resolve(), TESTS.parent]
    for hidden in {one for path in needed for one in path.parents if not is_open(one)}:
        within = [one for one in needed if hidden in one.parents]
        for at, one in enumerate(within):
            hold = folder / f"hold-{at}"
            hold.mkdir(exist_ok=True)
            steps.append(f"mount --bind {quote(str(one))} {quote(str(hold))}")
        steps.append(f"mount -t tmpfs -o mode=755 none {quote(str(hidden))}")
        for at, one in enumerate(within):
            hold = folder / f"hold-{at}"
            steps.append(f"mkdir -p {quote(str(one))}")
            steps.append(f"mount --bind {quote(str(hold))} {quote(str(one))}")
    for one in (folder, *folder.rglob("*")):
        os.chown(one, number, number)
    script = " && ".join([*steps, f'exec {become} "$@"'])
    return (programs.find("unshare"), "--mount", "/bin/sh", "-c", script, "sh")


def is_open(folder: Path) -> bool:
    return bool(folder.stat().st_mode & 0o001)


def reach(folder: Path) -> None:
    """Lets others come to a folder of the tests."""
    for part in (folder, *folder.parents):
        if not is_open(part):
            part.chmod(part.stat().st_mode | 0o001)
