"""Commands run by an unknown user without a home and with few rights."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from shlex import quote

from support import programs
from support.supervised_engine import TESTS


def anybody(folder: Path, number: int) -> tuple[str, ...]:
    """The command prefix that runs a command as an unknown user. Empty if this user is not root.

    Args:
        folder: A folder for that user, who becomes the owner of its contents.
        number: The user id and group id.
    """
    if os.geteuid() != 0:
        return ()
    reach(folder)
    become = f"setpriv --reuid={number} --regid={number} --clear-groups"
    steps = ["mount --make-rprivate /"]
    # Mount the interpreter and the tests at their own paths, and hide the rest of a closed home.
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
    """Make a folder of the tests reachable for other users."""
    for part in (folder, *folder.parents):
        if not is_open(part):
            part.chmod(part.stat().st_mode | 0o001)
