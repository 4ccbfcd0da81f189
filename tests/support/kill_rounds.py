"""A server killed with SIGKILL at random moments under load, and checks after its restart."""

from __future__ import annotations

import hashlib
import http.client
import json
import random
import sqlite3
import threading
import time
from contextlib import closing
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from support.serve_command import ServeCommand
from support.server_process import until
from support.wav_files import wave_file

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

JOBS = "/api/v1/predictions"
ENDED_S = 2.0
BROKEN = (OSError, http.client.HTTPException)
#: The files that a store may hold beside the folders of its media.
NAMES = {
    "catalogue.db",
    "catalogue.db-journal",
    "keys.json",
    "keys.json.lock",
    "link-secrets",
    "lock",
}


@dataclass
class Ledger:
    """The facts that clients know. Any thread may use it under its lock."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    #: Job id to the number of its input and its idempotency key.
    jobs: dict[str, tuple[int, str]] = field(default_factory=dict)
    #: Jobs whose result was sent.
    succeeded: set[str] = field(default_factory=set)
    #: Link to the number of the input.
    links: dict[str, int] = field(default_factory=dict)
    removing: set[str] = field(default_factory=set)
    removed: set[str] = field(default_factory=set)
    #: Idempotency keys of sent requests that may not have been answered.
    sent: dict[str, int] = field(default_factory=dict)


class KillRounds:
    """One store, used by one server after another."""

    def __init__(self, folder: Path, seed: int) -> None:
        import polymux

        self.random = random.Random(seed)
        self.inputs = [sound(0.1 + 0.1 * n, n) for n in range(6)]
        self.expected = [
            hashlib.sha256(polymux.convert_to_mp3(one).read()).hexdigest() for one in self.inputs
        ]
        self.program = ServeCommand(folder)
        self.known = Ledger()
        self.over = threading.Event()
        self.failures: list[BaseException] = []

    def run(self, rounds: int) -> None:
        with self.program:
            for number in range(rounds):
                self.round(number)
            self.start()
            assert self.program.stop() == 0, self.program.log_text
            self.check_gone()

    def start(self) -> None:
        """Start a server on the existing store, and check the store."""
        self.program.start()
        assert self.program.readiness()["status"] == "ready"
        self.check_store()
        self.check_jobs()
        for path, one in list(self.known.links.items())[-20:]:
            self.check_file(path, one)
        self.check_repeated()
        self.known.sent.clear()

    def round(self, number: int) -> None:
        self.start()
        self.over.clear()
        workers = [threading.Thread(target=self.until_broken, args=(one, self.random.random()))
                   for one in (self.submit, self.submit, self.wait, self.look)]  # fmt: skip
        for one in workers:
            one.start()
        if number == 1:  # Even on a slow machine some jobs must succeed before the end.
            until(lambda: self.known.succeeded or self.failures, 60)
        time.sleep(self.random.uniform(0.0, 1.5) if number % 4 else self.random.uniform(0.0, 0.1))
        self.program.kill()
        self.over.set()
        self.check_gone()
        for one in workers:
            one.join(60)
            assert not one.is_alive(), "a client still waits for the killed server"
        if self.failures:
            raise self.failures[0]

    def until_broken(self, work: Callable[[random.Random], None], seed: float) -> None:
        """Run one client until the server is gone."""
        own = random.Random(seed)
        try:
            while not self.over.is_set():
                work(own)
        except BROKEN as error:
            if not self.over.is_set() and self.program.process.poll() is None:
                # The server's death may be noticed a moment later.
                time.sleep(0.5)
                if not self.over.is_set():
                    self.failures.append(error)
        except BaseException as error:
            self.failures.append(error)

    def submit(self, own: random.Random) -> None:
        """Submit a job and do not wait for it."""
        number, key = own.randrange(len(self.inputs)), f"key-{own.getrandbits(64):x}"
        self.ask(number, key)
        time.sleep(own.uniform(0.02, 0.12))

    def ask(self, number: int, key: str) -> Any:
        """Send a request with an idempotency key, and record the answer."""
        with self.known.lock:
            self.known.sent[key] = number
        answer = self.program.convert(
            self.inputs[number], ("Prefer", "respond-async"), ("Idempotency-Key", key)
        )
        if answer.status == 503:
            assert answer.json()["code"] == "overloaded", answer.body
            with self.known.lock:
                del self.known.sent[key]
            time.sleep(0.1)
            return None
        assert answer.status in (200, 202), (answer.status, answer.body)
        if answer.status == 200:
            return answer.json()  # It had ended before the request was repeated.
        job = answer.json()
        with self.known.lock:
            self.known.jobs[job["id"]] = number, key
            self.known.sent.pop(key, None)
        return job

    def wait(self, own: random.Random) -> None:
        number = own.randrange(len(self.inputs))
        answer = self.program.convert(self.inputs[number])
        if answer.status == 503:
            time.sleep(0.1)
            return
        assert answer.status == 200, (answer.status, answer.body)
        with self.known.lock:
            self.known.links[path_of(answer.json()["response"])] = number

    def look(self, own: random.Random) -> None:
        """Look at jobs, and sometimes delete one."""
        with self.known.lock:
            ids = list(self.known.jobs.keys() - self.known.removing)
        if not ids:
            time.sleep(0.02)
            return
        job = own.choice(ids)
        answer = self.program.request("GET", f"{JOBS}/{job}")
        assert answer.status == 200, (job, answer.status, answer.body)
        if answer.json()["status"] == "succeeded":
            with self.known.lock:
                self.known.succeeded.add(job)
        if own.random() < 0.1:
            with self.known.lock:
                self.known.removing.add(job)
            assert self.program.request("DELETE", f"{JOBS}/{job}").status == 204
            with self.known.lock:
                self.known.removed.add(job)

    def check_gone(self) -> None:
        until(lambda: not self.program.family(), ENDED_S)

    def check_store(self) -> None:
        """Check that the job database is sound and agrees with the files."""
        folder = self.program.store
        assert {one.name for one in folder.iterdir() if one.is_file()} <= NAMES
        assert {one.name for one in folder.iterdir() if one.is_dir()} <= {"media", "drafts"}
        assert list((folder / "drafts").iterdir()) == []
        assert list(self.program.temporary.iterdir()) == []
        with closing(sqlite3.connect(f"file:{folder}/catalogue.db?mode=ro", uri=True)) as database:
            assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            jobs = dict(database.execute("SELECT id, status FROM jobs").fetchall())
            rows = database.execute("SELECT name, job, sha256 FROM files").fetchall()
            records = database.execute("SELECT id, record FROM jobs").fetchall()
        assert set(jobs.values()) <= {"succeeded", "failed", "canceled"}
        files = {one.name: one for one in (folder / "media").glob("*/*")}
        assert files.keys() == {name for name, _, _ in rows}
        for name, job, sha256 in rows:
            assert jobs[job] == "succeeded", f"a file of a job that is {jobs[job]}"
            assert hashlib.sha256(files[name].read_bytes()).hexdigest() == sha256
        named = {json.loads(record)["output"]["response"]["file"] for job, record in records
                 if jobs[job] == "succeeded"}  # fmt: skip
        assert named == files.keys()

    def check_jobs(self) -> None:
        """Check that acknowledged jobs still exist, with their file or as interrupted."""
        known = self.known
        some = list(known.jobs)
        for job in {*some[-60:], *self.random.sample(some, min(40, len(some)))}:
            answer = self.program.request("GET", f"{JOBS}/{job}")
            if job in known.removing:
                assert answer.status == (404 if job in known.removed else answer.status)
                if answer.status == 404:
                    continue
            assert answer.status == 200, (job, answer.status, answer.body)
            found = answer.json()
            if found["status"] == "succeeded":
                self.check_file(path_of(found["output"]), known.jobs[job][0])
            elif found["status"] == "canceled":
                assert job in known.removing
            else:
                assert found["status"] == "failed", found
                assert found["error_code"] == "interrupted", found
                assert job not in known.succeeded, f"{job} lost its result"

    def check_file(self, path: str, number: int) -> None:
        answer = self.program.request("GET", path)
        assert answer.status == 200, (path, answer.status)
        assert hashlib.sha256(answer.body).hexdigest() == self.expected[number]

    def check_repeated(self) -> None:
        """Repeat a request: it returns the same job, or a new one if the first was interrupted."""
        known = self.known
        for job in [one for one in list(known.jobs)[-4:] if one not in known.removing]:
            number, key = known.jobs[job]
            before = self.program.request("GET", f"{JOBS}/{job}").json()
            again = self.ask(number, key)
            if again is None:
                continue
            if before["status"] == "succeeded":
                assert (
                    path_of(again["response"]).partition("?")[0]
                    == path_of(before["output"]).partition("?")[0]
                )
            elif before["status"] == "failed":
                assert again.get("id") != job  # A job that has already ended has no id here.
        for key, number in list(known.sent.items())[-3:]:
            self.ask(number, key)


def sound(seconds: float, seed: int) -> bytes:
    return wave_file(random.Random(seed).randbytes(2 * round(seconds * 44_100)), 44_100)


def path_of(link: str) -> str:
    """A link without the server's URL, which changes."""
    parts = urlsplit(link)
    return f"{parts.path}?{parts.query}"
