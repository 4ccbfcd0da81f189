"""What callers have called their requests: the same request is the same job for a day."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux import errors
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.database import Database

#: How long a key stands for its request, in seconds.
KEPT_S = 24 * 3600.0


class IdempotencyKeys:
    """The keys of a catalogue, each with the hash of its request and the job of that.

    A key outlives its job: one that was deleted, or was kept for less than a day, is not done once
    more for a caller who asks again. Belongs to the catalogue's thread.

    Args:
        database: The catalogue.
        clock: Seconds since 1970.
    """

    def __init__(self, database: Database, *, clock: Callable[[], float]) -> None:
        self._database = database
        self._clock = clock

    def job_of(self, owner: str, key: str, digest: str) -> str | None:
        """The id of the job of a request that has come before under its key; it may be gone.

        Args:
            owner: Id of the caller's API key.
            key: What the caller calls the request.
            digest: The request's hash, as `job_table.digest_of` gives it.

        Raises:
            ConflictError: Another request has come under that key.
        """
        query = "SELECT * FROM idempotency_keys WHERE owner = ? AND key = ?"
        row = self._database.row(query, (owner, key))
        if row is None:
            return None
        if row["created_at"] + KEPT_S < self._clock():
            self.free(row["job"])
            return None
        if row["hash"] != digest:
            raise status_error(
                errors.ConflictError,
                "another request has come with this Idempotency-Key: give each request its own",
                param="Idempotency-Key",
            )
        return str(row["job"])

    def add(self, owner: str, key: str, digest: str, *, job: str, created_at: float) -> None:
        """Writes down what a job that is new was called; the key must be free."""
        self._database.execute(
            "INSERT INTO idempotency_keys (owner, key, hash, job, created_at) "
            "VALUES (?, ?, ?, ?, ?)",
            (owner, key, digest, job, created_at),
        )

    def free(self, job: str) -> None:
        """Lets the request of a job begin anew under its key: nobody has had its result."""
        self._database.execute("DELETE FROM idempotency_keys WHERE job = ?", (job,))

    def sweep(self, most: int = 500) -> int:
        """Forgets keys whose day is over; gives how many.

        Args:
            most: As many at once, so that others get their turn. Default: 500.
        """
        return self._database.execute(
            "DELETE FROM idempotency_keys WHERE job IN "
            "(SELECT job FROM idempotency_keys WHERE created_at < ? LIMIT ?)",
            (self._clock() - KEPT_S, most),
        )
