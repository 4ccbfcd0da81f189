"""Work as an engine's process is told it, and what came of it as the service wants it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.service.errors import described, engine_failed
from polymux.service.model import Made, Upload

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.service.model import Sink, Work
    from polymux.service.temporary_files import Draft


def header_of(work: Work) -> dict[str, Any]:
    """Work as a frame's header; files by their paths."""
    values: dict[str, Any] = {}
    files: dict[str, Any] = {}
    for name, value in work.values.items():
        if isinstance(value, Upload):
            rest = [value.file_name, value.content_type, value.size_bytes]
            files[name] = [os.fspath(value.path), *rest]
        else:
            values[name] = value
    return {
        "operation": work.operation,
        "variant": work.variant,
        "model": work.model,
        "values": values,
        # Apart: what a caller gives as an object must never pass for a file.
        "files": files,
        "given": sorted(work.given),
    }


def room_for(sink: Sink, header: Mapping[str, Any], drafts: list[Draft]) -> dict[str, Any]:
    """The answer to a process that asks for a place to write to; its draft is added."""
    try:
        draft = sink.draft(max(0, int(header["bytes"])))
    except errors.PolymuxError as error:
        return {"error": described(error)}
    drafts.append(draft)
    return {"path": os.fspath(draft.path)}


def made_of(value: Any, drafts: Mapping[str, Draft]) -> Any:
    """The output with drafts in the place of the paths that the process names.

    Raises:
        InternalServerError: It names a file that it was not given.
    """
    if isinstance(value, list):
        return [made_of(one, drafts) for one in value]
    if not isinstance(value, dict):
        return value
    if value.get("polymux") == "made":
        # Only what it was given: another path could be anybody's file.
        draft = drafts.get(os.fspath(Path(value["path"])))
        if draft is None:
            raise engine_failed("an engine names a file that is not its own")
        return Made(draft, *value["rest"])
    return {name: made_of(one, drafts) for name, one in value.items()}
