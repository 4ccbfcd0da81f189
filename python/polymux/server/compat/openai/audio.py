"""``POST /v1/audio/transcriptions`` and ``/translations``: the operation ``transcribe``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import contract
from polymux._util.text import shown
from polymux.client.responses import Prediction
from polymux.server.compat.openai.errors import OpenAiEndpoint, selector, with_selector
from polymux.server.compat.openai.fields import GivenFields, checked
from polymux.server.compat.openai.transcripts import FORMS, Transcript
from polymux.server.routes.operations import OperationEndpoint, job_fields
from polymux.server.routes.predictions import described_job
from polymux.service.errors import bad_request
from polymux.service.model import OperationRequest

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polymux.contract import CheckedRequest
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState

_GRANULARITIES = ("segment", "word")
_FILE = "audio"
#: OpenAI's names of the operation's fields.
_NAMES = {_FILE: "file"}


class WantedTranscript(NamedTuple):
    """A parsed transcription request.

    Attributes:
        request: The request of the operation.
        form: Response format, one of `FORMS`.
        granularities: Items with times in ``verbose_json``.
        language: As in the request.
    """

    request: CheckedRequest
    form: str
    granularities: frozenset[str]
    language: str | None


class Transcriptions(OpenAiEndpoint, OperationEndpoint):
    """``POST /v1/audio/transcriptions``."""

    translates = False
    refuses_unknown = True

    def __init__(self, state: ServerState) -> None:
        super().__init__(state, contract.operation("transcribe"))
        self.query = ()

    async def handle(self, asked: RequestContext) -> None:
        access = asked.access
        self.encoding_of(access)
        with ExitStack() as files:
            fields = await self.read_fields(asked, files)
            fields, choice = with_selector(self.state.service.routes, self.name, fields)
            wanted = wanted_transcript(fields, translates=self.translates)
            work = OperationRequest.of(wanted.request, access.caller, access.request_id)
            work = choice.applied(work)
            job = await self.job_of(work, asked, files)
        if job.status != "succeeded":
            failure = job.failure
            if failure.get("param") == _FILE:
                failure = failure | {"param": _NAMES[_FILE]}
            await self.tell(asked.send, failure, access.request_id, job_fields(job))
            return
        transcript = Transcript(
            Prediction(described_job(self.state, job)),
            self.translates,
            wanted.request.values.get("timestamp") == "word",
            wanted.granularities,
            wanted.language,
        )
        kind, body = transcript.answer(wanted.form)
        await asked.send_body(200, body, ((b"content-type", kind), *job_fields(job)))


class Translations(Transcriptions):
    """``POST /v1/audio/translations``: translates into English."""

    translates = True


def wanted_transcript(
    fields: Iterable[tuple[str, Any]], *, translates: bool = False
) -> WantedTranscript:
    """Convert a form of the OpenAI API to a request of the operation.

    Raises:
        BadRequestError: A field is invalid or not supported.
        NotFoundError: The model is unknown.
    """
    given = GivenFields(fields)
    file = given.file("file")
    if file is None:
        raise bad_request("file: missing. Send the recording in this field", "file")
    (variant,) = contract.operation("transcribe").variants
    model = selector("transcribe", given.text("model"), variant.model or "")
    form = given.choice("response_format", FORMS, "json")
    given.only("prompt", why="not supported by the speech engines. Omit this field")
    _check_temperature(given)
    language, granularities = None, frozenset(("segment",))
    if not translates:
        language = given.text("language")
        granularities = _granularities(given, form)
        given.only("stream", ("false",), why="streaming is not supported. Omit this field")
        given.only("include", why="not supported. Omit this field")
        given.only("chunking_strategy", ("auto",), why="must be 'auto': silence is always skipped")
    given.left()
    own: list[tuple[str, Any]] = [
        (_FILE, file),
        ("task", "translate" if translates else "transcribe"),
        ("timestamp", "word" if "word" in granularities else "chunk"),
    ]
    if language is not None:
        own.append(("language", language))
    request = checked("transcribe", own, model, _NAMES)
    return WantedTranscript(request, form, granularities, language)


def _check_temperature(given: GivenFields) -> None:
    """Accept only 0, OpenAI's default, which lets the engine raise it if necessary."""
    text = given.text("temperature")
    try:
        wrong = text is not None and float(text) != 0
    except ValueError:
        wrong = True
    if wrong:
        raise bad_request(
            f"temperature={shown(text)}: must be 0. The speech engines increase the temperature "
            "automatically if necessary",
            "temperature",
        )


def _granularities(given: GivenFields, form: str) -> frozenset[str]:
    name = "timestamp_granularities"
    wanted = given.texts(name)
    for one in wanted:
        if one not in _GRANULARITIES:
            there = ", ".join(_GRANULARITIES)
            raise bad_request(f"{name}={shown(one)}: must be one of {there}", name)
    if wanted and form != "verbose_json":
        raise bad_request(f"{name}: requires response_format=verbose_json (got {form})", name)
    return frozenset(wanted or ("segment",))
