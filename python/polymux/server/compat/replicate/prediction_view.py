"""A job as a prediction of Replicate's interface."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux.server.compat.replicate.errors import BASE
from polymux.server.compat.replicate.models import of_job
from polymux.server.routes.predictions import link
from polymux.service import job_table
from polymux.service.job_table import STARTING

if TYPE_CHECKING:
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job


def prediction_of(state: ServerState, job: Job, *, unfinished: bool = False) -> dict[str, Any]:
    """A job as JSON.

    Args:
        state: The server's.
        job: The job, of this door or of another.
        unfinished: Whether somebody waited for it in vain. Packages take every status but
            ``starting`` for the end then, so it has that. Default: False.
    """
    asked = job.asked or {}
    plain = job_table.prediction(job, lambda name: link(state, job, name))
    model = of_job(job) if not asked else None
    address = f"{state.settings.base_url}{BASE}/predictions/{job.id}"
    urls = {"get": address, "cancel": f"{address}/cancel"}
    if asked.get("stream") or (model is not None and model.iterates):
        urls["stream"] = f"{address}/stream"
    described = {
        "id": job.id,
        "model": model.full_name if model is not None else asked["model"],
        "version": model.version if model is not None else asked["version"],
        "input": asked.get("input", job.input),
        "output": plain.get("output"),
        "logs": plain["logs"],
        "error": plain.get("error"),
        "status": STARTING if unfinished else job.status,
        "source": "api",
        "data_removed": False,
        "created_at": plain["created_at"],
        "started_at": plain.get("started_at"),
        "completed_at": plain.get("completed_at"),
        "metrics": plain["metrics"],
        "urls": urls,
    }
    hooks = ("webhook", "webhook_events_filter")
    return described | {name: asked[name] for name in hooks if name in asked}
