"""The job table of the job database."""

from __future__ import annotations

import base64
import hashlib
import json
import logging
import math
import secrets
from dataclasses import dataclass, field, fields
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.client.methods.results import RESULTS
from polymux.service.errors import described, status_error
from polymux.service.model import Upload

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Mapping

    from polymux.service.database import Database
    from polymux.service.model import OperationRequest
    from polymux.service.usage import Usage


_log = logging.getLogger("polymux.service")
STARTING, PROCESSING = "starting", "processing"
SUCCEEDED, FAILED, CANCELED = "succeeded", "failed", "canceled"
ENDS = (SUCCEEDED, FAILED, CANCELED)
#: Error of a job whose process ended.
INTERRUPTED = {
    "status": 500,
    "code": "interrupted",
    "message": "the server was stopped while the job was running. Try again",
    "param": None,
    "retry_after": None,
}
#: The job was canceled by another client: neither the waiting client nor a server has failed.
CANCELED_BY_ANOTHER = {
    "status": 409,
    "code": "canceled",
    "message": "the job was canceled",
}
#: Error of a job whose row in the database cannot be read.
_DAMAGED = INTERRUPTED | {
    "code": "internal",
    "message": "the record of this job is damaged. Delete the job, and run it again",
}
#: Jobs with their idempotency keys, and with shortened or whole inputs.
_KEYS = "FROM jobs LEFT JOIN idempotency_keys AS keys ON keys.job = jobs.id"
_COLUMNS_OF_KEYS = "keys.key AS idempotency_key, keys.hash AS idempotency_hash"
_JOBS = f"SELECT jobs.*, {_COLUMNS_OF_KEYS} {_KEYS}"
_WHOLE_JOBS = (
    f"SELECT jobs.*, {_COLUMNS_OF_KEYS}, inputs.input AS input {_KEYS} "
    "LEFT JOIN inputs ON inputs.job = jobs.id"
)
#: Maximum characters of all texts of a shortened input, and of each.
_MAX_BRIEF_CHARACTERS, _MAX_BRIEF_TEXT_CHARACTERS = 10_000, 2_000


@dataclass(slots=True)
class Job:
    """The current or final state of a job.

    Attributes:
        id: 26 letters and digits, 130 random bits.
        owner: Id of the API key that created it.
        operation: Such as ``"transcribe"``.
        model: The model selector, or the operation.
        version: SHA-256 of the model's file, or a word.
        status: ``starting``, ``processing``, ``succeeded``, ``failed`` or ``canceled``.
        input: The request with defaults, or as sent to a compatibility API; files by their names.
            In lists shortened.
        output: The result with files as ``{"file": NAME}``; None before the end.
        error: As returned by `errors.described`; None unless it failed. ``input`` has the details
            of an error of the input file.
        logs: Progress messages and warnings.
        warnings: Those of `logs` that say what was ignored, limited or not satisfied.
        engine_model: Name of the model that does the work; empty if unknown.
        metrics: Numbers by name, ``predict_time`` and ``total_time`` in seconds.
        progress: From 0 to 1; None if unknown.
        created_at: Seconds since 1970, as are the next two, which are None at first.
        idempotency: The client's idempotency key and the hash of the request; None without one,
            and after the key was freed.
        asked: Other members of a compatibility API's request; None for the polymux API.
        preview: A small image of the unfinished result, as a ``data:`` URL; never stored.
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
    warnings: list[str] = field(default_factory=list)
    engine_model: str = ""

    @property
    def failure(self) -> dict[str, Any]:
        """The error for clients that waited for success, as returned by `errors.described`."""
        return self.error or CANCELED_BY_ANOTHER

    @property
    def ended(self) -> bool:
        return self.status in ENDS


def new_id() -> str:
    """Create an unguessable job id."""
    return base64.b32encode(secrets.token_bytes(17)).decode().lower()[:26]


def moment(seconds: float | None) -> str | None:
    """Format a time as RFC 3339, in UTC."""
    if seconds is None:
        return None
    return datetime.fromtimestamp(seconds, UTC).isoformat(timespec="milliseconds")[:-6] + "Z"


#: Lifetime of an idempotency key in seconds.
_KEY_LIFE_S = 24 * 3600.0


class JobTable:
    """The jobs of a database and their idempotency keys. Belongs to the database thread.

    A key outlives its job. If the job was deleted or had a retention below a day, the same request
    does not run again.

    Args:
        life_s: Retention of ended jobs in seconds.
        clock: Returns seconds since 1970.
    """

    def __init__(
        self, database: Database, usage: Usage, *, life_s: float, clock: Callable[[], float]
    ) -> None:
        self._database = database
        self._usage = usage
        self._life_s = life_s
        self._clock = clock
        with database.transaction():
            for row in database.rows(f"{_JOBS} WHERE jobs.completed_at IS NULL"):
                job = _job(row)
                job.status, job.error, job.completed_at = FAILED, dict(INTERRUPTED), clock()
                job.idempotency = None
                self.update(job)

    def add(self, job: Job) -> Job:
        """Insert a new job.

        Returns:
            The job, or the existing job of the same request with the same idempotency key.

        Raises:
            InternalServerError: The store is full, or the API key's part of it (code
                ``storage_full``).
            ConflictError: Another request has used this key.
            NotFoundError: The job of this request and key no longer exists (code ``gone``).
        """
        given, record = _plain(job.input), _record(job)
        size_bytes = len(record) + len(given)
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
            self._usage.check_job(job.owner, size_bytes)
            self._database.execute(
                "INSERT INTO jobs (id, owner, operation, status, record, created_at, completed_at, "
                "size_bytes) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    job.id,
                    job.owner,
                    job.operation,
                    job.status,
                    record,
                    job.created_at,
                    job.completed_at,
                    size_bytes,
                ),
            )
            self._database.execute("INSERT INTO inputs VALUES (?, ?)", (job.id, given))
        self._usage.refresh()
        return job

    def of_key(self, owner: str, key: str, digest: str) -> Job | None:
        """Find the job of an earlier request with this idempotency key.

        Raises:
            ConflictError: Another request has used this key.
            NotFoundError: The job of this request and key no longer exists (code ``gone``).
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
                "Idempotency-Key: already used for a different request. Use a new key for each "
                "request",
                param="Idempotency-Key",
            )
        job = self.find(row["job"])
        if job is None:
            raise status_error(
                errors.NotFoundError,
                "Idempotency-Key: already used, and the job of that request was deleted or has "
                "expired. Use a new key to run the request again",
                code="gone",
                param="Idempotency-Key",
            )
        return job

    def update(self, job: Job) -> None:
        """Store the job's state; frees the idempotency key of a job that ended without one."""
        record = _record(job)
        with self._database.transaction():
            self._database.execute(
                "UPDATE jobs SET status = ?, record = ?, completed_at = ?, "
                "size_bytes = size_bytes - length(record) + ? WHERE id = ?",
                (job.status, record, job.completed_at, len(record), job.id),
            )
            if job.ended and job.idempotency is None:
                self._free_key(job.id)
        self._usage.refresh()

    def _free_key(self, job: str) -> None:
        """Free the key of a job whose result no client has received: it may run again."""
        self._database.execute("DELETE FROM idempotency_keys WHERE job = ?", (job,))

    def find(self, name: str) -> Job | None:
        row = self._database.row(f"{_WHOLE_JOBS} WHERE jobs.id = ?", (name,))
        return None if row is None else _job(row)

    def newest(self, owner: str, *, before: int | None, most: int) -> tuple[list[Job], int | None]:
        """Return jobs of an API key with shortened inputs, newest first.

        Args:
            owner: Id of the API key.
            before: Cursor of the page; None for the first page.
            most: Maximum number of jobs.

        Returns:
            The jobs, and the cursor of the next page or None.
        """
        query = f"{_JOBS} WHERE jobs.owner = ? AND number < ? ORDER BY number DESC LIMIT ?"
        rows = self._database.rows(query, (owner, before or 1 << 62, most + 1))
        more = len(rows) > most
        rows = rows[:most]
        return [_job(row) for row in rows], int(rows[-1]["number"]) if more else None

    def newer(self, owner: str, *, after: int, most: int) -> list[Job]:
        """Return the jobs of an API key created right after another job, like `newest`.

        Args:
            owner: Id of the API key.
            after: Number of the other job, from `place_of`.
            most: Maximum number of jobs.
        """
        query = f"{_JOBS} WHERE jobs.owner = ? AND number > ? ORDER BY number LIMIT ?"
        return [_job(row) for row in self._database.rows(query, (owner, after, most))][::-1]

    def place_of(self, job: Job) -> int:
        """Return the sequence number of a job; 0 if it no longer exists."""
        row = self._database.row("SELECT number FROM jobs WHERE id = ?", (job.id,))
        return 0 if row is None else int(row["number"])

    def remove(self, *names: str) -> None:
        """Delete jobs; their idempotency keys stay for their lifetime."""
        with self._database.transaction():
            for name in names:
                self._database.execute("DELETE FROM jobs WHERE id = ?", (name,))
        self._usage.refresh()

    def withdraw(self, job: Job) -> None:
        """Delete a job that no client has received, with its idempotency key."""
        with self._database.transaction():
            job.idempotency = None
            self._free_key(job.id)
            self.remove(job.id)

    def sweep_keys(self, most: int = 500) -> int:
        """Delete some expired idempotency keys; returns the number."""
        return self._database.execute(
            "DELETE FROM idempotency_keys WHERE job IN "
            "(SELECT job FROM idempotency_keys WHERE created_at < ? LIMIT ?)",
            (self._clock() - _KEY_LIFE_S, most),
        )

    def expired(self, most: int = 500) -> list[str]:
        """Return ids of jobs past their retention, except jobs whose files never expire.

        A `Local` with the same folder creates such files.
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
    kept_apart = (*_COLUMNS, "preview", "input")
    plain = {one.name: getattr(job, one.name) for one in fields(job) if one.name not in kept_apart}
    return _plain(plain | {"input": brief(job.input)})


def _plain(value: dict[str, Any]) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False)


def _job(row: sqlite3.Row) -> Job:
    key = row["idempotency_key"]
    columns = {name: row[name] for name in _COLUMNS if name != "idempotency"}
    columns["idempotency"] = None if key is None else (key, row["idempotency_hash"])
    try:
        record = json.loads(row["record"])
        if "input" in row.keys() and row["input"] is not None:  # noqa: SIM118 - not a mapping
            record["input"] = json.loads(row["input"])
        return Job(**columns, **record)
    except (ValueError, TypeError, RecursionError):
        _log.error("job %s: its record in the database is damaged", row["id"])
        operation, now = row["operation"], row["completed_at"] or row["created_at"]
        columns |= {"status": FAILED, "error": dict(_DAMAGED), "completed_at": now}
        return Job(**columns, model=operation, version="hidden", input={})


def brief(value: Any) -> Any:
    """Shorten an input for a list of jobs: a hundred may have a megabyte each.

    Example:
        >>> brief({"prompt": "word " * 1000})["prompt"][-8:]
        'd word …'
    """
    return _brief(value, [_MAX_BRIEF_CHARACTERS])


def _brief(value: Any, left: list[int]) -> Any:
    left[0] -= 10
    if isinstance(value, str):
        longest = max(0, min(left[0], _MAX_BRIEF_TEXT_CHARACTERS))
        left[0] -= len(value[:longest])
        return value if len(value) <= longest else f"{value[:longest]}…"
    if isinstance(value, list):
        return [_brief(one, left) for one in value if left[0] > 0]
    if isinstance(value, dict):
        return {str(name)[:100]: _brief(one, left) for name, one in value.items() if left[0] > 0}
    return value


def failed(job: Job, error: BaseException, now: float) -> None:
    """Set the end state of a failed job."""
    job.status, job.error, job.completed_at = FAILED, described(error), now
    if (
        isinstance(error, (errors.InputError, errors.MediaError))
        and job.error["code"] != "internal"
    ):
        job.error["input"] = error.to_dict()


def digest_of(work: OperationRequest) -> str:
    """Return the hash that identifies equal requests: operation, model and all given fields.

    Includes names and contents of files; the names matter because results are named after them.
    Blocks while it reads files.
    """
    model = work.engine_model or work.model
    fields: dict[str, Any] = {"operation": work.operation, "model": model}
    if work.asked is not None:
        fields["asked"] = work.asked
    return hash_of_fields(fields | {name: work.values[name] for name in work.given})


def hash_of_fields(fields: Mapping[str, Any]) -> str:
    """Return the hash of a request's fields, with names and contents of its files. Blocks."""
    plain = dict(fields)
    for name, value in fields.items():
        if isinstance(value, Upload):
            with value.path.open("rb") as file:
                content = hashlib.file_digest(file, "sha256").hexdigest()
            plain[name] = [value.file_name, content]
    return hashlib.sha256(json.dumps(plain, sort_keys=True, default=str).encode()).hexdigest()


#: Result types whose only URL or text is the prediction's output.
_PLAIN = ("MediaFile", "TextResponse")
#: Members omitted when empty.
_OPTIONAL = (
    "engine_model", "output", "report", "error", "error_code", "warnings", "urls", "started_at",
    "completed_at", "progress",
)  # fmt: skip


def prediction(
    job: Job, address_of: Callable[[str], str | None], urls: dict[str, str] | None = None
) -> dict[str, Any]:
    """Return a job as a prediction object for JSON."""
    output: Any = job.output
    report = None
    if RESULTS[job.operation] in _PLAIN and isinstance(output, dict):
        output, report = output.get("response"), output.get("report")
    plain: dict[str, Any] = {
        "id": job.id,
        "status": job.status,
        "model": job.model,
        "engine_model": job.engine_model or None,
        "version": job.version,
        "input": job.input,
        "output": linked(output, address_of),
        "report": report,
        "source": "api",
        "error": None if job.error is None else job.error["message"],
        "error_code": None if job.error is None else job.error["code"],
        "logs": "\n".join(job.logs),
        "warnings": job.warnings or None,
        "metrics": job.metrics,
        "urls": urls,
        "created_at": moment(job.created_at),
        "started_at": moment(job.started_at),
        "completed_at": moment(job.completed_at),
        "progress": None if job.progress is None else round(job.progress, 4),
    }
    return {name: one for name, one in plain.items() if one is not None or name not in _OPTIONAL}


def linked(value: Any, address_of: Callable[[str], str | None]) -> Any:
    """Replace the files of an output by their URLs."""
    if isinstance(value, list):
        return [linked(one, address_of) for one in value]
    if not isinstance(value, dict):
        return value
    if value.keys() == {"file"}:
        return address_of(value["file"])
    return {name: linked(one, address_of) for name, one in value.items()}
