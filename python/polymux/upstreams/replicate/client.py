"""Requests to a Replicate-compatible server: versions, files, predictions and errors."""

from __future__ import annotations

import asyncio
import re
from pathlib import PurePath
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from polymux import errors
from polymux.client.multipart import multipart_body
from polymux.client.options import SLOW
from polymux.config import host_of
from polymux.service.errors import status_error
from polymux.upstreams.client import UpstreamServer
from polymux.upstreams.error_mapping import failed, late

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from polymux.service.model import Upload
    from polymux.upstreams.replicate.models import Target

#: Maximum timeout of one status request; later requests repeat it.
_READ_S = 30.0
#: Share of the total timeout for one status request: a slow response leaves time for another.
_READ_SHARE = 0.25
_CLEANING_S = 2.0
_MAX_PAGES = 100
_MAX_FILE_NAME_BYTES = 200
#: Allowed characters of a URL or query.
_PLAIN = re.compile(r"[!-~]{1,4096}", re.ASCII)
_WHOLE_VERSION = 64
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,199}", re.ASCII)
_VERSION = re.compile(r"[0-9a-f]{64}", re.ASCII)
#: Errors that blame a client; wrong for requests that this server makes itself.
_CALLERS = (errors.BadRequestError, errors.RequestTooLargeError, errors.UnprocessableEntityError)


class FinalError(errors.InternalServerError):
    """An upstream's error that a retry would not change."""


class ReplicateServer(UpstreamServer):
    """Sends requests to one Replicate-compatible server; arguments as of `UpstreamServer`.

    Example:
        >>> from polymux.upstreams.replicate.client import ReplicateServer
        >>> ReplicateServer("replicate", "https://api.replicate.example/v1", "r8-secret")
        ReplicateServer('replicate', 'https://api.replicate.example/v1')
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._versions: dict[Target, str] = {}
        self._cleanup_tasks: set[asyncio.Future[None]] = set()

    def convert_error(self, error: errors.PolymuxError, operation: str) -> errors.PolymuxError:
        """Convert an error of this upstream to an error for clients.

        Errors about model versions do not blame the client, because the operator configured them.
        """
        found = super().convert_error(error, operation)
        status = error.status if isinstance(error, errors.APIStatusError) else None
        if status == 404:
            return self._final("it returned status 404 (unknown model, version or prediction)")
        if status == 422 and _is_about_version(error):
            return self._final("it rejected the version of the model as unknown or not allowed")
        if status is not None and 300 <= status < 500 and type(found) is errors.InternalServerError:
            return self._final(f"it returned status {status}")
        return found

    def _final(self, reason: str) -> FinalError:
        words = str(failed(self.name, reason))
        return status_error(FinalError, words, code="upstream_failed", status=502)

    async def read(self, operation: str, path: str) -> dict[str, Any]:
        """Read the JSON object at a path.

        Raises:
            FinalError: It is missing or not allowed.
            APIStatusError: As `ask`; a retry may succeed.
        """
        try:
            async with asyncio.timeout(min(_READ_S, self.total_s(SLOW) * _READ_SHARE)):
                value = await self.ask_json(operation, "GET", path, repeatable=True)
        except TimeoutError:
            raise late(self.name) from None
        except _CALLERS:
            raise self._final(
                "it rejected a GET request for a prediction or a list of versions"
            ) from None
        if not isinstance(value, dict):
            raise failed(self.name, "its response is not a JSON object")
        return value

    async def version(self, operation: str, target: Target) -> str:
        """Return the full id of a model version; requests it once if it is abbreviated.

        Args:
            operation: The operation, for error messages.
            target: A model with a version.

        Raises:
            APIStatusError: The version is unknown, or the request failed.
        """
        if len(target.version) == _WHOLE_VERSION:
            return target.version
        if target not in self._versions:
            self._versions[target] = await self._found_version(operation, target)
        return self._versions[target]

    async def _found_version(self, operation: str, target: Target) -> str:
        path = f"/models/{target.model}/versions"
        query = ""
        for _ in range(_MAX_PAGES):
            page = await self.read(operation, f"{path}{query}")
            listed = page.get("results")
            if listed is not None and not isinstance(listed, list):
                raise failed(self.name, "its list of versions is invalid")
            ids = [one.get("id") for one in listed or () if isinstance(one, dict)]
            found = [one for one in ids if isinstance(one, str) and one.startswith(target.version)]
            if len(found) == 1 and _VERSION.fullmatch(found[0]):
                return found[0]
            if found:
                raise self._final(
                    f"the version {target.version} of {target.model} is ambiguous. Use the full "
                    "version ID (64 hexadecimal digits)"
                )
            if page.get("next") is None:
                break
            query = self._next_query(path, page["next"])
        raise self._final(f"the model {target.model} has no version {target.version}")

    def _next_query(self, path: str, address: Any) -> str:
        """Return the query of a list's next page, which must have the same path.

        Raises:
            FinalError: It has another URL, which must not receive the API key.
        """
        base, mark, query = address.partition("?") if isinstance(address, str) else ("", "", "")
        if base != f"{self.base_url}{path}" or not mark or not _PLAIN.fullmatch(query):
            raise self._final("its list of versions continues at another URL, which is not allowed")
        return f"?{query}"

    async def upload(self, operation: str, file: Upload, kept: list[str]) -> str:
        """Upload a file by streaming it; returns its URL for a model's input.

        Args:
            operation: The operation, for error messages.
            file: The file.
            kept: Receives the id of the uploaded file, for `forget`.

        Raises:
            APIStatusError: The upload failed, or the returned URL is not allowed.
        """
        # Send the name without the client's content type, which is not trusted.
        part = ("content", (_short_name(file.file_name), file.path))
        body = multipart_body((), [part], awaited=True)
        answer = await self.ask(
            operation, "POST", "/files", body, content_type=body.content_type, usual=SLOW
        )
        value = self.parsed(answer)
        value = value if isinstance(value, dict) else {}
        if isinstance(value.get("id"), str):
            kept.append(value["id"])
        urls = value.get("urls")
        address = urls.get("get") if isinstance(urls, dict) else None
        if not isinstance(address, str) or not self._is_theirs(address):
            raise failed(
                self.name,
                "it returned an invalid URL for an uploaded file (allowed: https, or its own host)",
            )
        return address

    def _is_theirs(self, address: str) -> bool:
        if not _PLAIN.fullmatch(address):
            return False
        try:
            parts = urlsplit(address)
        except ValueError:
            return False
        if not parts.hostname or "@" in parts.netloc:
            return False
        own = self.base_url.partition("://")[0]
        return parts.scheme == "https" or (
            parts.scheme == own and host_of(address.partition("?")[0]) == self.host
        )

    async def forget(self, files: Iterable[str]) -> None:
        """Delete uploaded files; gives up after a short time."""
        paths = [f"/files/{one}" for one in files if _ID.fullmatch(one)]
        if paths:
            await self.lasting(self._soon("DELETE", paths))

    async def cancel(self, prediction: str) -> None:
        """Cancel a prediction; gives up after a short time."""
        await self.lasting(self._soon("POST", [f"/predictions/{prediction}/cancel"]))

    async def _soon(self, method: str, paths: list[str]) -> None:
        asking = [
            asyncio.ensure_future(self.ask("predictions", method, path, repeatable=True))
            for path in paths
        ]
        await asyncio.wait(asking, timeout=_CLEANING_S)
        for one in asking:
            one.cancel()
        # Errors of cleanup requests have no consequence.
        await asyncio.gather(*asking, return_exceptions=True)

    async def lasting(self, cleanup: Coroutine[Any, Any, None]) -> None:
        """Await a cleanup request; it continues if the awaiting task is canceled."""
        task = asyncio.ensure_future(cleanup)
        self._cleanup_tasks.add(task)
        task.add_done_callback(self._cleanup_tasks.discard)
        await asyncio.shield(task)

    async def wait_for_cleanup(self) -> None:
        """Wait for running cleanup requests, at most 3 s."""
        while self._cleanup_tasks:
            await asyncio.wait(self._cleanup_tasks)

    def id_of(self, value: object) -> str:
        """Return the id of a prediction.

        Raises:
            InternalServerError: It has no valid id.
        """
        found = value.get("id") if isinstance(value, dict) else None
        if not isinstance(found, str) or not _ID.fullmatch(found):
            raise failed(self.name, "its response is not a prediction")
        return found


def _is_about_version(error: errors.PolymuxError) -> bool:
    body = error.body if isinstance(error, errors.APIStatusError) else None
    title = body.get("title") if isinstance(body, dict) else None
    return isinstance(title, str) and "version" in title.lower()


def _short_name(name: str) -> str:
    """Shorten a file name and keep its extension."""
    if len(name.encode("utf-8", "replace")) <= _MAX_FILE_NAME_BYTES:
        return name or "file"
    suffix = PurePath(name).suffix[:20]
    return f"file{suffix}"
