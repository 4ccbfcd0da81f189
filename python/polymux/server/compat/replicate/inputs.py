"""Inputs of Replicate predictions: conversion to operations, and their files."""

from __future__ import annotations

import asyncio
import json
import os
import re
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote, urlsplit

from polymux import contract, errors
from polymux._util.text import display_name, printable, shortened, shown
from polymux.downloads.backend import DownloadBackend
from polymux.downloads.url_inputs import FIELDS, UrlFetcher
from polymux.mcp.files import embedded
from polymux.mcp.tools import Arguments, checked
from polymux.server.compat.replicate.errors import BASE, invalid_input
from polymux.server.compat.replicate.models import documents
from polymux.server.routes.operations import OperationEndpoint
from polymux.service.errors import status_error
from polymux.service.model import OperationRequest, Upload, without_data
from polymux.service.temporary_files import copied, written

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping
    from contextlib import ExitStack

    from polymux.contract import CheckedRequest
    from polymux.downloads.downloader import PageDownloader
    from polymux.server.auth.gate import Access
    from polymux.server.compat.replicate.models import Model
    from polymux.server.state import ServerState
    from polymux.service.media_store import StoredFile
    from polymux.service.model import Prepare, ProgressSink
    from polymux.service.temporary_files import TempFile

_MAX_NAMED_FIELDS = 20
#: Fields of the operation with other names in the input.
_SENT_AS = {"max_completion_tokens": "max_tokens", "stop": "stop_sequences"}
#: Fields of the input that the operations do not have.
_OWN = frozenset(("prompt", "system_prompt", "messages", "max_tokens", "stop_sequences"))


def chat_body(
    operation: str, given: Mapping[str, Any], model: str | None
) -> tuple[dict[str, Any], list[str]]:
    """Convert the input of a chat model to the body of an operation.

    Args:
        operation: One of `CHATS`.
        given: The input, without nulls.
        model: The chat model that the prediction's model names; None if the input may name it.

    Returns:
        The unchecked body, and warnings about ignored fields.

    Raises:
        UnprocessableEntityError: The input has neither prompt nor messages, or both.

    Example:
        >>> body, warnings = chat_body("free_chat", {"prompt": "Hi", "top_k": 40}, None)
        >>> body
        {'stream': True, 'messages': [{'role': 'user', 'content': 'Hi'}]}
        >>> warnings
        ['top_k: unknown field, ignored']
    """
    body: dict[str, Any] = {"stream": True, "messages": _messages(given)}
    if operation == "chat":
        body |= {"model": model or given.get("model", "default")}
        # The last chunk contains the token counts.
        body["stream_options"] = {"include_usage": True}
        if "max_tokens" in given:
            body["max_completion_tokens"] = given["max_tokens"]
        stops = _stops(given.get("stop_sequences", ""))
        if stops != []:  # Many models use an empty text as default.
            body["stop"] = stops
    name = "chat" if model is not None else f"polymux/{operation.replace('_', '-')}"
    known = documents()[name]["components"]["schemas"]["Input"]["properties"].keys()
    body |= {name: given[name] for name in known if name in given and name not in _OWN}
    refused = set(contract.describe(operation)[0].get("refused_fields", ()))
    body |= {name: given[name] for name in refused & given.keys()}
    unknown = [one for one in given if one not in {*known, *refused}]
    names = [shortened(printable(one)) for one in unknown[:_MAX_NAMED_FIELDS]]
    return body, [f"{one}: unknown field, ignored" for one in names]


def in_words_of(given: Mapping[str, Any], text: str) -> str:
    """Rename the operation's fields in a message to the names of the request.

    Example:
        >>> in_words_of({"max_tokens": 0}, "max_completion_tokens=0: must be from 1")
        'max_tokens=0: must be from 1'
    """
    for field, name in _SENT_AS.items():
        if name in given:
            text = re.sub(rf"\b{field}\b(?=[=:\[]|$)", name, text)
    return text


def _messages(given: Mapping[str, Any]) -> Any:
    messages = given.get("messages")
    if isinstance(messages, str):
        # Clients that support only plain input values send JSON text.
        try:
            messages = json.loads(messages)
        except (ValueError, RecursionError):
            raise invalid_input(
                "messages: invalid JSON (allowed a JSON array of messages)", "messages"
            ) from None
    if messages is None and "prompt" not in given:
        raise invalid_input("prompt: missing. Send prompt or messages", "prompt")
    if messages is not None:
        if "prompt" in given:
            raise invalid_input("prompt: must not be used with messages. Omit one", "prompt")
        if "system_prompt" in given:
            raise invalid_input(
                "system_prompt: must not be used with messages. Send a message with the role "
                "'system' instead",
                "system_prompt",
            )
        return messages
    for name in ("prompt", "system_prompt"):
        if not isinstance(given.get(name, ""), str):
            raise invalid_input(f"{name}: must be a string", name)
    messages = [{"role": "user", "content": given["prompt"]}]
    if given.get("system_prompt"):
        messages.insert(0, {"role": "system", "content": given["system_prompt"]})
    return messages


def _stops(given: Any) -> Any:
    if not isinstance(given, str):
        return given
    return [one for one in given.split(",") if one]


_DATA = "data:"
_ALLOWED_FILES = "an http(s) URL, also of a file on this server, or a data URL"
_DEEPEST = 64
#: Share of file downloads in a job's progress.
_SHARE = 0.3
#: Maximum number of concurrent downloads, and maximum time of each.
_AT_ONCE = 4
_MAX_FETCH_S = 600.0


class Input(NamedTuple):
    """A parsed input.

    Attributes:
        request: The checked request; files to be downloaded are empty placeholders.
        record: The input for the prediction's record, with truncated ``data:`` URLs.
        addresses: Field name to the URL of a file to be downloaded.
    """

    request: CheckedRequest
    record: dict[str, Any]
    addresses: dict[str, str]


class Inputs:
    """Parses inputs of predictions."""

    def __init__(self, state: ServerState) -> None:
        self._state = state
        # Each download occupies a thread of the shared pool.
        self._fetching = asyncio.Semaphore(_AT_ONCE)

    async def read(
        self, model: Model, sent: Mapping[str, Any], access: Access, files: ExitStack
    ) -> Input:
        """Check an input, and store its embedded files as drafts.

        Args:
            model: The model of the prediction.
            sent: The input as sent.
            access: The client's access; other clients' files are not found.
            files: Discards the drafts.

        Raises:
            UnprocessableEntityError: The input violates the contract, or a file is invalid.
            RequestTooLargeError: The input or a file is too large.
            InternalServerError: Not enough space for the files (code ``storage_full``).
        """
        max_bytes = self._state.settings.limits.json_bytes
        record = await asyncio.to_thread(_record_of, sent, max_bytes)
        given = {name: value for name, value in sent.items() if value is not None}
        if model.iterates:
            body, warnings = chat_body(model.operation, given, model.chat)
            request = await self._checked(model, body, {}, given)
            return Input(replace(request, warnings=(*request.warnings, *warnings)), record, {})
        uploads: dict[str, Upload] = {}
        addresses: dict[str, str] = {}
        for field in model.shape.fields:
            if field.type == "file" and field.name in given:
                value = given.pop(field.name)
                found = await self._file(model, field.name, value, access, files)
                if isinstance(found, str):
                    addresses[field.name], found = found, _elsewhere(found)
                uploads[field.name] = found
        return Input(await self._checked(model, given, uploads, given), record, addresses)

    async def _checked(
        self,
        model: Model,
        values: dict[str, Any],
        uploads: Mapping[str, Upload],
        sent: Mapping[str, Any],
    ) -> CheckedRequest:
        arguments = Arguments(
            contract.operation(model.operation), model.selector or None, values, {}
        )
        longest = self._state.settings.limits.chat_bytes
        try:
            return await asyncio.to_thread(checked, arguments, uploads, longest)
        except errors.InvalidRequestError as error:
            first = next((one.field for one in error.problems if one.field), None)
            words = str(error)
            if model.iterates:
                words = in_words_of(sent, words)
                first = None if first is None else in_words_of(sent, first)
            raise invalid_input(words, first) from None
        except errors.BadRequestError as error:
            raise invalid_input(str(error), error.param) from None

    async def _file(
        self, model: Model, field: str, value: object, access: Access, files: ExitStack
    ) -> Upload | str:
        """Return the file as a draft, or the URL from which it must be downloaded."""
        if not isinstance(value, str):
            raise invalid_input(f"{field}: must be a string: {_ALLOWED_FILES}", field)
        longest = max_file_bytes(self._state, model.operation)
        if value[: len(_DATA)].lower() == _DATA:
            return await self._embedded(field, value, longest, files)
        kept = await self._kept(field, value, access)
        if kept is not None:
            if kept.size_bytes > longest:
                raise _too_long(field, "the file", kept.size_bytes, longest)
            return await self._copied(field, kept, files)
        if value[:8].lower().startswith(("http://", "https://")):
            return value
        raise invalid_input(
            f"{field}: invalid (got {shown(value[:200])}, allowed {_ALLOWED_FILES})", field
        )

    async def _embedded(self, field: str, value: str, max_bytes: int, files: ExitStack) -> Upload:
        try:
            found = await asyncio.to_thread(embedded, field, value, max_bytes)
        except errors.BadRequestError as error:
            raise invalid_input(str(error), field) from None
        media = self._state.service.store.media
        data = found.data or b""
        draft = await written(media, data, files)
        name = display_name(found.file_name)[:200]
        return Upload(draft.path, name, found.content_type, len(data))

    async def _kept(self, field: str, value: str, access: Access) -> StoredFile | None:
        """Return the stored file of a URL of this server; None for other URLs."""
        base = self._state.settings.base_url
        store = self._state.service.store
        path, _, query = value.removeprefix(base).partition("?")
        if not value.startswith(base) or not path.startswith((f"{BASE}/files/", "/media/")):
            return None
        name = path.removesuffix("/download").rpartition("/")[2]
        file = await store.run(store.media.find, name)
        given = dict(parse_qsl(query))
        # A signed link needs no API key.
        linked = path.startswith("/media/") and store.links.accepts(
            path, given.get("exp", ""), given.get("sig", "")
        )
        if file is None or not (linked or file.owner == access.caller.id):
            raise invalid_input(f"{field}: unknown or expired file. Upload it again", field)
        return file

    async def _copied(self, field: str, file: StoredFile, files: ExitStack) -> Upload:
        try:
            draft = await copied(self._state.service.store.media, file, files)
        except FileNotFoundError:
            raise invalid_input(
                f"{field}: the file has just expired. Upload it again", field
            ) from None
        return Upload(draft.path, file.file_name, file.content_type, file.size_bytes)

    def _pages(self) -> PageDownloader | None:
        """Return the page downloader of the service, if there is one."""
        backends = self._state.service.backends.values()
        return next((one.pages for one in backends if isinstance(one, DownloadBackend)), None)

    def preparing(self, model: Model, addresses: Mapping[str, str]) -> Prepare | None:
        """Return the step that downloads URL inputs with SSRF protection; None without any."""
        if not addresses:
            return None
        longest = max_file_bytes(self._state, model.operation)
        url_fetcher = UrlFetcher(
            self._state.settings.fetch,
            longest,
            total_s=_MAX_FETCH_S,
            pages=self._pages() if model.operation in FIELDS else None,
        )

        @asynccontextmanager
        async def prepared(
            work: OperationRequest, sink: ProgressSink
        ) -> AsyncIterator[OperationRequest]:
            drafts: list[TempFile] = []
            try:
                files = {}
                for name, url in addresses.items():
                    async with self._fetching:
                        part = sink.part(0.0, _SHARE)
                        files[name] = await _brought(url_fetcher, name, url, part, drafts)
                yield replace(work, values={**work.values, **files}, prepare=None)
            finally:
                for draft in drafts:
                    draft.discard(beside=True)

        return prepared


async def _brought(
    url_fetcher: UrlFetcher, name: str, url: str, sink: ProgressSink, drafts: list[TempFile]
) -> Upload:
    """Download a file; errors name the field of its URL."""
    try:
        return await url_fetcher.fetch(url, sink, drafts)
    except errors.APIStatusError as error:
        if error.param == "url":
            error.param = name
        raise


def max_file_bytes(state: ServerState, operation: str) -> int:
    """Return the maximum file size of an operation, as for its own endpoint."""
    return OperationEndpoint(state, contract.operation(operation)).max_form_bytes


def _record_of(sent: Mapping[str, Any], max_bytes: int) -> dict[str, Any]:
    """Return the input for the prediction's record; it has the size limit of other JSON bodies."""
    _check_depth(sent)
    record: dict[str, Any] = without_data(dict(sent))
    try:
        length = len(json.dumps(record, allow_nan=False))
    except ValueError:
        raise invalid_input(
            "input: contains NaN or an infinite number, which JSON does not allow", "input"
        ) from None
    if length > max_bytes:
        raise _too_long("input", "the JSON without files", length, max_bytes)
    return record


def _too_long(
    field: str, what: str, size_bytes: int, max_bytes: int
) -> errors.RequestTooLargeError:
    return status_error(
        errors.RequestTooLargeError,
        f"{field}: {what} is too large (got {size_bytes} bytes, allowed {max_bytes})",
        param=field,
    )


def _check_depth(value: Any, depth: int = 0) -> None:
    """Check the nesting depth of an input."""
    if depth > _DEEPEST:
        raise invalid_input(f"input: nested too deeply (allowed {_DEEPEST} levels)", "input")
    if isinstance(value, (dict, list)):
        for one in value.values() if isinstance(value, dict) else value:
            _check_depth(one, depth + 1)


def _elsewhere(url: str) -> Upload:
    """Return a placeholder for a file that is not downloaded yet."""
    with suppress(ValueError):
        name = display_name(unquote(urlsplit(url).path.rpartition("/")[2], errors="replace"))
        return Upload(Path(os.devnull), name[:200] or "file", "", 0)
    return Upload(Path(os.devnull), "file", "", 0)
