"""A store on a small, broken or missing disk: the server reports it. Case IDs: testing.md."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

import pytest
from support import programs
from support.kill_rounds import JOBS, path_of, sound
from support.polymux_server import PolymuxServer
from support.server_process import until
from support.services import Scripted

if TYPE_CHECKING:
    from support.serve_command import ServeCommand


def mounted(*mounts: str) -> tuple[str, ...]:
    """The command prefix for a program with private mounts, which disappear with it."""
    user = () if os.geteuid() == 0 else ("--user", "--map-root-user")
    script = " && ".join(["mount --make-rprivate /", *mounts, 'exec "$@"'])
    return (programs.find("unshare"), *user, "--mount", "/bin/sh", "-c", script, "sh")


def small(folder: Path, options: str) -> str:
    folder.mkdir(parents=True, exist_ok=True)
    return f"mount -t tmpfs -o {options} none {quote(str(folder))}"


def seen(program: ServeCommand, path: Path) -> Path:
    """A path as the server sees it."""
    return Path(f"/proc/{program.pid}/root{path}")


@pytest.mark.parametrize("options", ["size=3m", "size=64m,nr_inodes=60"])
def test_until_there_is_no_room(program: ServeCommand, options: str) -> None:
    """Returns 507 and keeps results. After deletions there is room (D01, D02 and D13)."""
    program.start(before=mounted(small(program.store, options)))
    data = sound(5, 1) if "size=3m" in options else sound(0.2, 1)
    links, full = [], 0
    for _ in range(200):
        answer = program.convert(data, ("Prefer", "wait=30"))
        if answer.status == 200:
            links.append(path_of(answer.json()["response"]))
            continue
        assert (answer.status, answer.json()["code"]) in (
            (507, "storage_full"), (503, "store_failed"),
        ), answer.body  # fmt: skip
        full += 1
        if full == 5:
            break
    assert full == 5, "the disk was never full"
    assert len(links) > 5
    for path in links:
        assert program.request("GET", path).status == 200
    assert program.request("GET", "/readyz").status == 200
    assert list(seen(program, program.store / "drafts").iterdir()) == []
    listed = program.request("GET", JOBS).json()["results"]
    jobs = [one["id"] for one in listed if one["status"] == "succeeded"]
    assert len(jobs) == len(links)
    for one in jobs[:4]:
        assert program.request("DELETE", f"{JOBS}/{one}").status == 204
    answer = program.convert(sound(0.2, 1))
    assert answer.status == 200, answer.body
    assert program.stop() == 0
    assert "Traceback" not in program.log_text, program.log_text[-3000:]


EXPIRED = """
import sys
from pathlib import Path
from polymux.service.store import Store
now = [1_800_000_000.0]
store = Store(Path(sys.argv[1]), life_s=60, clock=lambda: now[0])
for _ in range(3):
    with store.media.draft() as draft:
        draft.path.write_bytes(bytes(500_000))
        digest, size = draft.seal()
        store.media.adopt(draft, job="", owner="o", sha256=digest, size_bytes=size,
                          content_type="audio/mpeg", file_name="a")
with open(store.media.path_of(store.media.sent_by("o")[0]).parents[2] / "filler", "wb", 0) as file:
    try:
        while True:
            file.write(bytes(4096))
    except OSError:
        pass
now[0] += 61
print(store.sweep(), store.sweep(), store.media.used_bytes)
store.close()
"""


def test_what_has_expired_goes_from_a_full_disk(tmp_path: Path) -> None:
    """Deleting also needs space for SQLite's journal, which the store frees first (D02)."""
    command = [sys.executable, "-c", EXPIRED, str(tmp_path / "s")]
    mounts = mounted(small(tmp_path / "s", "size=3m"))
    done = subprocess.run([*mounts, *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["3", "0", "0"]


def test_a_store_that_is_deleted_while_it_runs(program: ServeCommand) -> None:
    """Returns 503 without a crash. The next server creates a new store (D14)."""
    program.start()
    link = path_of(program.convert(sound(0.1, 1)).json()["response"])
    key = program.key
    shutil.rmtree(program.store)
    for _ in range(2):
        answer = program.convert(sound(0.1, 1))
        assert answer.status in (401, 500, 503), answer.body
        assert program.request("GET", link).status in (404, 503)
        assert program.request("GET", "/healthz").status == 200
        assert program.request("GET", JOBS, key=key).status in (200, 401, 503)
    assert program.process is not None
    assert program.process.poll() is None
    assert str(program.store) not in str(answer.body)
    assert program.stop() == 0
    (program.folder / "state" / "polymux" / "local-key").unlink()
    program.start()
    assert program.convert(sound(0.1, 1)).status == 200


def test_a_folder_of_files_on_another_disk(program: ServeCommand) -> None:
    """The error names the mount. No file is copied or partial (D15)."""
    media = program.store / "media"
    program.start(before=mounted(small(media, "size=8m")))
    for _ in range(2):
        answer = program.convert(sound(0.1, 1))
        assert (answer.status, answer.json()["code"]) == (503, "store_failed"), answer.body
    assert list(seen(program, program.store / "drafts").iterdir()) == []
    assert [one for one in seen(program, media).rglob("*") if one.is_file()] == []
    assert "cross-device" in program.log_text.lower()


@pytest.mark.parametrize(
    "count", [2000, pytest.param(100_000, marks=[pytest.mark.long, pytest.mark.slow])]
)
def test_many_small_results(tmp_path: Path, count: int) -> None:
    """Listing, sweeping and startup do not block requests (D12)."""
    folder = tmp_path / "s"
    with PolymuxServer(folder, lambda: [Scripted()]) as server:
        owner, key = server.keys.keys()[0].id, server.key
    record = '{"model": "m", "version": "v", "input": {}, "logs": [], "metrics": {}}'
    now = time.time()
    names = [f"{number:040x}.mp3" for number in range(count)]
    for group in {name[:2] for name in names}:
        (folder / "media" / group).mkdir(exist_ok=True)
    for name in names:
        (folder / "media" / name[:2] / name).touch()
    with closing(sqlite3.connect(folder / "catalogue.db")) as database, database:
        database.executemany(
            "INSERT INTO jobs (id, owner, operation, status, record, created_at, completed_at) "
            "VALUES (?, ?, 'convert_to_mp3', 'succeeded', ?, ?, ?)",
            ((name, owner, record, now, now) for name in names),
        )
        database.executemany(
            "INSERT INTO files VALUES (?, ?, ?, '', 0, 'audio/mpeg', 'a', ?, ?, '{}')",
            ((name, name, owner, now, now + 3600) for name in names),
        )
    began = time.monotonic()
    with PolymuxServer(folder, lambda: [Scripted()]) as server:
        started_s = time.monotonic() - began
        server.key = key
        longest = _longest(server, 20)
        state = server.state.service.store
        # All results expire at once.
        state.media._clock = state.jobs._clock = lambda: time.time() + 7200 + 86400
        server.loop.call_soon_threadsafe(lambda: server.loop.create_task(_sweep(server)))
        swept = [_longest(server, 1)]
        until(lambda: swept.append(_longest(server, 1)) or not any(_files(folder)), 240)
        # A few milliseconds each on an idle machine.
        assert longest < 10
        assert max(swept) < 10
        assert started_s < 20 + count / 10_000
    with closing(sqlite3.connect(folder / "catalogue.db")) as database:
        assert database.execute("SELECT count(*) FROM files").fetchone() == (0,)


def _files(folder: Path) -> list[Path]:
    return next(
        (list(one.iterdir()) for one in (folder / "media").iterdir() if any(one.iterdir())), []
    )


async def _sweep(server: PolymuxServer) -> None:
    store = server.state.service.store
    while await store.run(store.sweep):
        pass


def _longest(server: PolymuxServer, times: int) -> float:
    """The slowest of `times` requests for a page of jobs, in seconds."""
    taken = []
    for _ in range(times):
        began = time.monotonic()
        assert server.ask("GET", JOBS).status == 200
        taken.append(time.monotonic() - began)
    return max(taken)
