"""``POST /v1/audio/transcriptions`` and ``/translations``: the operation ``transcribe``."""

from __future__ import annotations

from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import contract
from polymux._util.text import shown
from polymux.client.responses import Prediction
from polymux.server.compat.openai.errors import OpenAiEndpoint, selector
from polymux.server.compat.openai.fields import GivenFields, checked
from polymux.server.compat.openai.transcripts import FORMS, Transcript
from polymux.server.routes.operations import OperationEndpoint
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
#: What the operation's fields are called here.
_NAMES = {_FILE: "file"}


class WantedTranscript(NamedTuple):
    """What a request in OpenAI's shape asks for.

    Attributes:
        request: The same in the operation's words.
        form: Of the answer, one of `FORMS`.
        granularities: What is told with times, in ``verbose_json``.
        language: As it was given.
    """

    request: CheckedRequest
    form: str
    granularities: frozenset[str]
    language: str | None


class Transcriptions(OpenAiEndpoint, OperationEndpoint):
    """``POST /v1/audio/transcriptions``."""

    translates = False

    def __init__(self, state: ServerState) -> None:
        super().__init__(state, contract.operation("transcribe"))

    async def handle(self, asked: RequestContext) -> None:
        access = asked.access
        self.encoding_of(access)
        with ExitStack() as files:
            fields = await self.read_fields(asked, files)
            wanted = wanted_transcript(fields, translates=self.translates)
            work = OperationRequest.of(wanted.request, access.caller, access.request_id)
            job = await self.job_of(work, asked, files)
        if job.status != "succeeded":
            told = job.failure
            if told.get("param") == _FILE:
                told = told | {"param": _NAMES[_FILE]}
            await self.tell(asked.send, told, access.request_id)
            return
        transcript = Transcript(
            Prediction(described_job(self.state, job)),
            self.translates,
            wanted.request.values.get("timestamp") == "word",
            wanted.granularities,
            wanted.language,
        )
        kind, body = transcript.answer(wanted.form)
        await asked.send_body(200, body, ((b"content-type", kind),))


class Translations(Transcriptions):
    """``POST /v1/audio/translations``: into English."""

    translates = True


def wanted_transcript(
    fields: Iterable[tuple[str, Any]], *, translates: bool = False
) -> WantedTranscript:
    """A form in OpenAI's shape, in the operation's words.

    Raises:
        BadRequestError: Something in it is wrong, or is nothing that this server does.
        NotFoundError: There is no such model.
    """
    given = GivenFields(fields)
    file = given.file("file")
    if file is None:
        raise bad_request("file: is missing; send the recording as a file of that name", "file")
    (variant,) = contract.operation("transcribe").variants
    model = selector("transcribe", given.text("model"), variant.model or "")
    form = given.choice("response_format", FORMS, "json")
    given.only("prompt", why="the speech engines here take none; leave it out")
    _check_temperature(given)
    language, granularities = None, frozenset(("segment",))
    if not translates:
        language = given.text("language")
        granularities = _granularities(given, form)
        given.only("stream", ("false",), why="transcripts come whole; leave it out")
        given.only("include", why="nothing more than text and times is told; leave it out")
        given.only("chunking_strategy", ("auto",), why="what is silent is always left out: 'auto'")
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
    """At 0, OpenAI's default, it is raised where that is needed; so it is here, always."""
    text = given.text("temperature")
    try:
        wrong = text is not None and float(text) != 0
    except ValueError:
        wrong = True
    if wrong:
        raise bad_request(
            f"temperature={shown(text)}: the speech engines here take 0 alone, by which it is "
            "raised where that is needed",
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
        raise bad_request(f"{name}: needs response_format verbose_json, not {form}", name)
    return frozenset(wanted or ("segment",))
