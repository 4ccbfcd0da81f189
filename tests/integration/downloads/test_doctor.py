"""`polymux doctor` on downloads: the command itself, as people and as programs read it."""

from __future__ import annotations

import ctypes
import json
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from support.commands import PROGRAM, environment, run
from support.programs import find

if TYPE_CHECKING:
    from pathlib import Path

OLD = "2020.01.02"
#: Of a process whose kernel makes no network for it, nor for those that it starts.
NO_NETWORKS = (
    "echo 0 > /proc/sys/user/max_net_namespaces && echo 0 > /proc/sys/user/max_user_namespaces "
    '&& exec "$@"'
)


def installed(folder: Path, version: str) -> str:
    place = folder / "packages" / f"yt_dlp-{version}.dist-info"
    place.mkdir(parents=True)
    (place / "METADATA").write_text(f"Metadata-Version: 2.1\nName: yt-dlp\nVersion: {version}\n")
    return str(place.parent)


def test_an_old_downloader(tmp_path: Path) -> None:
    packages = installed(tmp_path, OLD)
    told = run("doctor", cwd=tmp_path, PYTHONPATH=packages).stdout.decode()
    found: dict[str, Any] = json.loads(
        run("doctor", "--json", cwd=tmp_path, PYTHONPATH=packages).stdout
    )
    downloads = found["downloads"]
    assert (downloads["ok"], downloads["version"], downloads["old"]) == (True, OLD, True)
    assert downloads["remedy"] in told
    [line] = [line for line in told.splitlines() if line.startswith("old ")]
    assert f"yt-dlp is {downloads['age_days']} days old" in line


@pytest.mark.parametrize("enforced", [True, False])
def test_the_one_way_out(tmp_path: Path, enforced: bool) -> None:
    limited = [find("unshare"), "--user", "--map-root-user", "sh", "-c", NO_NETWORKS, "sh"]

    def doctor(*words: str) -> str:
        done = subprocess.run(
            [*([] if enforced else limited), *PROGRAM, "doctor", *words],
            cwd=tmp_path, env=environment(tmp_path), capture_output=True, check=True, timeout=60,
        )  # fmt: skip
        return done.stdout.decode()

    [said] = [line for line in doctor().splitlines() if "one way out" in line]
    way_out = json.loads(doctor("--json"))["downloads"]["way_out"]
    if enforced:
        assert (way_out, said[:9].strip()) == ("network namespace", "ok")
    elif ctypes.CDLL(None).syscall(444, None, ctypes.c_size_t(0), 1) >= 4:  # Landlock's version.
        assert (way_out, said[:9].strip()) == ("ports", "partly")
    else:
        assert (way_out, said[:9].strip()) == ("open", "absent")
