"""What a job is to the outside: the interface's prediction."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.client.methods.results import RESULTS
from polymux.service.job_table import moment

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.service.job_table import Job

#: Operations whose answer is one address or text, which is the prediction's output.
_PLAIN = ("MediaFile", "TextResponse")
#: Left out where there is nothing to tell.
_OPTIONAL = (
    "output", "report", "error", "error_code", "urls", "started_at", "completed_at", "progress"
)  # fmt: skip


def prediction(
    job: Job, address_of: Callable[[str], str | None], urls: dict[str, str] | None = None
) -> dict[str, Any]:
    """A job as JSON.

    Args:
        job: The job.
        address_of: The address of a file of the store, by its name.
        urls: Where it is looked at, cancelled and watched. Default: nowhere.
    """
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
