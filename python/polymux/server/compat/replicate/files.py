"""``/replicate/v1/files``: uploaded input files of predictions."""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import closing
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._native import core
from polymux._util.text import display_name
from polymux.server.auth.gate import check_body
from polymux.server.compat.replicate.errors import BASE, ReplicateEndpoint, invalid_input
from polymux.server.http.body import read_form
from polymux.server.routes.files import send_file
from polymux.service.errors import draining, status_error
from polymux.service.job_table import moment
from polymux.service.model import Upload

if TYPE_CHECKING:
    from polymux.server.http.body import Form
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.media_store import StoredFile
    from polymux.service.temporary_files import TempFile

_MAX_NAME_BYTES = 255
_MAX_METADATA_BYTES = 16 << 10
_MAX_LISTED = 1000
_TYPE = re.compile(r"[\w.+-]{1,60}/[\w.+-]{1,100}", re.ASCII)
_ANY_TYPE = "application/octet-stream"
_FIELDS = ("filename", "type", "metadata")


def described_file(state: ServerState, file: StoredFile) -> dict[str, Any]:
    address = f"{state.settings.base_url}{BASE}/files/{file.name}"
    return {
        "id": file.name,
        "name": file.file_name,
        "content_type": file.content_type,
        "size": file.size_bytes,
        "etag": file.sha256[:32],
        "checksums": {"sha256": file.sha256},
        "metadata": json.loads(file.metadata),
        "created_at": moment(file.created_at),
        "expires_at": moment(file.expires_at),
        "urls": {"get": address, "download": f"{address}/download"},
    }


class FileEndpoint(ReplicateEndpoint):
    """Files uploaded with the same API key; other files are not found."""

    name = "files"

    async def file(self, asked: RequestContext) -> StoredFile:
        name = asked.scope["path_params"]["id"]
        store = self.state.service.store
        file = await store.run(store.media.find, name)
        if file is None or file.job or file.owner != asked.access.caller.id:
            raise status_error(errors.NotFoundError, "id: unknown or expired file", param="id")
        return file


class Files(FileEndpoint):
    """``GET`` and ``POST files``."""

    methods = ("GET", "POST")
    refuses_unknown = True

    async def handle(self, asked: RequestContext) -> Any:
        self.require_any(asked.access)
        if asked.scope["method"] == "POST":
            await asked.send_json(201, described_file(self.state, await self._kept(asked)))
            return None
        store = self.state.service.store
        found = await store.run(store.media.sent_by, asked.access.caller.id, _MAX_LISTED)
        results = [described_file(self.state, one) for one in found]
        return {"previous": None, "next": None, "results": results}

    async def _kept(self, asked: RequestContext) -> StoredFile:
        access, limits = asked.access, self.state.settings.limits
        if self.state.stopping.is_set():
            raise draining()
        longest = limits.upload_bytes
        check_body(access, self.name, longest, longest, ("multipart",))
        store = self.state.service.store
        content_type = access.headers[b"content-type"].decode("latin-1")
        form = await read_form(asked.receive, content_type, longest, limits, store.media, self.name)
        with closing(form):
            upload, fields = _sorted(form)
            name = _name_of(fields, upload)
            kind = fields.get("type", upload.content_type).partition(";")[0].strip().lower()
            metadata = _metadata_of(fields.get("metadata"))
            draft = _draft_of(form, upload)
            digest, size_bytes = await asyncio.to_thread(draft.seal)
            return await store.run(
                lambda: store.media.adopt(
                    draft,
                    job="",
                    owner=access.caller.id,
                    sha256=digest,
                    size_bytes=size_bytes,
                    content_type=kind if _TYPE.fullmatch(kind) else _ANY_TYPE,
                    file_name=name,
                    metadata=metadata,
                )
            )


class FileItem(FileEndpoint):
    """``GET`` and ``DELETE files/{id}``."""

    methods = ("GET", "DELETE")

    async def handle(self, asked: RequestContext) -> Any:
        file = await self.file(asked)
        if asked.scope["method"] != "DELETE":
            return described_file(self.state, file)
        store = self.state.service.store
        await store.run(store.media.remove, file)
        await asked.send_body(204, b"")
        return None


class FileDownload(FileEndpoint):
    """``GET files/{id}/download``."""

    methods = ("GET", "HEAD")

    async def handle(self, asked: RequestContext) -> None:
        file = await self.file(asked)
        try:
            descriptor = self.state.service.store.media.open(file)
        except FileNotFoundError:
            raise status_error(
                errors.NotFoundError,
                "id: the file has just expired. Upload it again",
                param="id",
            ) from None
        try:
            await send_file(asked, file, descriptor)
        finally:
            os.close(descriptor)


def _sorted(form: Form) -> tuple[Upload, dict[str, str]]:
    """Return the file of a form and its other fields."""
    upload: Upload | None = None
    fields: dict[str, str] = {}
    for name, value in form.fields:
        if name == "content" and isinstance(value, Upload) and upload is None:
            upload = value
        elif name in _FIELDS and isinstance(value, str) and name not in fields:
            fields[name] = value
        else:
            raise invalid_input(
                f"{display_name(name)[:100]}: unknown or repeated field (allowed: content, "
                f"{', '.join(_FIELDS)})",
                name[:100],
            )
    if upload is None:
        raise invalid_input("content: missing. Send the file in this field", "content")
    return upload, fields


def _draft_of(form: Form, upload: Upload) -> TempFile:
    return next(one for one in form.drafts if one.path == upload.path)


def _name_of(fields: dict[str, str], upload: Upload) -> str:
    name = fields.get("filename") or upload.file_name or "file"
    length = len(name.encode("utf-8", "replace"))
    if length > _MAX_NAME_BYTES:
        raise invalid_input(
            f"filename: too long (got {length} bytes, allowed {_MAX_NAME_BYTES})", "filename"
        )
    return name


def _metadata_of(text: str | None) -> str:
    """Validate metadata and return it as JSON."""
    if text is None:
        return "{}"
    if len(text) > _MAX_METADATA_BYTES:
        raise invalid_input(
            f"metadata: too long (got {len(text)} characters, allowed {_MAX_METADATA_BYTES})",
            "metadata",
        )
    try:
        value = core.parse_json(text.encode("utf-8", "surrogatepass"))
        if isinstance(value, dict):
            return json.dumps(value, allow_nan=False)
    except (errors.DecodeError, RecursionError, ValueError):
        pass
    raise invalid_input("metadata: must be a JSON object", "metadata")
