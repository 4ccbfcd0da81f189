from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import TYPE_CHECKING

import pytest
from polymux.service.clock import ClockSkewTracker, SteadyClock
from polymux.service.errors import storage_full
from polymux.service.job_table import Job, new_id

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from polymux.service.media_store import StoredFile
    from polymux.service.store import Store

DAY_S = 86400.0
YEAR_S = 365 * DAY_S
BEGAN = 1_800_000_000.0


class Machine:
    """A machine with an adjustable wall clock and a boot clock that only a restart resets."""

    def __init__(self, opened: Callable[..., Store]) -> None:
        self._opened = opened
        self.wall = BEGAN
        self.since_boot_s = 500.0
        self.boot = "first"

    def pass_(self, seconds: float) -> None:
        self.wall += seconds
        self.since_boot_s += seconds

    def start_again(self) -> None:
        self.boot += " and another"
        self.since_boot_s = 20.0

    def clock(self) -> SteadyClock:
        return SteadyClock(lambda: self.wall, lambda: self.since_boot_s, self.boot)

    def open(self) -> Store:
        return self._opened(life_s=DAY_S, clock=self.clock())


@pytest.fixture
def machine(opened: Callable[..., Store]) -> Machine:
    return Machine(opened)


def kept(machine: Machine, store: Store) -> StoredFile:
    """Store a file and the job that took two seconds to make it."""
    moments = [store.clock()]
    for _ in range(2):
        machine.pass_(1)
        moments.append(store.clock())
    created, started, completed = moments
    job = Job(
        id=new_id(), owner="alice", operation="transcribe", model="m", version="v", input={},
        created_at=created, started_at=started, completed_at=completed, status="succeeded",
        idempotency=("key", "digest"),
    )  # fmt: skip
    store.jobs.add(job)
    draft = store.media.draft(5)
    draft.path.write_bytes(b"bytes")
    digest, size_bytes = draft.seal()
    return store.media.adopt(
        draft, job=job.id, owner="alice", sha256=digest, size_bytes=size_bytes,
        content_type="audio/mpeg", file_name="song.mp3",
    )  # fmt: skip


def check_is_as_old(store: Store, file: StoredFile, age_s: float, ran_s: float = 1) -> None:
    """Nothing fresh has expired, and no time is in the future."""
    assert store.sweep() == 0
    now = store.clock()
    found, job = store.media.find(file.name), store.jobs.find(file.job)
    assert found is not None
    assert job is not None
    assert (job.completed_at, job.started_at) != (None, None)
    assert now - found.created_at == pytest.approx(age_s)
    assert found.expires_at - now == pytest.approx(DAY_S - age_s)
    assert now - (job.completed_at or 0) == pytest.approx(age_s)
    assert now - (job.started_at or 0) == pytest.approx(age_s + ran_s)
    assert now - job.created_at == pytest.approx(age_s + 2 * ran_s)
    assert store.jobs.of_key("alice", "key", "digest") is not None


def check_is_over_in_time(machine: Machine, store: Store, file: StoredFile, age_s: float) -> None:
    """Files and jobs expire at their age limit, and not before."""
    machine.pass_(DAY_S - age_s - 1)
    # The idempotency key has the age of the job's start, and may expire earlier.
    removed = store.sweep()
    assert store.media.find(file.name) is not None
    machine.pass_(2)
    assert removed + store.sweep() == 3
    assert store.media.find(file.name) is None
    assert store.jobs.of_key("alice", "key", "other digest") is None


LEAPS = pytest.mark.parametrize("leap_s", [-DAY_S, YEAR_S, DAY_S, -YEAR_S, 2 * 3600.0])


@pytest.mark.parametrize(
    ("leap_s", "followed_s"),
    [(DAY_S, 0.0), (-DAY_S, 0.0), (YEAR_S, 0.0), (-YEAR_S, 0.0), (30.0, 30.0)],
)
def test_the_clock_makes_no_leaps(machine: Machine, leap_s: float, followed_s: float) -> None:
    clock = machine.clock()
    assert clock() == BEGAN
    machine.pass_(10)
    machine.wall += leap_s
    assert clock() == BEGAN + 10 + followed_s


@LEAPS
def test_the_clock_is_set_while_a_store_is_open(leap_s: float, machine: Machine) -> None:
    store = machine.open()
    file = kept(machine, store)
    machine.pass_(600)
    machine.wall += leap_s
    check_is_as_old(store, file, 600)
    check_is_over_in_time(machine, store, file, 600)


@LEAPS
@pytest.mark.parametrize("closed_first", [True, False])
def test_the_clock_was_set_when_a_store_is_opened(
    leap_s: float, closed_first: bool, machine: Machine
) -> None:
    """The clock changed while the store was closed, or while a server ran and ignored it."""
    store = machine.open()
    file = kept(machine, store)
    machine.pass_(600)
    if closed_first:
        store.close()
        machine.wall += leap_s
    else:
        machine.wall += leap_s
        store.sweep()
        store.close()
    machine.pass_(300)
    store = machine.open()
    assert store.clock() == machine.wall
    check_is_as_old(store, file, 900)
    store.close()
    # The correction happens once.
    store = machine.open()
    check_is_as_old(store, file, 900)
    check_is_over_in_time(machine, store, file, 900)


def test_corrections_are_no_leaps(machine: Machine) -> None:
    """Changes of up to half an hour are not corrected, and two do not add up to a leap."""
    store = machine.open()
    file = kept(machine, store)
    for _ in range(4):
        machine.wall += 1800
        machine.pass_(60)
        store.sweep()
    store.close()
    store = machine.open()
    assert store.clock() - file.created_at == pytest.approx(4 * 1860)
    assert store.media.find(file.name) == file


@pytest.mark.parametrize("back_s", [DAY_S, YEAR_S])
def test_a_machine_that_is_started_with_its_clock_put_back(back_s: float, machine: Machine) -> None:
    """Without a battery for its clock, a machine boots in the past.

    Files would then have times in the future and be kept too long.
    """
    store = machine.open()
    machine.pass_(600)
    file = kept(machine, store)
    store.close()
    machine.start_again()
    machine.wall -= back_s
    store = machine.open()
    check_is_as_old(store, file, 0, ran_s=0)
    # The clock is corrected while the store is open; reopening it changes nothing.
    machine.pass_(60)
    machine.wall += back_s
    check_is_as_old(store, file, 60, ran_s=0)
    store.close()
    store = machine.open()
    check_is_as_old(store, file, 60, ran_s=0)
    check_is_over_in_time(machine, store, file, 60)


def test_a_record_that_cannot_be_read(tmp_path: Path, machine: Machine) -> None:
    """An unreadable record does not stop the store from opening."""
    store = machine.open()
    file = kept(machine, store)
    store.close()
    with closing(sqlite3.connect(tmp_path / "s/catalogue.db", isolation_level=None)) as database:
        database.execute("UPDATE jobs SET record = '{'")
    machine.wall += YEAR_S
    store = machine.open()
    assert store.media.find(file.name) is not None


def test_a_full_disk_is_no_reason_not_to_start(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    machine: Machine,
) -> None:
    """Sweeping works too, and makes room. The times are written later."""
    store = machine.open()
    file = kept(machine, store)
    store.close()
    keep = ClockSkewTracker._keep

    def full(*_: object) -> None:
        raise storage_full("the disk of the job database is full")

    monkeypatch.setattr(ClockSkewTracker, "_keep", full)
    store = machine.open()
    machine.pass_(DAY_S + 1)
    assert store.sweep() == 3
    assert store.media.find(file.name) is None
    assert "the disk of the job database is full" in caplog.text
    monkeypatch.setattr(ClockSkewTracker, "_keep", keep)
    store.sweep()
    with closing(sqlite3.connect(tmp_path / "s/catalogue.db")) as database:
        assert database.execute("SELECT now FROM times").fetchall() == [(machine.wall,)]


def test_secrets_of_the_future_serve_no_longer_than_others(
    tmp_path: Path, machine: Machine
) -> None:
    machine.wall += YEAR_S
    store = machine.open()
    link = dict(one.split("=") for one in store.links.query("/a", BEGAN + DAY_S).split("&"))
    store.close()
    machine.start_again()
    machine.wall -= YEAR_S
    store = machine.open()
    _, *secrets = (tmp_path / "s/link-secrets").read_text().split()
    assert store.links.accepts("/a", link["exp"], link["sig"])
    machine.pass_(14 * DAY_S + 1)
    store.sweep()
    _, new, *old = (tmp_path / "s/link-secrets").read_text().split()
    assert (old, new in secrets) == (secrets, False)
