"""Executors run the items of a batch: the native core, local engines or a server."""

from __future__ import annotations

import os
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol
from urllib.parse import unquote, urlsplit

from polymux.errors import PredictionFailedError
from polymux.media.options import CONVERSION_FIELDS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.batches.output_store import OutputStore
    from polymux.batches.spec import BatchSpec
    from polymux.client.methods.synchronous import Operations
    from polymux.client.options import Retry
    from polymux.local.async_local import AsyncLocal
    from polymux.local.sync_local import Local
    from polymux.media.media_file import MediaFile

#: Maximum size of an output file from a server.
_MAX_OUTPUT_BYTES = 1 << 40
_TEXTS = ("ChatCompletion", "TextResponse", "OcrText")


class Executor(Protocol):
    """Runs items. Thread-safe.

    Attributes:
        workers: Default number of parallel items.
    """

    workers: int

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Run an item and stage its outputs.

        Args:
            fields: All fields by wire name.
            item: Number of the item, for the staging files.
            storage: Where to stage the outputs.

        Returns:
            The name endings of the staged files, in their order.
        """
        ...

    def close(self) -> None:
        """Release the resources of this batch."""
        ...


class ClientExecutor:
    """Runs items with a `Client` or a `Local`.

    Args:
        client: Runs the operation.
        spec: The operation and its common fields.
        timeout_s: Timeout of one item in seconds; None for the client's timeouts.
        is_own: Whether the client was created for this batch. It is then closed at the end, and its
            stored results are deleted.
    """

    workers = 4

    def __init__(
        self, client: Operations, spec: BatchSpec, timeout_s: float | None, *, is_own: bool
    ) -> None:
        self._client = client
        self._spec = spec
        self._timeout_s = timeout_s
        self._is_own = is_own

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Run the operation and stage the files or texts of the result."""
        result = self._client.request(
            self._spec.operation,
            fields,
            model=self._spec.model,
            extra_body=self._spec.extra_body or None,
            timeout=self._timeout_s,
        )
        products = result_files(self._spec.operation, result)
        for number, one in enumerate(products):
            if isinstance(one.content, bytes):
                storage.write(item, number, one.content)
            else:
                self._stage(one.content, item, number, storage)
        if self._is_own:
            self._forget(result, products)
        return [one.ending for one in products]

    def _stage(self, file: MediaFile, item: int, number: int, storage: OutputStore) -> None:
        from polymux.client.remote_file import RemoteFile

        if isinstance(file, RemoteFile):
            file.save(storage.staged(item, number), limit_bytes=_MAX_OUTPUT_BYTES)
        elif file.path is not None:
            storage.copy(item, number, file.path)
        else:
            storage.write(item, number, file.read())

    def _forget(self, result: Any, products: list[ResultFile]) -> None:
        """Delete the job from a `Local`: the results are already stored in the batch."""
        from polymux.local.local_file import LocalFile
        from polymux.local.sync_local import Local

        if not isinstance(self._client, Local):
            return
        files = [one.content for one in products if isinstance(one.content, LocalFile)]
        names = [one.path.name for one in files if one.path is not None]
        job = getattr(result, "id", None)
        with suppress(Exception):  # Harmless: the directory is deleted at the end of the batch.
            _forget_jobs(self._client, {job} if job else set(), names)

    def close(self) -> None:
        """Close a client that was created for this batch."""
        close = getattr(self._client, "close", None)
        if self._is_own and close is not None:
            close()


class ConversionExecutor:
    """Converts files to MP3 directly in the native core, without a job store or event loop.

    Threads are as fast as processes, because the core releases the GIL while it works.

    Args:
        others: Runs items that are not plain file conversions, such as those of a URL.
    """

    def __init__(self, others: ClientExecutor) -> None:
        self._others = others
        self.workers = 2 * (os.cpu_count() or 1)

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Convert the file and stage the MP3."""
        if not {"file"} <= fields.keys() <= {"file", *CONVERSION_FIELDS}:
            return self._others.run(fields, item, storage)
        from polymux.media.conversion import convert_to_mp3

        options: dict[str, Any] = {
            CONVERSION_FIELDS[name]: fields[name] for name in fields.keys() - {"file"}
        }
        # Write to an open file, because the batch syncs and renames it.
        with storage.staged(item, 0).open("wb") as file:
            convert_to_mp3(fields["file"], file, **options)
        return [".mp3"]

    def close(self) -> None:
        """Close the other executor."""
        self._others.close()


def _forget_jobs(local: Local, jobs: set[str], names: list[str]) -> None:
    async def forget(inner: AsyncLocal) -> None:
        store = (await inner._opened()).store  # noqa: SLF001 - the batch owns it

        def now() -> None:
            found = {file.job for name in names if (file := store.media.find(name))}
            store.forget(*(jobs | found))

        await store.run(now)

    local._run(forget)  # noqa: SLF001 - the batch owns it


class ResultFile(NamedTuple):
    """One file of a result.

    Attributes:
        ending: Part of the file name after the stem.
        content: The bytes, or the file.
    """

    ending: str
    content: bytes | MediaFile


def result_files(operation: str, result: Any) -> list[ResultFile]:
    """Return the files of a result: media unchanged, texts as ``.txt``, other results as ``.json``.

    A transcript becomes two files: its text, and its segments with times.

    Raises:
        PredictionFailedError: A job ended without output.
    """
    from polymux.client.methods.results import RESULTS
    from polymux.client.responses.prediction import files_of

    kind = RESULTS[operation]
    if operation == "transcribe":
        text = _line(result.text)
        return [ResultFile(".txt", text), ResultFile(".json", _json(result.output))]
    if kind in ("MediaFile", "Prediction"):
        # `images` raises an error for an output that is not a URL.
        files = files_of(result) or [("", one) for one in result.images]
        if not files:
            raise PredictionFailedError("the job ended without output")
        is_numbered = len(files) > 1 and not any(label for label, _ in files)
        labels = [
            str(number) if is_numbered else label for number, (label, _) in enumerate(files, 1)
        ]
        return [
            ResultFile((label and f"-{label}") + _suffix_of(file), file)
            for label, (_, file) in zip(labels, files, strict=True)
        ]
    if kind in _TEXTS and isinstance(result.text, str) and result.text:
        return [ResultFile(".txt", _line(result.text))]
    return [ResultFile(".json", _json(result.json()))]


def _suffix_of(file: MediaFile) -> str:
    """Return the suffix in the file's URL if it is harmless, else one for the content type."""
    import mimetypes

    address = str(getattr(file, "url", ""))
    suffix = "." + unquote(urlsplit(address).path).rpartition("/")[2].rpartition(".")[2]
    if 2 <= len(suffix) <= 6 and suffix[1:].isascii() and suffix[1:].isalnum():
        return suffix.lower()
    return mimetypes.guess_extension(file.content_type) or ".bin"


def _line(text: str) -> bytes:
    whole = text if text.endswith("\n") else text + "\n"
    return whole.encode("utf-8", "surrogatepass")


def _json(value: Any) -> bytes:
    import json

    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode("utf-8", "surrogatepass")


def executor_for(
    spec: BatchSpec, client: Operations | None, timeout_s: float | None, storage: OutputStore
) -> Executor:
    """Create the executor of a batch.

    Args:
        spec: The operation and its common fields.
        client: Runs the operation; None for this computer.
        timeout_s: Timeout of one item in seconds.
        storage: Its directory stores the results of local engines until they are published.
    """
    from polymux.client.options import MAX_GENERATION_S
    from polymux.client.sync_client import Client
    from polymux.local.sync_local import Local

    if client is None:
        # A longer timeout also raises the limit on estimated durations.
        max_s = max(MAX_GENERATION_S, timeout_s or 0.0)
        local = Local(storage.engines, max_generation_s=max_s)
        here = ClientExecutor(local, spec, timeout_s, is_own=True)
        is_plain = spec.operation == "convert_to_mp3" and timeout_s is None
        return ConversionExecutor(here) if is_plain and not spec.extra_body else here
    if isinstance(client, Client):
        # The batch handles Retry-After for all threads together; the client must not wait itself.
        retry: Retry = client._settings.retry  # noqa: SLF001 - there is no public property
        client = client.with_options(retry=retry._replace(max_retry_after_s=0.0))
    return ClientExecutor(client, spec, timeout_s, is_own=False)
