"""A server in Replicate's form: its versions, its files, and what its refusals mean."""

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

#: For one read, which is asked for again: none that hangs is waited for as long as for the work.
_READ_S = 30.0
#: Of all the time that the work has: an answer that drips leaves some for another look.
_READ_SHARE = 0.25
_CLEANING_S = 2.0
_MAX_PAGES = 100
_MAX_FILE_NAME_BYTES = 200
#: What an address or a query may be made of.
_PLAIN = re.compile(r"[!-~]{1,4096}", re.ASCII)
_WHOLE_VERSION = 64
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,199}", re.ASCII)
_VERSION = re.compile(r"[0-9a-f]{64}", re.ASCII)
#: The callers' own faults, where it is this server that asks.
_CALLERS = (errors.BadRequestError, errors.RequestTooLargeError, errors.UnprocessableEntityError)


class FinalError(errors.InternalServerError):
    """An upstream's refusal that stays one, however often it is asked."""


class ReplicateServer(UpstreamServer):
    """Requests to one server in Replicate's form; see `UpstreamServer` for its arguments.

    Example:
        >>> from polymux.upstreams.replicate.client import ReplicateServer
        >>> ReplicateServer("replicate", "https://api.replicate.example/v1", "r8-secret")
        ReplicateServer('replicate', 'https://api.replicate.example/v1')
    """

    def __init__(self, *arguments: Any, **named: Any) -> None:
        super().__init__(*arguments, **named)
        self._versions: dict[Target, str] = {}
        self._last_words: set[asyncio.Future[None]] = set()

    def told(self, error: errors.PolymuxError, operation: str) -> errors.PolymuxError:
        """A failure as callers are told of it; versions are this server's own affair."""
        found = super().told(error, operation)
        status = error.status if isinstance(error, errors.APIStatusError) else None
        if status == 404:
            return self._final("it has no such model, version or prediction")
        if status == 422 and _is_about_version(error):
            return self._final("it has no such version of the model, or not for this account")
        if status is not None and 300 <= status < 500 and type(found) is errors.InternalServerError:
            return self._final(f"it answered with status {status}")
        return found

    def _final(self, reason: str) -> FinalError:
        words = str(failed(self.name, reason))
        return status_error(FinalError, words, code="upstream_failed", status=502)

    async def read(self, operation: str, path: str) -> dict[str, Any]:
        """What lies at a path: an object.

        Raises:
            FinalError: It is refused, or there is nothing.
            APIStatusError: As `ask`; it may be had later.
        """
        try:
            async with asyncio.timeout(min(_READ_S, self.total_s(SLOW) * _READ_SHARE)):
                value = await self.ask_json(operation, "GET", path, repeatable=True)
        except TimeoutError:
            raise late(self.name) from None
        except _CALLERS:
            raise self._final("it refuses to tell what becomes of its work") from None
        if not isinstance(value, dict):
            raise failed(self.name, "its answer is no object")
        return value

    async def version(self, operation: str, target: Target) -> str:
        """The whole id of a version. It is asked for once; one that is whole already never.

        Args:
            operation: What it is for.
            target: A model with a version.

        Raises:
            APIStatusError: There is none that begins so, or it cannot be had.
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
                raise failed(self.name, "its list of versions is none")
            ids = [one.get("id") for one in listed or () if isinstance(one, dict)]
            found = [one for one in ids if isinstance(one, str) and one.startswith(target.version)]
            if len(found) == 1 and _VERSION.fullmatch(found[0]):
                return found[0]
            if found:
                raise self._final(f"the version {target.version} of {target.model} is not clear")
            if page.get("next") is None:
                break
            query = self._next_query(path, page["next"])
        raise self._final(f"it has no version {target.version} of the model {target.model}")

    def _next_query(self, path: str, address: Any) -> str:
        """Of a list's next page, which lies where this one does.

        Raises:
            FinalError: It lies anywhere else, where the key has no business.
        """
        base, mark, query = address.partition("?") if isinstance(address, str) else ("", "", "")
        if base != f"{self.base_url}{path}" or not mark or not _PLAIN.fullmatch(query):
            raise self._final("its list goes on at another address")
        return f"?{query}"

    async def upload(self, operation: str, file: Upload, kept: list[str]) -> str:
        """Sends a file from where it lies; gives the address that an input names it by.

        Args:
            operation: What it is for.
            file: The file.
            kept: The id of what is kept there is added, for `forget`.

        Raises:
            APIStatusError: It is not taken, or kept where nobody should look for it.
        """
        # By its name: the sender's word for its type is nobody's business.
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
            raise failed(self.name, "it keeps a file at what is neither its own address nor https")
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
        """Removes files there, as far as that can be done soon."""
        paths = [f"/files/{one}" for one in files if _ID.fullmatch(one)]
        if paths:
            await self.lasting(self._soon("DELETE", paths))

    async def cancel(self, prediction: str) -> None:
        """Ends a prediction there, as far as that can be done soon."""
        await self.lasting(self._soon("POST", [f"/predictions/{prediction}/cancel"]))

    async def _soon(self, method: str, paths: list[str]) -> None:
        asking = [
            asyncio.ensure_future(self.ask("predictions", method, path, repeatable=True))
            for path in paths
        ]
        await asyncio.wait(asking, timeout=_CLEANING_S)
        for one in asking:
            one.cancel()
        # What they failed with is nobody's business any more.
        await asyncio.gather(*asking, return_exceptions=True)

    async def lasting(self, words: Coroutine[Any, Any, None]) -> None:
        """Waits for last words; they are said to the end where whoever waits is cancelled."""
        saying = asyncio.ensure_future(words)
        self._last_words.add(saying)
        saying.add_done_callback(self._last_words.discard)
        await asyncio.shield(saying)

    async def said(self) -> None:
        """Waits for the last words that are on their way: 3 s at most."""
        while self._last_words:
            await asyncio.wait(self._last_words)

    def id_of(self, value: object) -> str:
        """The id of a prediction.

        Raises:
            InternalServerError: It has none.
        """
        found = value.get("id") if isinstance(value, dict) else None
        if not isinstance(found, str) or not _ID.fullmatch(found):
            raise failed(self.name, "its answer is no prediction")
        return found


def _is_about_version(error: errors.PolymuxError) -> bool:
    body = error.body if isinstance(error, errors.APIStatusError) else None
    title = body.get("title") if isinstance(body, dict) else None
    return isinstance(title, str) and "version" in title.lower()


def _short_name(name: str) -> str:
    """A file's name, cut so that its extension stays."""
    if len(name.encode("utf-8", "replace")) <= _MAX_FILE_NAME_BYTES:
        return name or "file"
    suffix = PurePath(name).suffix[:20]
    return f"file{suffix}"
