"""Who does the work of a batch: the native core, the engines of this machine, or a server."""

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

#: Of a file that a server has made.
_MAX_OUTPUT_BYTES = 1 << 40
_TEXTS = ("ChatCompletion", "TextResponse", "OcrText")


class Executor(Protocol):
    """Does one item, for any number of threads.

    Attributes:
        workers: How many items at a time, unless the caller says so.
    """

    workers: int

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Does the work and stages what it makes.

        Args:
            fields: All fields, on the wire.
            item: Number of the item, under which it is staged.
            storage: Where to.

        Returns:
            The endings of the names that the staged files shall have, in their order.
        """
        ...

    def close(self) -> None:
        """Ends what was begun for this batch alone."""
        ...


class ClientExecutor:
    """Operations of a `Client` or a `Local`.

    Args:
        client: Who does them.
        spec: What is asked for.
        timeout_s: Seconds that one may take; None for the client's own deadlines.
        is_own: Whether it was made for this batch: then it is closed, and keeps no results.
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
        """Asks for it, and stages the files or texts of the answer."""
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
        """Has a `Local` forget the job: of a million results none shall be kept twice."""
        from polymux.local.local_file import LocalFile
        from polymux.local.sync_local import Local

        if not isinstance(self._client, Local):
            return
        files = [one.content for one in products if isinstance(one.content, LocalFile)]
        names = [one.path.name for one in files if one.path is not None]
        job = getattr(result, "id", None)
        with suppress(Exception):  # It costs room in a folder that goes with the batch.
            _forget_jobs(self._client, {job} if job else set(), names)

    def close(self) -> None:
        """Ends the engines that were started for this batch."""
        close = getattr(self._client, "close", None)
        if self._is_own and close is not None:
            close()


class ConversionExecutor:
    """Conversions of files to MP3 in the native core: no store and no event loop between.

    Threads do as well as processes here, as the core lets go of the interpreter while it works.

    Args:
        others: Does what is no plain conversion of a file, such as that of an address.
    """

    def __init__(self, others: ClientExecutor) -> None:
        self._others = others
        self.workers = 2 * (os.cpu_count() or 1)

    def run(self, fields: Mapping[str, Any], item: int, storage: OutputStore) -> list[str]:
        """Converts into the staging folder."""
        if not {"file"} <= fields.keys() <= {"file", *CONVERSION_FIELDS}:
            return self._others.run(fields, item, storage)
        from polymux.media.conversion import convert_to_mp3

        options: dict[str, Any] = {
            CONVERSION_FIELDS[name]: fields[name] for name in fields.keys() - {"file"}
        }
        # To an open file, as the batch itself brings it to the disk and gives it its name.
        with storage.staged(item, 0).open("wb") as file:
            convert_to_mp3(fields["file"], file, **options)
        return [".mp3"]

    def close(self) -> None:
        """Ends what the others have begun."""
        self._others.close()


def _forget_jobs(local: Local, jobs: set[str], names: list[str]) -> None:
    async def forget(inner: AsyncLocal) -> None:
        store = (await inner._opened()).store  # noqa: SLF001 - a batch is its owner

        def now() -> None:
            found = {file.job for name in names if (file := store.media.find(name))}
            store.forget(*(jobs | found))

        await store.run(now)

    local._run(forget)  # noqa: SLF001 - a batch is its owner


class ResultFile(NamedTuple):
    """One file of a result.

    Attributes:
        ending: What follows the stem in its name.
        content: The bytes, or the file.
    """

    ending: str
    content: bytes | MediaFile


def result_files(operation: str, result: Any) -> list[ResultFile]:
    """The files that a result becomes: media as they are, texts as ``.txt``, all else as ``.json``.

    A transcript becomes both: its text, and its stretches with their times.

    Raises:
        PredictionFailedError: A job has come to its end and has made nothing.
    """
    from polymux.client.methods.results import RESULTS
    from polymux.client.responses.prediction import files_of

    kind = RESULTS[operation]
    if operation == "transcribe":
        text = _line(result.text)
        return [ResultFile(".txt", text), ResultFile(".json", _json(result.output))]
    if kind in ("MediaFile", "Prediction"):
        # Of an output that is no address the latter says so.
        files = files_of(result) or [("", one) for one in result.images]
        if not files:
            raise PredictionFailedError("the job has come to its end and has made nothing")
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
    """The ending of the name that whoever made it has given it, where it is a harmless one."""
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
    """Who shall do it.

    Args:
        spec: What is to be done.
        client: Who was named; None for this machine.
        timeout_s: Seconds that one item may take.
        storage: Where engines of this machine may keep what they make until it is stored.
    """
    from polymux.client.options import MAX_GENERATION_S
    from polymux.client.sync_client import Client
    from polymux.local.sync_local import Local

    if client is None:
        # Who gives an item so long means it.
        max_s = max(MAX_GENERATION_S, timeout_s or 0.0)
        local = Local(storage.engines, max_generation_s=max_s)
        here = ClientExecutor(local, spec, timeout_s, is_own=True)
        is_plain = spec.operation == "convert_to_mp3" and timeout_s is None
        return ConversionExecutor(here) if is_plain and not spec.extra_body else here
    if isinstance(client, Client):
        # A pause that the server asks for is one of all threads, which this client cannot keep.
        told: Retry = client._settings.retry  # noqa: SLF001 - there is no other way to ask
        client = client.with_options(retry=told._replace(max_retry_after_s=0.0))
    return ClientExecutor(client, spec, timeout_s, is_own=False)
