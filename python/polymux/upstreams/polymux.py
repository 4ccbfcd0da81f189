"""Another polymux server as an upstream."""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing, suppress
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from polymux import contract, errors
from polymux._native.json_numbers import finite
from polymux.client import responses
from polymux.client.answer import warnings_of
from polymux.client.methods.results import JOBS, RESULTS
from polymux.client.options import SLOW
from polymux.client.request import build_request
from polymux.client.sync_client import PATH
from polymux.service.model import OperationResult, OutputFile, Upload, discard_outputs
from polymux.upstreams.backend import UpstreamBackend, addresses_of, numbers_of, variant_of
from polymux.upstreams.error_mapping import cleaned, failed, late, of_code
from polymux.upstreams.files import fetched, type_of, whole
from polymux.upstreams.model_names import ModelNames, selectors
from polymux.upstreams.openai.chat import passed_on
from polymux.upstreams.openai.models import ModelListing

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator, Mapping, Sequence

    from polymux.client.answer import Answer
    from polymux.client.chat_stream import AsyncChatStream
    from polymux.contract import Field
    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.chunks import Chunk
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.upstreams.client import UpstreamServer

#: The server answers with the job's id at once; before that, the connection's end cancels the job.
_AT_ONCE = "Prefer: wait=0"
_ACCEPTED = 202
_ENDED = ("succeeded", "failed", "canceled", "aborted")
_MEDIA = "/media/"
_MODELS = "/v1/models"
#: Name of transcription models in the OpenAI compatibility API, besides the model selectors.
_WHISPER = "whisper-1"
#: Jobs whose output contains no file.
_WITHOUT_FILES = ("transcribe", "summarize_video")
_MAX_INTERRUPTIONS = 5
_PAUSE_S = 0.5
_CANCEL_S = 2.0
#: SSRF checks accept only http(s) URLs: check proxy URLs like http URLs of the same host.
_SOCKS = re.compile(r"socks5h?(?=://)", re.ASCII | re.IGNORECASE)


class PolymuxUpstream(UpstreamBackend):
    """Runs any operation on another polymux server.

    Streams input files to it, downloads results into this server's store, and forwards progress and
    logs. Cancellation here cancels the job there. This server also checks all URLs in a request.

    Args:
        operations: Operations to run there. Default: all.
        models: Our name of a chat model to the upstream's; empty: chats may use any model name.
        max_concurrency: Maximum number of concurrent requests. Default: 16.
        policy: Hosts beyond the public Internet that requests may name and results may come from.
            The upstream's own host is always allowed for results. Default: none.

    Example:
        >>> from polymux.upstreams.polymux import PolymuxUpstream
        >>> from polymux.upstreams.client import UpstreamServer
        >>> attic = UpstreamServer("attic", "http://attic.example:8000", "pmx_secret", ours=True)
        >>> len(PolymuxUpstream(attic).operations)
        14
    """

    kind = "polymux"

    def __init__(
        self,
        server: UpstreamServer,
        operations: Sequence[str] = (),
        models: Mapping[str, str] | None = None,
        *,
        max_concurrency: int = 16,
        policy: FetchPolicy | None = None,
    ) -> None:
        every = (one.name for one in contract.operations())
        super().__init__(server, operations or every, max_concurrency, policy)
        self._names = ModelNames(models or {})
        self.models = self._names.of_chats
        self._listing = ModelListing(server, _MODELS)

    def refuse(self, work: OperationRequest) -> None:
        if work.operation == "free_chat" and self._names.of(work) is None:
            raise self._without_model(work.values.get("model"))

    async def listed_models(self) -> tuple[str, ...]:
        """List chat models from the OpenAI compatibility API, unless the settings name models."""
        if self.models is not None or "chat" not in self.operations:
            return ()
        others = selectors() | {_WHISPER}
        return tuple(one for one in await self._listing.names() if one not in others)

    async def run(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        await self._judge_all(work)
        if work.operation in JOBS:
            return await self._job(work, sink)
        answer = await self._ask(work)
        _forward_warnings(answer.headers, sink)
        value = self._server.parsed(answer)
        try:
            getattr(responses, RESULTS[work.operation])(value)
        except errors.DecodeError:
            raise failed(self.name, "its response is invalid") from None
        return OperationResult(value)

    def stream(self, work: OperationRequest, sink: ProgressSink) -> AsyncIterator[Chunk]:
        async def opened() -> AsyncChatStream:
            await self._judge_all(work)
            path = contract.operation(work.operation).path
            answer = await self._server.stream_chat(work.operation, path, self._values(work))
            _forward_warnings({} if answer.response is None else answer.response.headers, sink)
            return answer

        return passed_on(self._server, work, opened, as_texts=False)

    async def _judge_all(self, work: OperationRequest) -> None:
        """Check the URLs of a request; the upstream checks them again.

        Raises:
            APIStatusError: See `UpstreamBackend._judge`.
        """
        found = sorted(set(_addresses(variant_of(work).fields, self._values(work))))
        web = [(name, _SOCKS.sub("http", one, count=1)) for name, one in found]
        await self._judge(web, may_be_unknown=True)

    def _values(self, work: OperationRequest) -> dict[str, Any]:
        """Return the fields that the client sent; the upstream adds the same defaults."""
        values = {name: one for name, one in work.values.items() if name in work.given}
        if work.operation == "chat":
            values["model"] = self._names.of(work) or values["model"]
        return values

    async def _ask(self, work: OperationRequest, **how: Any) -> Answer:
        """Send the operation; `how` are arguments of `UpstreamServer.ask`."""
        values = {
            # Send the name without the client's content type, which is not trusted.
            name: (one.file_name, one.path) if isinstance(one, Upload) else one
            for name, one in self._values(work).items()
        }
        request = build_request(work.operation, values, model=work.model or None, awaited=True)
        target, body, kind = request.target, request.body, request.content_type
        return await self._server.ask(
            work.operation, "POST", target, body, content_type=kind, **how
        )

    async def _job(self, work: OperationRequest, sink: ProgressSink) -> OperationResult:
        answer = await self._ask(work, fields=[_AT_ONCE], usual=SLOW, repeatable=True)
        value = self._server.parsed(answer)
        if not isinstance(value, dict):
            raise failed(self.name, "its response is not a prediction")
        if answer.status == _ACCEPTED:
            value = await self._followed(work, value, sink)
        else:
            # The job has already ended, and this is the operation's own answer.
            _forward_warnings(answer.headers, sink)
            if RESULTS[work.operation] != "Prediction":
                value = {"output": value.get("response"), **value}
        return await self._product(work, value, sink)

    async def _followed(
        self, work: OperationRequest, begun: dict[str, Any], sink: ProgressSink
    ) -> dict[str, Any]:
        """Wait for the end of a job; cancels it there on cancellation or timeout here."""
        relay = _Relay(sink)
        name = begun.get("id")
        if not isinstance(name, str) or not name:
            raise failed(self.name, "its response is not a prediction")
        path = f"{PATH}/{quote(name, safe='')}"
        try:
            async with asyncio.timeout(self._server.total_s(SLOW)):
                return await self._ended(work, path, relay)
        except TimeoutError:
            await self._cancel(path)
            raise late(self.name) from None
        except BaseException:
            await self._cancel(path)
            raise

    async def _ended(self, work: OperationRequest, path: str, relay: _Relay) -> dict[str, Any]:
        """Watch a job until its end; reconnects after interruptions."""
        interruptions = 0
        while True:
            # A stream that ends without any event also counts as an interruption.
            interruptions += 1
            try:
                async with aclosing(self._server.events(work.operation, f"{path}/events")) as news:  # type: ignore[type-var]
                    async for _, value in news:
                        if isinstance(value, dict) and relay.is_end(value):
                            return value
                        interruptions = 0
            except (errors.RateLimitError, errors.OverloadedError) as error:
                # The job still exists: wait as requested, limited only by its deadline.
                interruptions = 0
                await asyncio.sleep(float(error.headers["retry-after"]))
            except errors.InternalServerError:
                if interruptions >= _MAX_INTERRUPTIONS:
                    raise
            if interruptions >= _MAX_INTERRUPTIONS:
                raise failed(self.name, "it sent no events of the job")
            await asyncio.sleep(_PAUSE_S)

    async def _cancel(self, path: str) -> None:
        with suppress(errors.PolymuxError, TimeoutError):
            async with asyncio.timeout(_CANCEL_S):
                await self._server.ask("predictions", "POST", f"{path}/cancel", repeatable=True)

    async def _product(
        self, work: OperationRequest, value: dict[str, Any], sink: ProgressSink
    ) -> OperationResult:
        """Return the result of a job, with its files in this server's store.

        Raises:
            PolymuxError: The job failed.
        """
        if value.get("status", "succeeded") != "succeeded":
            raise of_code(self.name, str(value.get("error_code", "")), str(value.get("error", "")))
        output = value.get("output")
        if work.operation not in _WITHOUT_FILES:
            made: list[OutputFile] = []
            try:
                output = await self._kept(output, sink, made)
            except BaseException:
                discard_outputs(made)
                raise
        if RESULTS[work.operation] != "Prediction":
            more = {"report": value["report"]} if "report" in value else {}
            output = {"response": output, **more}
        version = value.get("version")
        version = version if isinstance(version, str) else "hidden"
        model = value.get("engine_model")
        model = model if isinstance(model, str) else ""
        return OperationResult(output, version, numbers_of(value.get("metrics")), model)

    async def _kept(self, value: Any, sink: ProgressSink, made: list[OutputFile]) -> Any:
        """Replace the URLs in an output by downloaded files."""
        if isinstance(value, str):
            stem = f"file-{len(made)}"
            one = await fetched(self._server, self._address(value), sink, self._policy, stem)
            made.append(one)
            # Check the first bytes: an error page must not become a result.
            _, _, declared = one.content_type.partition("/")
            content_type = await type_of(one)
            _, _, detected = content_type.partition("/")
            if not detected or detected != declared:
                raise failed(self.name, "its response contains a file of an unknown type")
            await whole(self._server, one, content_type)
            return one
        if isinstance(value, list):
            return [await self._kept(one, sink, made) for one in value]
        if isinstance(value, dict):
            return {name: await self._kept(one, sink, made) for name, one in value.items()}
        raise failed(self.name, "its response contains an invalid file URL")

    def _address(self, link: str) -> str:
        """Return the URL of a result, based on the configured base URL.

        The upstream's own links may contain a host name that is not reachable from here.
        """
        _, mark, rest = link.partition(_MEDIA)
        return f"{self._server.base_url}{_MEDIA}{rest}" if mark else link


def _addresses(fields: Sequence[Field], values: object) -> Iterator[tuple[str, str]]:
    """Yield the request field and URL of each URL in a request that a server would fetch.

    Ignores ``data:`` URLs.
    """
    if not isinstance(values, dict):
        return
    for field in fields:
        value = values.get(field.name)
        if field.kind == "url" and isinstance(value, str) and value[:5].lower() != "data:":
            yield from ((field.name, one) for one in addresses_of(field.name, value))
        many = value if isinstance(value, list) else ()
        inner = [(field.object, value), *((field.items_object, one) for one in many)]
        for kind, one in inner:
            if kind is not None:
                yield from ((field.name, found) for _, found in _addresses(kind.fields, one))


def _forward_warnings(headers: dict[str, str], sink: ProgressSink) -> None:
    for line in warnings_of(headers):
        sink.warn(cleaned(line))


class _Relay:
    """Forwards progress and logs of a remote job."""

    def __init__(self, sink: ProgressSink) -> None:
        self._sink = sink
        self._lines = 0

    def is_end(self, value: dict[str, Any]) -> bool:
        """Forward a prediction's progress and logs; return whether it has ended."""
        progress, logs = finite(value.get("progress")), value.get("logs")
        if progress is not None:
            self._sink.report(progress)
        lines = logs.split("\n") if isinstance(logs, str) and logs else []
        warnings = value.get("warnings")
        for line in lines[self._lines :]:
            is_warning = isinstance(warnings, list) and line in warnings
            add = self._sink.warn if is_warning else self._sink.log
            add(cleaned(line))
        self._lines = max(self._lines, len(lines))
        return value.get("status") in _ENDED
