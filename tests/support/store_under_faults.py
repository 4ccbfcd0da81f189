"""A store whose disk fails at the n-th call, for every n. Needs the preloaded fault library.

``python -m support.store_under_faults FOLDER CALL ERRNO once|lasting AT`` prints a JSON line for
each n, with the outcome of each step and the state of the store when it is opened again.

- AT is ``start`` or ``work``: when the disk begins to fail.
- If ERRNO is SIGKILL, the process is killed at the n-th call. AT may then also be ``older``: the
  start on a store of the first version with results, which is migrated.
"""

from __future__ import annotations

import ctypes
import errno
import hashlib
import json
import os
import shutil
import sqlite3
import sys
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.errors import PolymuxError
from polymux.service import database
from polymux.service.errors import described
from polymux.service.job_table import SUCCEEDED, Job, new_id
from polymux.service.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_ROUNDS = 400
#: A future version of the tables, made from the current ones.
LATER = """
    CREATE TABLE later (id TEXT PRIMARY KEY, record TEXT) STRICT;
    INSERT INTO later SELECT id, record FROM jobs
"""
_library = ctypes.CDLL(None)


def arm(folder: Path, call: str, n: int, error: int, lasting: int) -> None:
    _library.fail(os.fsencode(folder), call.encode(), ctypes.c_long(n), error, lasting, 0)


def disarm() -> None:
    _library.fail(b"", b"", ctypes.c_long(0), 0, 0, 0)


class Steps:
    """The steps on a store, and their outcomes."""

    def __init__(
        self, store: Store | None, tell: Callable[[str, str], object] = lambda _, __: None
    ) -> None:
        self.store: Any = store
        self._tell = tell
        self.outcomes: list[list[Any]] = []
        self.jobs: list[str] = []
        #: Files of jobs whose end was stored.
        self.files: dict[str, str] = {}

    def step(self, name: str, work: Callable[[], Any]) -> Any:
        before = _library.has_failed()
        try:
            result = work()
        except PolymuxError as error:
            error_fields = described(error)
            self.outcomes.append([name, error_fields["code"], error_fields["status"], True])
            return None
        except Exception as error:
            self.outcomes.append([name, f"{type(error).__name__}: {error}", 0, True])
            return None
        self.outcomes.append([name, "ok", 200, _library.has_failed() > before])
        return result

    def job(self) -> None:
        job = Job(new_id(), "o", "convert_to_mp3", "m", "v", {}, 1.0)
        if self.step("add", lambda: self.store.jobs.add(job)) is None:
            return
        self.jobs.append(job.id)
        self._tell(job.id, "")
        data = os.urandom(100_000)
        name = self.step("file", lambda: self.file(job.id, data))
        job.output = {"response": {"file": name}}
        job.status, job.completed_at = SUCCEEDED if name else "failed", 2e9
        if self.step("end", lambda: self.store.jobs.update(job) is None) and name:
            self.files[name] = hashlib.sha256(data).hexdigest()
            self._tell(name, self.files[name])
        self.step("rotate", lambda: self.store.links.rotate(now=True))

    def file(self, job: str, data: bytes) -> str:
        with self.store.media.draft(len(data)) as draft:
            with draft.create() as file:
                draft.write_to(file, data)
            digest, size = draft.seal()
            kept = self.store.media.adopt(
                draft, job=job, owner="o", sha256=digest, size_bytes=size,
                content_type="audio/mpeg", file_name="a.mp3",
            )  # fmt: skip
        return kept.name


def found(folder: Path, steps: Steps) -> dict[str, Any]:
    store = Store(folder)
    try:
        lost = [name for name in steps.jobs if store.jobs.find(name) is None]
        for name, digest in steps.files.items():
            file = store.media.find(name)
            if file is None:
                lost.append(name)
            elif hashlib.sha256(store.media.path_of(file).read_bytes()).hexdigest() != digest:
                lost.append(f"{name} is another")
        there = {one.name for one in (folder / "media").glob("*/*")}
        drafts = [one.name for one in (folder / "drafts").iterdir()]
        used = store.media.used_bytes
        expected = sum((folder / "media" / one[:2] / one).stat().st_size for one in there)
    finally:
        store.close()
    with closing(sqlite3.connect(folder / "catalogue.db")) as connection:
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
        rows = {name for (name,) in connection.execute("SELECT name FROM files")}
        nobodys = "SELECT name FROM files JOIN jobs ON job = id WHERE status != 'succeeded'"
        lost += [f"{name} is nobody's" for (name,) in connection.execute(nobodys)]
    parts = [one.name for one in folder.iterdir() if ".part" in one.name]
    return {"lost": lost, "torn": sorted(rows ^ there), "drafts": drafts + parts, "sound": sound,
            "used": used - expected}  # fmt: skip


def once(folder: Path, call: str, n: int, error: int, lasting: int, at: str) -> dict[str, Any]:
    """One n: all steps while the disk fails, and again after it recovers."""
    if at == "start":
        arm(folder, call, n, error, lasting)
        try:
            store = Store(folder)
        except PolymuxError as failed:
            fired = _library.has_failed()
            disarm()
            message = str(failed)
            again = Store(folder)
            steps = Steps(again)
            steps.job()
            again.close()
            return {"n": n, "fired": fired, "opened": message, "steps": [], "again": steps.outcomes,
                    **found(folder, steps)}  # fmt: skip
        fired = _library.has_failed()
        disarm()
    else:
        store = Store(folder)
        Steps(store).job()
        arm(folder, call, n, error, lasting)
    steps = Steps(store)
    steps.job()
    fired = fired if at == "start" else _library.has_failed()
    disarm()
    first, steps.outcomes = steps.outcomes, []
    steps.job()
    draft_bytes = store.media.used_bytes
    stored = sum(one.stat().st_size for one in (folder / "media").glob("*/*"))
    store.close()
    return {"n": n, "fired": fired, "opened": "ok", "steps": first, "again": steps.outcomes,
            "reserved": draft_bytes - stored, **found(folder, steps)}  # fmt: skip


def killed(folder: Path, call: str, n: int) -> dict[str, Any]:
    """One n: the process is killed, and a new process opens the store."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)

        def tell(*words: str) -> None:
            os.write(writer, f"{' '.join(words)}\n".encode())

        arm(folder, call, n, 0, 0)
        store = Store(folder)
        for _ in range(2):
            Steps(store, tell).job()
        for file in store.media.of_job(store.jobs.newest("o", before=None, most=1)[0][0].id):
            store.media.remove(file)
        store.close()
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        records = [line.split() for line in pipe]
    status = os.waitpid(child, 0)[1]
    steps = Steps(None)
    # The last file is deleted, so it may be missing.
    files = [one for one in records if len(one) == 2]
    steps.jobs = [one[0] for one in records if len(one) == 1]
    steps.files = dict(files[:1])
    fired = os.WIFSIGNALED(status)
    assert fired or status == 0, status
    left = found(folder, steps)
    again = Steps(Store(folder))
    again.job()
    again.store.close()
    return {"n": n, "fired": fired, "again": again.outcomes, **left}


def older(folder: Path) -> Steps:
    """A store of the first version, and the facts that its clients know."""
    store = Store(folder)
    steps = Steps(store)
    for _ in range(3):
        steps.job()
    store.close()
    with closing(sqlite3.connect(folder / "catalogue.db")) as connection:
        connection.executescript(
            "DROP TABLE idempotency_keys; ALTER TABLE jobs ADD COLUMN idempotency_key TEXT; "
            "ALTER TABLE jobs ADD COLUMN idempotency_hash TEXT; "
            "CREATE UNIQUE INDEX jobs_by_key ON jobs (owner, idempotency_key) "
            "WHERE idempotency_key IS NOT NULL; "
            "DROP TABLE times; DROP INDEX files_of_owner; ALTER TABLE files DROP COLUMN metadata; "
            "DROP TRIGGER job_deleted; DROP TRIGGER job_counted; DROP TRIGGER job_resized; "
            "DROP TRIGGER job_uncounted; DROP TRIGGER file_counted; DROP TRIGGER file_uncounted; "
            "DROP TABLE inputs; DROP TABLE usage; ALTER TABLE jobs DROP COLUMN size_bytes; "
            "PRAGMA user_version = 1"
        )
    steps.outcomes.clear()
    return steps


def ended_at(folder: Path, call: str, n: int) -> bool:
    """Whether a process that only opens the store is killed."""
    child = os.fork()
    if child == 0:
        arm(folder, call, n, 0, 0)
        Store(folder).close()
        os._exit(0)
    status = os.waitpid(child, 0)[1]
    assert os.WIFSIGNALED(status) or status == 0, status
    return os.WIFSIGNALED(status)


def whole(path: Path, steps: Steps) -> int:
    """The version of a job database or its copy if all known facts are in it; otherwise 0."""
    with closing(sqlite3.connect(path)) as connection:
        jobs = {row[0] for row in connection.execute("SELECT id FROM jobs")}
        files = dict(connection.execute("SELECT name, sha256 FROM files"))
        (sound,) = connection.execute("PRAGMA integrity_check").fetchone()
        (version,) = connection.execute("PRAGMA user_version").fetchone()
    complete = jobs >= set(steps.jobs) and files.items() >= steps.files.items()
    return int(version) if complete and sound == "ok" else 0


def killed_with_results(folder: Path, before: Steps, call: str, n: int) -> dict[str, Any]:
    """One n: a start on a store with results is killed, and a new process opens the store."""
    shutil.copytree(folder.parent / "before", folder)
    fired = ended_at(folder, call, n)
    left = found(folder, before)
    places = folder.glob("media/*/*")
    kept = {one.name: hashlib.sha256(one.read_bytes()).hexdigest() for one in places}
    copies = [whole(one, before) for one in folder.glob("catalogue.db.version-*.backup")]
    with closing(sqlite3.connect(folder / "catalogue.db")) as connection:
        (migrated,) = connection.execute("SELECT count(*) FROM later").fetchone()
    again = Steps(Store(folder))
    again.job()
    again.store.close()
    return {"n": n, "fired": fired, "again": again.outcomes, **left, "copies": copies,
            "files": kept == before.files, "migrated": migrated, "known": len(before.jobs),
            "version": whole(folder / "catalogue.db", before)}  # fmt: skip


def main() -> None:
    base, call, error, lasting, at = sys.argv[1:]
    before = Steps(None)
    if at == "older":
        before = older(Path(base) / "before")
        database.MIGRATIONS = (*database.MIGRATIONS, LATER)
    for n in range(1, MAX_ROUNDS):
        folder = Path(base) / str(n)
        if at == "older":
            made = killed_with_results(folder, before, call, n)
        elif error == "SIGKILL":
            made = killed(folder, call, n)
        else:
            number = getattr(errno, error)
            made = once(folder, call, n, number, int(lasting == "lasting"), at)
        print(json.dumps(made), flush=True)
        shutil.rmtree(folder)
        if not made["fired"]:
            return
    raise SystemExit(f"call number {MAX_ROUNDS} still fails")


if __name__ == "__main__":
    main()
