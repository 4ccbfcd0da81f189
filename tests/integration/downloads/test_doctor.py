"""`polymux doctor` on downloads, as text and as JSON."""

from __future__ import annotations

import ctypes
import json
import subprocess
from typing import TYPE_CHECKING

import pytest
from support.commands import PROGRAM, environment
from support.programs import find

if TYPE_CHECKING:
    from pathlib import Path

#: Run by a shell: the following program cannot create network namespaces.
NO_NETWORKS = (
    "echo 0 > /proc/sys/user/max_net_namespaces && echo 0 > /proc/sys/user/max_user_namespaces "
    '&& exec "$@"'
)


@pytest.mark.parametrize("enforced", [True, False])
def test_the_one_way_out(tmp_path: Path, enforced: bool) -> None:
    limited = [find("unshare"), "--user", "--map-root-user", "sh", "-c", NO_NETWORKS, "sh"]

    def doctor(*words: str) -> str:
        done = subprocess.run(
            [*([] if enforced else limited), *PROGRAM, "doctor", *words],
            cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        return done.stdout.decode()

    # The Landlock ABI version.
    has_ports = ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 4
    found = json.loads(doctor("--json"))["downloads"]["way_out"]
    assert found == ("network namespace" if enforced else "ports" if has_ports else "open")
