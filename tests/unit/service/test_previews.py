"""Previews: small pictures of what is being made, told while it is made, and never kept."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.service.job_table import Job, _job, _record
from polymux.service.model import LARGEST_PREVIEW_BYTES, ProgressSink

if TYPE_CHECKING:
    from polymux.service.temporary_files import TempFile

JPEG = b"\xff\xd8\xff\xe0 a picture"


def no_draft(_: int) -> TempFile:
    raise AssertionError


def test_the_last_preview_is_shown_and_told_of() -> None:
    changes = []
    sink = ProgressSink(lambda: changes.append(1), no_draft)
    assert sink.preview_url is None
    sink.preview(JPEG, "image/jpeg")
    sink.preview(b"\x89PNG", "image/png")
    assert sink.preview_url == "data:image/png;base64,iVBORw=="
    assert len(changes) == 2


def test_a_part_of_the_work_shows_it_for_the_whole() -> None:
    sink = ProgressSink(lambda: None, no_draft)
    sink.part(0.5, 1.0).preview(JPEG, "image/jpeg")
    assert (sink.preview_url or "").startswith("data:image/jpeg;base64,")


@pytest.mark.parametrize(
    ("data", "content_type"),
    [
        (JPEG, "text/html"),
        (JPEG, "image/svg+xml"),
        (b"x" * (LARGEST_PREVIEW_BYTES + 1), "image/jpeg"),
    ],
)
def test_what_is_no_small_picture_is_none(data: bytes, content_type: str) -> None:
    sink = ProgressSink(lambda: None, no_draft)
    with pytest.raises(ValueError, match=content_type.replace("+", r"\+")):
        sink.preview(data, content_type)
    assert sink.preview_url is None


def test_a_preview_is_not_written_down() -> None:
    job = Job(
        "a" * 26, "key", "generate_image", "m", "v", {}, 1.0, preview="data:image/png;base64,"
    )
    assert "preview" not in _record(job)
    columns = {
        "id": job.id, "owner": "key", "operation": "generate_image", "status": "starting",
        "created_at": 1.0, "completed_at": None, "idempotency_key": None, "record": _record(job),
    }  # fmt: skip
    assert _job(columns).preview is None  # type: ignore[arg-type]
