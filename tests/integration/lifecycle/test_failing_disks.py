"""The n-th file call fails, for every n: no acknowledged data lost or cut. Case IDs: testing.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux.service.database import MIGRATIONS
from support.preloads import compiled, preloaded
from support.supervised_engine import TESTS

if TYPE_CHECKING:
    from collections.abc import Iterator


FULL = (("ok", 200), ("storage_full", 507))
BROKEN = (("ok", 200), ("store_failed", 503))


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Path]:
    """A folder in memory: only the test decides which calls fail."""
    memory = Path("/dev/shm")
    base = memory if os.access(memory, os.W_OK) else tmp_path
    with tempfile.TemporaryDirectory(dir=base, prefix="polymux-test-") as folder:
        yield Path(folder)


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    source = TESTS / "support" / "failing_calls.c"
    return compiled(source, tmp_path_factory.mktemp("library"), source.stem)


def rounds(library: Path, folder: Path, *what: str) -> Iterator[dict[str, Any]]:
    """The outcome with a failure at each call."""
    done = subprocess.run(
        [sys.executable, "-m", "support.store_under_faults", str(folder), *what],
        env={**os.environ, "PYTHONPATH": str(TESTS), **preloaded(library)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(found) > 1, "no call of that kind was made"
    yield from found


def check(one: dict[str, Any]) -> None:
    """Check the invariants that hold after every failure."""
    assert one["lost"] == [], one
    assert one["torn"] == [], one
    assert one["drafts"] == [], one
    assert one["sound"] == "ok", one
    assert one["used"] == 0, one
    assert one.get("reserved", 0) == 0, one
    # The store works again without being reopened.
    assert [step[1] for step in one["again"]] == ["ok"] * 4, one


@pytest.mark.parametrize(
    ("error", "call", "lasting"),
    [("ENOSPC", "write", "once"), ("ENOSPC", "mkdir", "once"), ("EDQUOT", "write", "lasting")],
)
def test_no_room(library: Path, place: Path, error: str, call: str, lasting: str) -> None:
    """Returns 507 for failed writes of files and of the database (D01 and D02)."""
    for one in rounds(library, place, call, error, lasting, "work"):
        check(one)
        for _, code, status, failed in one["steps"]:
            # SQLite only detects a full disk by ENOSPC from write.
            plain = call == "write" and error == "ENOSPC"
            assert (code, status) in (FULL if plain else (*FULL, *BROKEN)), one
            assert not (failed and code == "ok") or call == "mkdir", one


@pytest.mark.parametrize(
    ("error", "call"),
    [*(("EIO", call) for call in ("write", "fsync", "rename", "read")), ("EACCES", "open")],
)
def test_a_broken_disk(library: Path, place: Path, error: str, call: str) -> None:
    """Data that was not synced is never acknowledged (D03 and D04)."""
    for one in rounds(library, place, call, error, "once", "work"):
        check(one)
        for _, code, status, failed in one["steps"]:
            assert (code, status) in BROKEN, one
            assert not (failed and code == "ok"), one


@pytest.mark.parametrize("call", ["write", "rename", "unlink"])
def test_killed_at_any_call(library: Path, place: Path, call: str) -> None:
    """Killed between changes on disk, such as a rename and its database row (D05 and D06)."""
    for one in rounds(library, place, call, "SIGKILL", "once", "start"):
        check(one)


@pytest.mark.parametrize("call", ["write", "rename"])
def test_killed_while_tables_are_brought_up_to_date(library: Path, place: Path, call: str) -> None:
    """An older store stays complete at every moment, and the next start finishes the migration
    (D08).

    A complete copy of the old tables exists at all times, and nothing partial.
    """
    versions = set()
    for one in rounds(library, place, call, "SIGKILL", "once", "older"):
        check(one)
        assert one["files"], one
        assert one["version"] == len(MIGRATIONS) + 1, one
        assert one["migrated"] == one["known"] == 3, one
        assert 1 in one["copies"], one
        assert 0 not in one["copies"], one
        versions.update(one["copies"])
    # Some were killed between two versions, which have separate copies.
    assert versions >= ({1, 2} if call == "write" else {1})


@pytest.mark.parametrize(
    ("error", "call"),
    [
        ("EROFS", "open"),
        ("ENOSPC", "write"),
        ("EIO", "read"),
        ("EACCES", "mkdir"),
    ],
)
def test_at_the_start(library: Path, place: Path, error: str, call: str) -> None:
    """The error is one line and the next start succeeds (D04)."""
    outcomes = set()
    for one in rounds(library, place, call, error, "lasting", "start"):
        check(one)
        outcomes.add(one["opened"])
        assert one["opened"] == "ok" or "store" in one["opened"] or "database" in one["opened"]
        assert "Traceback" not in one["opened"]
    assert len(outcomes) > 1, outcomes
