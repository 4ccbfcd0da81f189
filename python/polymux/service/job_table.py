"""Jobs as the catalogue keeps them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import secrets
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.client.methods.results import RESULTS
from polymux.service.errors import described, status_error
from polymux.service.model import Upload

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable

    from polymux.service.database import Database
    from polymux.service.model import OperationRequest


STARTING, PROCESSING = "starting", "processing"
SUCCEEDED, FAILED, CANCELED = "succeeded", "failed", "canceled"
ENDS = (SUCCEEDED, FAILED, CANCELED)
#: What a job says that a process took with it.
INTERRUPTED = {
    "status": 500,
    "code": "interrupted",
    "message": "the server was stopped while this ran; ask again",
    "param": None,
    "retry_after": None,
}
#: Somebody else has ended it: who waits has asked for nothing wrong, and no server has failed.
CANCELED_BY_ANOTHER = {
    "status": 409,
    "code": "canceled",
    "message": "the prediction was canceled",
}
#: Jobs with what their callers have called them.
_JOBS = """
    SELECT jobs.*, keys.key AS idempotency_key, keys.hash AS idempotency_hash
    FROM jobs LEFT JOIN idempotency_keys AS keys ON keys.job = jobs.id
"""


@dataclass(slots=True)
class Job:
    """A job, as it is or as it ended.

    Attributes:
        id: 26 letters and digits, 130 random bits.
        owner: Id of the key that asked for it.
        operation: Such as ``"transcribe"``.
        model: The model selector, or what stands for it.
        version: SHA-256 of the model's file, or a word.
        status: ``starting``, ``processing``, ``succeeded``, ``failed`` or ``canceled``.
        input: What was asked for, defaults filled in, files by their names.
        output: What was made, files as ``{"file": NAME}``; None before.
        error: As `errors.described` tells it; None unless it failed.
        logs: Lines that say how it went.
        metrics: Numbers by name, ``predict_time`` and ``total_time`` in seconds.
        progress: From 0 to 1; None where nobody knows.
        created_at: Seconds since 1970; so are the next two, None before.
        idempotency: The caller's key and the hash of what it asked for; None where it gave none,
            and where the same request may begin anew.
        asked: What a door keeps of the request in its own words; None for nothing.
        preview: A small picture of what is being made, as a ``data:`` URL; never written down.
    """

    id: str
    owner: str
    operation: str
    model: str
    version: str
    input: dict[str, Any]
    created_at: float
    status: str = STARTING
    output: Any = None
    error: dict[str, Any] | None = None
    logs: list[str] = field(default_factory=list)
    metrics: dict[str, float] = field(default_factory=dict)
    progress: float | None = None
    started_at: float | None = None
    completed_at: float | None = None
    idempotency: tuple[str, str] | None = None
    asked: dict[str, Any] | None = None
    preview: str | None = None

    @property
    def failure(self) -> dict[str, Any]:
        """What a caller is told who has waited for its success, as `errors.described` has it."""
        return self.error or CANCELED_BY_ANOTHER

    @property
    def ended(self) -> bool:
        return self.status in ENDS


def new_id() -> str:
    """A name for a job that nobody can guess."""
    return base64.b32encode(secrets.token_bytes(17)).decode().lower()[:26]


def moment(seconds: float | None) -> str | None:
    """A time as RFC 3339 has it, in UTC."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


#: How long an idempotency key stands for its request, in seconds.
_KEY_LIFE_S = 24 * 3600.0


class JobTable:
    """The jobs of a catalogue, and their idempotency keys. Belongs to the catalogue's thread.

    A key outlives its job: one that was deleted, or was kept for less than a day, is not done once
    more for a caller who asks again.

    Args:
        database: The catalogue.
        life_s: How long a job that has ended is kept.
        clock: Seconds since 1970.
    """

    def __init__(self, database: Database, *, life_s: float, clock: Callable[[], float]) -> None:
        self._database = database
        self._life_s = life_s
        self._clock = clock
        with database.transaction():
            for row in database.rows(f"{_JOBS} WHERE jobs.completed_at IS NULL"):
                job = _job(row)
                job.status, job.error, job.completed_at = FAILED, dict(INTERRUPTED), clock()
                job.idempotency = None
                self.update(job)

    def add(self, job: Job) -> Job:
        """Writes a new job down.

        Returns:
            The job; where the same request has come before under the same idempotency key, the
            job that was made then.

        Raises:
            ConflictError: Another request has come under that key.
            NotFoundError: The same has, and its job is gone (code ``gone``).
        """
        with self._database.transaction():
            if job.idempotency is not None:
                known = self.of_key(job.owner, *job.idempotency)
                if known is not None:
                    return known
                self._database.execute(
                    "INSERT INTO idempotency_keys (owner, key, hash, job, created_at) "
                    "VALUES (?, ?, ?, ?, ?)",
                    (job.owner, *job.idempotency, job.id, job.created_at),
                )
            self._database.execute(
                "INSERT INTO jobs (id, owner, operation, status, record, created_at, completed_at) "
                "VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    job.id,
                    job.owner,
                    job.operation,
                    job.status,
                    _record(job),
                    job.created_at,
                    job.completed_at,
                ),
            )
        return job

    def of_key(self, owner: str, key: str, digest: str) -> Job | None:
        """The job of a request that has come before under its key.

        Raises:
            ConflictError: Another request has come under that key.
            NotFoundError: The same has, and its job is gone (code ``gone``).
        """
        query = "SELECT * FROM idempotency_keys WHERE owner = ? AND key = ?"
        row = self._database.row(query, (owner, key))
        if row is None:
            return None
        if row["created_at"] + _KEY_LIFE_S < self._clock():
            self._free_key(row["job"])
            return None
        if row["hash"] != digest:
            raise status_error(
                errors.ConflictError,
                "another request has come with this Idempotency-Key: give each request its own",
                param="Idempotency-Key",
            )
        job = self.find(row["job"])
        if job is None:
            raise status_error(
                errors.NotFoundError,
                "this request has come before with this Idempotency-Key, and its prediction was "
                "deleted or has expired: give it another key to have it done again",
                code="gone",
                param="Idempotency-Key",
            )
        return job

    def update(self, job: Job) -> None:
        """Writes down how it is now; the key of one that has ended without it is free."""
        with self._database.transaction():
            self._database.execute(
                "UPDATE jobs SET status = ?, record = ?, completed_at = ? WHERE id = ?",
                (job.status, _record(job), job.completed_at, job.id),
            )
            if job.ended and job.idempotency is None:
                self._free_key(job.id)

    def _free_key(self, job: str) -> None:
        """Lets the request of a job begin anew under its key: nobody has had its result."""
        self._database.execute("DELETE FROM idempotency_keys WHERE job = ?", (job,))

    def find(self, name: str) -> Job | None:
        row = self._database.row(f"{_JOBS} WHERE jobs.id = ?", (name,))
        return None if row is None else _job(row)

    def newest(self, owner: str, *, before: int | None, most: int) -> tuple[list[Job], int | None]:
        """Jobs of a key, newest first.

        Args:
            owner: The key's id.
            before: Where the page before ended; None begins with the newest.
            most: As many at once.

        Returns:
            The jobs, and where the next page begins; None where there is none.
        """
        query = f"{_JOBS} WHERE jobs.owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
        rows = self._database.rows(query, (owner, before or 1 << 62, most + 1))
        more = len(rows) > most
        rows = rows[:most]
        return [_job(row) for row in rows], int(rows[-1]["number"]) if more else None

    def newer(self, owner: str, *, after: int, most: int) -> list[Job]:
        """Jobs of a key that began behind another, those that are closest to it, newest first.

        Args:
            owner: The key's id.
            after: The other's place, as `place_of` gives it.
            most: As many at once.
        """
        query = f"{_JOBS} WHERE jobs.owner = ? AND number > ? ORDER BY number LIMIT ?"
        return [_job(row) for row in self._database.rows(query, (owner, after, most))][::-1]

    def place_of(self, job: Job) -> int:
        """Where a job stands among all; 0 where it is gone."""
        row = self._database.row("SELECT number FROM jobs WHERE id = ?", (job.id,))
        return 0 if row is None else int(row["number"])

    def remove(self, *names: str) -> None:
        """Forgets jobs; what their callers have called them stays known for its day."""
        with self._database.transaction():
            for name in names:
                self._database.execute("DELETE FROM jobs WHERE id = ?", (name,))

    def withdraw(self, job: Job) -> None:
        """Forgets a job that nobody was told of: as if it had not been asked for."""
        with self._database.transaction():
            job.idempotency = None
            self._free_key(job.id)
            self.remove(job.id)

    def sweep_keys(self, most: int = 500) -> int:
        """Forgets keys of idempotency whose day is over, some at once; gives how many."""
        return self._database.execute(
            "DELETE FROM idempotency_keys WHERE job IN "
            "(SELECT job FROM idempotency_keys WHERE created_at < ? LIMIT ?)",
            (self._clock() - _KEY_LIFE_S, most),
        )

    def expired(self, most: int = 500) -> list[str]:
        """Ids of jobs that ended longer ago than they are kept; not those whose files have no end.

        A `Local` in the same folder has made these.
        """
        query = (
            "SELECT id FROM jobs WHERE completed_at <= ? AND NOT EXISTS "
            "(SELECT 1 FROM files WHERE files.job = jobs.id AND files.expires_at = ?) "
            "ORDER BY completed_at LIMIT ?"
        )
        rows = self._database.rows(query, (self._clock() - self._life_s, math.inf, most))
        return [str(row["id"]) for row in rows]


_COLUMNS = ("id", "owner", "operation", "status", "created_at", "completed_at", "idempotency")


def _record(job: Job) -> str:
    kept_apart = (*_COLUMNS, "preview")
    plain = {name: value for name, value in asdict(job).items() if name not in kept_apart}
    return json.dumps(plain, ensure_ascii=True, allow_nan=False)


def _job(row: sqlite3.Row) -> Job:
    key = row["idempotency_key"]
    columns = {name: row[name] for name in _COLUMNS if name != "idempotency"}
    idempotency = None if key is None else (key, row["idempotency_hash"])
    return Job(**columns, **json.loads(row["record"]), idempotency=idempotency)


def failed(job: Job, error: BaseException, now: float) -> None:
    """Ends a job by what went wrong."""
    job.status, job.error, job.completed_at = FAILED, described(error), now


def digest_of(work: OperationRequest) -> str:
    """What makes two requests the same: operation, model and all that was given.

    Of files their names, as results are named by them, and what is in them.

    Blocks while files are read.
    """
    digest = hashlib.sha256()
    plain: dict[str, Any] = {"operation": work.operation, "model": work.model}
    if work.asked is not None:
        plain["asked"] = work.asked
    for name in sorted(work.given):
        value = work.values[name]
        if isinstance(value, Upload):
            with value.path.open("rb") as file:
                value = [value.file_name, hashlib.file_digest(file, "sha256").hexdigest()]
        plain[name] = value
    digest.update(json.dumps(plain, sort_keys=True, default=str).encode())
    return digest.hexdigest()


#: Operations whose answer is one address or text, which is the prediction's output.
_PLAIN = ("MediaFile", "TextResponse")
#: Left out where there is nothing to tell.
_OPTIONAL = (
    "output", "report", "error", "error_code", "urls", "started_at", "completed_at", "progress"
)  # fmt: skip


def prediction(
    job: Job, address_of: Callable[[str], str | None], urls: dict[str, str] | None = None
) -> dict[str, Any]:
    """A job as JSON."""
    output: Any = job.output
    report = None
    if RESULTS[job.operation] in _PLAIN and isinstance(output, dict):
        output, report = output.get("response"), output.get("report")
    plain: dict[str, Any] = {
        "id": job.id,
        "status": job.status,
        "model": job.model,
        "version": job.version,
        "input": job.input,
        "output": linked(output, address_of),
        "report": report,
        "source": "api",
        "error": None if job.error is None else job.error["message"],
        "error_code": None if job.error is None else job.error["code"],
        "logs": "\n".join(job.logs),
        "metrics": job.metrics,
        "urls": urls,
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "completed_at": moment(job.completed_at),
        "progress": None if job.progress is None else round(job.progress, 4),
    }
    return {name: one for name, one in plain.items() if one is not None or name not in _OPTIONAL}


def linked(value: Any, address_of: Callable[[str], str | None]) -> Any:
    """An output with addresses in the place of the store's files."""
    if isinstance(value, list):
        return [linked(one, address_of) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"file"}:
        return address_of(value["file"])
    return {name: linked(one, address_of) for name, one in value.items()}
