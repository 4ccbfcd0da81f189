"""Endpoints of the fourteen operations."""

from __future__ import annotations

import asyncio
import re
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import parse_qsl

from polymux import contract, errors
from polymux._util.text import display_name
from polymux.client.methods.results import RESULTS
from polymux.server.auth.gate import check_body
from polymux.server.http import body as bodies
from polymux.server.http.responses import metrics_fields, send_error
from polymux.server.routes.endpoint import Endpoint
from polymux.server.routes.predictions import described_job, link
from polymux.server.routes.sse import send_stream
from polymux.service import job_table
from polymux.service.errors import bad_request, draining
from polymux.service.model import OperationRequest, OperationResult, Upload, buffered_sink
from polymux.service.service import is_job
from polymux.service.warnings import warnings_fields

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from polymux.contract import CheckedRequest, Operation
    from polymux.server.auth.gate import Access
    from polymux.server.http.responses import Receive
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

Result = TypeVar("Result")

_CHATS = ("chat", "free_chat")
_UPLOADS = ("transcribe", "convert_to_mp3")
_SONG = "identify_song"
#: Response for unknown songs if `empty_when_unknown` is set, as in the original API.
_NO_SONG = {"song_name": "", "songid_url": "", "song_image": ""}
#: Splits a list into commas, quoted strings and other text; an unclosed string ends with the list.
#: Linear time for any input.
_PIECE = re.compile(r'"(?:[^"\\]++|\\.?)*+(?:"|\Z)|,|[^",]++')
#: One preference (RFC 7240, 2): name, value and optional parameters.
_PREFERENCE = re.compile(
    r"""[ \t]*+([!#$%&'*+.^_`|~0-9A-Za-z-]++)[ \t]*+"""
    r"""(?:=[ \t]*+("(?:[^"\\]++|\\.)*+"|[^";]*+))?+[ \t]*+(?:;|\Z)""",
    re.ASCII,
)
#: Maximum number of parameters in a query string.
_MAX_PARAMETERS = 50
_KEY = re.compile(rb"[\x21-\x7e]{1,255}", re.ASCII)
#: Larger bodies are parsed on a thread, so they do not block other requests.
_LONG_BYTES = 256 << 10


class OperationEndpoint(Endpoint):
    """``POST /api/v1/...`` for one operation."""

    kind = "api"
    methods = ("POST",)
    begins_work = True

    def __init__(self, state: ServerState, operation: Operation) -> None:
        super().__init__(state)
        self.operation = operation
        self.name = operation.name
        self.accepted = {one for variant in operation.variants for one in variant.accepts}
        self.query = ("model",) if operation.variants[0].model else ()

    @property
    def max_json_bytes(self) -> int:
        limits = self.state.settings.limits
        return limits.chat_bytes if self.name in _CHATS else limits.json_bytes

    @property
    def max_form_bytes(self) -> int:
        limits = self.state.settings.limits
        if self.name in _UPLOADS:
            return limits.upload_bytes
        if self.name == _SONG:
            return limits.song_bytes
        return (
            limits.image_bytes if self.operation.family in ("image", "text") else limits.form_bytes
        )

    def is_found(self, job: Job, idempotency_key: str) -> bool:
        """Match only jobs of this operation; chats ignore idempotency keys."""
        own = is_job(self.name) and job.operation == self.name
        return own and super().is_found(job, idempotency_key)

    async def handle(self, asked: RequestContext) -> None:
        encoding = self.encoding_of(asked.access)
        named = _model_of(asked.scope["query_string"])
        choice = self.state.service.routes.choose_model(self.name, named)
        model = choice.selector
        with ExitStack() as files:
            if encoding == "json":
                checked = await self._read_json(asked, model)
            else:
                if model is None and len(self.operation.variants) == 1:
                    # Before up to two gigabytes of body are read.
                    self.state.service.routes.check_operation(self.name)
                fields = await self.read_fields(asked, files)
                checked = contract.read_form(self.name, fields, model=model)
            work = OperationRequest.of(checked, asked.access.caller, asked.access.request_id)
            work = choice.applied(work)
            if work.streamed:
                await send_stream(self.state, work, asked)
            elif not is_job(self.name):
                await self._call(work, asked)
            else:
                wait_s, stays = _preference(asked.access, self.state.settings.limits.wait_s)
                job = await self.job_of(work, asked, files, wait_s, stays=stays)
                await self._answer(job, asked)

    async def _call(self, work: OperationRequest, asked: RequestContext) -> None:
        sink = buffered_sink(self.state.service.store.media.draft)
        try:
            product = await unless_gone(self.state.service.call(work, sink), asked.receive)
        except (errors.NoMatchError, errors.NotFoundError) as error:
            wanted = self.state.settings.songs.empty_when_unknown
            if not (wanted and self.name == _SONG and error.code == errors.NoMatchError.code):
                raise
            product = OperationResult(_NO_SONG)
        fields = [*warnings_fields((*work.warnings, *sink.warnings))]
        fields += metrics_fields(product.metrics) if self.name == _SONG else ()
        await asked.send_json(200, product.output, fields)

    def encoding_of(self, access: Access) -> str:
        """Return the encoding of the body, from the header fields.

        Raises:
            OverloadedError: The server is shutting down.
            UnsupportedEncodingError: The endpoint does not accept it.
            RequestTooLargeError: The body is too large.
        """
        if self.state.stopping.is_set():
            raise draining()
        sizes = self.max_json_bytes, self.max_form_bytes
        return check_body(access, self.name, *sizes, self.accepted)

    async def _read_json(self, asked: RequestContext, model: str | None) -> CheckedRequest:
        longest = self.max_json_bytes
        data = await bodies.whole(asked.receive, longest, self.state.settings.limits, self.name)
        if len(data) < _LONG_BYTES:
            return contract.read_json(self.name, data, model=model, max_bytes=longest)
        return await asyncio.to_thread(
            contract.read_json, self.name, data, model=model, max_bytes=longest
        )

    async def read_fields(self, asked: RequestContext, files: ExitStack) -> list[tuple[str, Any]]:
        """Read a form into names and values in order; `files` deletes its files."""
        form = await bodies.read_form(
            asked.receive,
            asked.access.headers[b"content-type"].decode("latin-1"),
            self.max_form_bytes,
            self.state.settings.limits,
            self.state.service.store.media,
            self.name,
        )
        files.callback(form.close)
        return [(name, value) for name, value in form.fields if _is_there(name, value)]

    async def job_of(
        self,
        work: OperationRequest,
        asked: RequestContext,
        files: ExitStack,
        wait_s: float | None = None,
        *,
        stays: bool = False,
    ) -> Job:
        """Start a job and wait for it; ends it if all its clients disconnect.

        Args:
            work: The request for the service.
            asked: The HTTP request.
            files: The files of the request; the job takes them over.
            wait_s: Maximum wait time in seconds. Default: until the end.
            stays: Keep the job running without clients. Also set once a client receives an
                unfinished job. Default: False.

        Raises:
            BadRequestError: The Idempotency-Key is invalid.
            ClientGoneError: The client disconnected.
        """
        jobs = self.state.service.jobs
        job, new = await self.state.service.submit(work, idempotency_key_of(asked.access))
        if new:
            # The job owns the files now, because it may outlive this request.
            jobs.when_over(job, files.pop_all().close)
        if stays:
            jobs.keep(job)
        try:
            job = await unless_gone(jobs.wait(job, wait_s), asked.receive)
        except BaseException:
            await jobs.release(job)
            raise
        if not job.ended:
            jobs.keep(job)  # The response tells the client where to poll for it.
        return job

    async def _answer(self, job: Job, asked: RequestContext) -> None:
        if not job.ended:
            body = described_job(self.state, job)
            location = (b"location", body["urls"]["get"].encode())
            await asked.send_json(202, body, [location, *job_fields(job)])
        elif job.status != "succeeded":
            request_id, more = asked.access.request_id, {"id": job.id}
            await send_error(asked.send, job.failure, request_id, job_fields(job), more=more)
        else:
            await asked.send_json(200, answer_of(self.state, job), job_fields(job))


def job_fields(job: Job) -> list[tuple[bytes, bytes]]:
    """Return the header fields of a job's response: its ID and its warnings."""
    return [(b"polymux-job-id", job.id.encode()), *warnings_fields(job.warnings)]


def answer_of(state: ServerState, job: Job) -> Any:
    """Return the response of an operation's endpoint for a successful job."""
    if RESULTS[job.operation] == "Prediction":
        return described_job(state, job)
    return job_table.linked(job.output, lambda name: link(state, job, name))


def idempotency_key_of(access: Access) -> str | None:
    """Return the Idempotency-Key field, or None."""
    key = access.headers.get(b"idempotency-key")
    if key is not None and not _KEY.fullmatch(key):
        raise bad_request(
            "Idempotency-Key: invalid (allowed: 1 to 255 printable ASCII characters without "
            "spaces)",
            "Idempotency-Key",
        )
    return None if key is None else key.decode()


def _model_of(query: bytes) -> str | None:
    """Return the selector in the query, or None."""
    if not query:
        return None
    try:
        given = parse_qsl(
            query.decode("ascii"),
            keep_blank_values=True,
            errors="strict",
            max_num_fields=_MAX_PARAMETERS,
        )
    except ValueError:
        raise bad_request(
            "invalid query string (allowed: ASCII with percent-encoded UTF-8, at most "
            f"{_MAX_PARAMETERS} parameters)"
        ) from None
    models = [value for name, value in given if name == "model"]
    if len(models) > 1:
        raise bad_request("model: sent more than once in the query string", "model")
    return models[0] if models else None


def preferences(field: str) -> dict[str, str]:
    """Parse preferences by name; the first of duplicates counts.

    Args:
        field: The values of all ``Prefer`` fields, joined by commas (RFC 7240, 2).

    Example:
        >>> from polymux.server.routes.operations import preferences
        >>> preferences('Respond-Async, wait="20"; x=1, foo="a, wait=5", wait=30')
        {'respond-async': '', 'wait': '20', 'foo': 'a, wait=5'}
    """
    found: dict[str, str] = {}
    # A header field cannot contain a line break, so it is a safe separator.
    parts = "".join("\n" if one == "," else one for one in _PIECE.findall(field)).split("\n")
    for part in parts:
        matched = _PREFERENCE.match(part)
        if matched is not None:
            found.setdefault(matched[1].lower(), (matched[2] or "").strip(" \t").strip('"'))
    return found


def _is_there(name: str, value: Any) -> bool:
    """Ignore the empty file that browsers send for a field without a chosen file."""
    if not isinstance(value, Upload) or value.size_bytes:
        return True
    if value.file_name:
        raise bad_request(
            f"{name[:100]}: the file '{display_name(value.file_name)}' is empty", name[:100]
        )
    return False


def _preference(access: Access, max_s: float) -> tuple[float | None, bool]:
    """Return the wait time for a job, and whether it continues without its client."""
    field = access.headers.get(b"prefer")
    if field is None:
        return None, False
    wanted = preferences(field.decode("latin-1"))
    asynchronous = "respond-async" in wanted
    wait = wanted.get("wait", "")
    if wait.isascii() and wait.isdigit():
        return min(float(wait), max_s), asynchronous
    return (0.0, True) if asynchronous else (None, False)


async def unless_gone(work: Awaitable[Result], receive: Receive) -> Result:
    """Await work, and cancel it if the client disconnects."""
    # In this task: a separate task would cost two more iterations of the event loop.
    doing = asyncio.current_task()
    assert doing is not None  # noqa: S101 - this is a coroutine
    over = gone = False

    def leave(_: object) -> None:
        nonlocal gone
        if not over:
            gone = True
            doing.cancel()

    leaving = asyncio.ensure_future(bodies.gone(receive))
    leaving.add_done_callback(leave)
    try:
        return await work
    except asyncio.CancelledError:
        if gone and doing.cancelling() == 1:
            raise bodies.ClientGoneError from None
        raise  # Another cancellation, independent of the client.
    finally:
        over = True
        leaving.cancel()
        if gone:
            doing.uncancel()
