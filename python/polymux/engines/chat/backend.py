"""Backend of chat engines: model names, and opening of images before the engine gets them.

Images are sent in the request or by URL. URLs are downloaded only with SSRF protection. The media
engine opens all images, and the engine's process gets only pixels.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import shown
from polymux.engines.base import context_tokens
from polymux.engines.chat.requests import check_sizes
from polymux.engines.media.backend import MediaDelegatingBackend, upload_of
from polymux.engines.media.engine import LOAD_PICTURES, write_new
from polymux.fetch.fetcher import FetchLimits, FetchPolicy, afetch
from polymux.service.errors import bad_request, status_error
from polymux.service.model import Upload, buffered_sink

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Mapping, Sequence
    from contextlib import AbstractAsyncContextManager

    from polymux.engines.registry import BackendContext
    from polymux.fetch.fetcher import Fetched
    from polymux.service.backend import Backend
    from polymux.service.model import OperationRequest, ProgressSink
    from polymux.service.temporary_files import TempFile

#: Limit per request.
MAX_IMAGES = 20
_PICTURE_BYTES = 20 << 20
#: Models do not use more. Larger images are scaled down when they are opened.
_MAX_SIDE_PX = 2048
_FETCH = FetchLimits(body_bytes=_PICTURE_BYTES, total_ms=30_000, idle_ms=10_000)
#: Requests whose images are downloaded at the same time; others wait.
_MAX_FETCHING = 8
#: Statuses of the media engine for invalid images; the chat API returns 400 for them.
_NO_PICTURE = (415, 422)


class ChatBackend(MediaDelegatingBackend):
    """A chat engine with the media engine in front of it.

    Args:
        media: Backend of the media engine, which opens images.
        models: Accepted model names; None accepts all.
        sees: Whether the model supports images.
        window_tokens: Context length of the model in tokens. Default: unknown.
    """

    def __init__(
        self,
        engine: Backend,
        media: Backend,
        *,
        models: Sequence[str] | None = None,
        sees: bool = False,
        policy: FetchPolicy | None = None,
        window_tokens: int | None = None,
    ) -> None:
        super().__init__(engine, media)
        self.models = None if models is None else tuple(models)
        self._sees = sees
        self._policy = policy or FetchPolicy()
        self._fetching = asyncio.Semaphore(_MAX_FETCHING)
        self._window_tokens = window_tokens

    def refuse(self, work: OperationRequest) -> None:
        urls = pictures_of(work)
        if urls and not self._sees:
            raise bad_request(
                "this model does not support images. Use another model", param_of(work)
            )
        check_count(urls, work)
        check_sizes(work.values, self._window_tokens)
        self._inner.refuse(work)

    def window_tokens(self) -> int | None:
        return self._window_tokens

    def prepared(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        return self._fetched(work, sink) if any(map(is_elsewhere, pictures_of(work))) else None

    @asynccontextmanager
    async def _fetched(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[OperationRequest]:
        """Yield the request with downloaded images as files, which are deleted afterwards."""
        drafts: list[TempFile] = []
        try:
            files: dict[str, Upload] = {}
            async with self._fetching:
                for number, url in enumerate(pictures_of(work)):
                    if is_elsewhere(url):
                        drafts.append(sink.draft(0))
                        fetched = await _picture(url, param_of(work), self._policy, drafts[-1].path)
                        drafts[-1].reserve(fetched.body_bytes)
                        files[f"fetched_{number}"] = _file_of(drafts[-1], fetched.body_bytes)
            yield replace(work, values={**work.values, **files})
        finally:
            for draft in drafts:
                draft.discard(beside=True)

    def opened(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AbstractAsyncContextManager[OperationRequest] | None:
        return self._opened(work, sink) if pictures_of(work) else None

    @asynccontextmanager
    async def _opened(
        self, work: OperationRequest, sink: ProgressSink
    ) -> AsyncIterator[OperationRequest]:
        """Yield the request with pixels in place of images, which are deleted afterwards."""
        drafts: list[TempFile] = []
        try:
            values = {name: one for name, one in work.values.items() if not isinstance(one, Upload)}
            values["pictures"] = []
            for number, url in enumerate(pictures_of(work)):
                file = work.values.get(f"fetched_{number}")
                if not isinstance(file, Upload):  # Clients cannot send uploads.
                    file = await self._sent(url, work, sink, drafts)
                found = await self._pixels(work, file, sink, drafts)
                values[f"pixels_{number}"] = found.pop("pixels")
                values["pictures"].append(found)
            yield replace(work, values=values)
        finally:
            for draft in drafts:
                draft.discard()

    async def _sent(
        self, url: object, work: OperationRequest, sink: ProgressSink, drafts: list[TempFile]
    ) -> Upload:
        """Write an image from the request to a file."""
        data = await picture_data(url, param_of(work), self._policy)
        draft = sink.draft(len(data))
        drafts.append(draft)
        await asyncio.to_thread(write_new, draft.path, data)
        return _file_of(draft, len(data))

    async def _pixels(
        self, work: OperationRequest, file: Upload, sink: ProgressSink, drafts: list[TempFile]
    ) -> dict[str, Any]:
        wanted = {"file": file, "pages": 1, "mode": "rgb", "max_side_px": _MAX_SIDE_PX}
        try:
            step = work.step(LOAD_PICTURES, wanted)
            product = await self._media.run(step, buffered_sink(sink.draft))
        except errors.APIStatusError as error:
            if error.status not in _NO_PICTURE:
                raise
            raise bad_request(str(error), param_of(work)) from None
        found: dict[str, Any] = product.output["pictures"][0]
        found["pixels"] = upload_of(found["pixels"], drafts)
        return found


def chat_backend(engine: Backend, context: BackendContext) -> ChatBackend:
    return ChatBackend(
        engine,
        context.media,
        models=chat_names(context.name, context.options),
        sees=bool(context.options.get("mmproj")),
        policy=context.policy,
        window_tokens=context_tokens(context.options),
    )


def chat_names(name: str, options: Mapping[str, Any]) -> list[str]:
    """Return the names of a chat engine's model: its aliases or its file name, and the engine.

    Responses use the first name.
    """
    aliases = options.get("aliases") or [Path(str(options.get("model", name))).stem]
    return list(dict.fromkeys([*map(str, aliases), name]))


def pictures_of(work: OperationRequest) -> list[object]:
    """Return the URLs of all images, unchecked, in the order in which the model gets them."""
    found: list[object] = []
    for message in work.values.get("messages") or ():
        content = message.get("content") if isinstance(message, dict) else None
        for part in content if isinstance(content, list) else ():
            if isinstance(part, dict) and "image_url" in part:
                picture = part["image_url"]
                found.append(picture.get("url") if isinstance(picture, dict) else picture)
    if work.values.get("image_url"):
        found.append(work.values["image_url"])
    return found


def check_count(urls: Sequence[object], work: OperationRequest) -> None:
    if len(urls) > MAX_IMAGES:
        message = f"too many images (got {len(urls)}, allowed {MAX_IMAGES})"
        raise bad_request(message, param_of(work))


async def picture_data(url: object, param: str, policy: FetchPolicy) -> bytes:
    """Return the bytes of a chat's image.

    Args:
        url: URL from the request, which may be a ``data:`` URL.
        param: Request field for errors.
        policy: Exceptions to SSRF protection.

    Raises:
        BadRequestError: The image is missing, or its URL was rejected (``url_refused``).
        RequestTooLargeError: It is larger than 20 MiB.
    """
    if isinstance(url, str) and not is_elsewhere(url):
        return await asyncio.to_thread(_inline, url, param)
    return (await _picture(url, param, policy)).data or b""


async def _picture(
    url: object, param: str, policy: FetchPolicy, path: Path | None = None
) -> Fetched:
    """Download an image to memory or to a new file.

    Raises:
        As `picture_data`.
    """
    if not isinstance(url, str):
        raise bad_request("invalid image (allowed: an http(s) URL or a data URL)", param)
    try:
        fetched = await afetch(url, policy=policy, limits=_FETCH, destination=path)
    except errors.URLRefusedError as error:
        code = "url_refused"
        raise status_error(errors.BadRequestError, str(error), code=code, param=param) from None
    except errors.PolymuxError as error:
        raise bad_request(f"cannot download the image: {error}", param) from None
    if not fetched.ok:
        raise bad_request(
            f"cannot download the image: the URL returned status {fetched.status}", param
        )
    return fetched


def is_elsewhere(url: object) -> bool:
    """Whether an image must be downloaded."""
    return isinstance(url, str) and url[:5].lower() != "data:"


def _file_of(draft: TempFile, size_bytes: int) -> Upload:
    return Upload(draft.path, "picture", "", size_bytes)


def param_of(work: OperationRequest) -> str:
    """Return the field with the chat's images, for errors."""
    return "image_url" if work.values.get("image_url") else "messages"


def _inline(url: str, param: str) -> bytes:
    kind, comma, data = url.partition(",")
    words = kind.lower()
    if not comma or not words.startswith("data:image/") or not words.endswith(";base64"):
        raise bad_request(
            f"invalid image (got {shown(url[:60])}, allowed a data URL such as "
            "data:image/png;base64,DATA)",
            param,
        )
    if len(data) > _PICTURE_BYTES * 4 // 3 + 4:
        message = f"image too large (allowed: {_PICTURE_BYTES >> 20} MiB)"
        raise status_error(errors.RequestTooLargeError, message, param=param)
    try:
        return base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        raise bad_request("invalid base64 in the data URL of an image", param) from None
