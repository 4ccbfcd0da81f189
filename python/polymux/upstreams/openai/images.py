"""Image generation on OpenAI-compatible upstreams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.service.errors import status_error
from polymux.upstreams.error_mapping import failed
from polymux.upstreams.files import decoded, fetched, judged, kept, picture_type, whole

if TYPE_CHECKING:
    from collections.abc import Sequence

    from polymux.fetch.fetcher import FetchPolicy
    from polymux.service.model import OperationRequest, OutputFile, ProgressSink
    from polymux.upstreams.client import UpstreamServer

#: API fields that OpenAI's request has in some form; other fields have no counterpart.
_MAPPED = ("prompt", "width", "height", "num_outputs", "model")


def refuse_image(name: str, work: OperationRequest) -> None:
    """Reject requests that start from an image.

    Raises:
        NoBackendError: The request contains `image` or `mask`.
    """
    for field in ("image", "mask"):
        if field in work.values:
            raise status_error(
                errors.NoBackendError,
                f"{field}: not supported by the upstream {name}. Omit this field",
                param=field,
            )


def image_request(
    work: OperationRequest,
    model: str,
    sink: ProgressSink,
    *,
    fields: Sequence[str],
    response_format: bool,
) -> dict[str, Any]:
    """Build the OpenAI request; logs fields that are ignored.

    Args:
        fields: API fields that this upstream accepts under our names.
    """
    values = work.values
    body: dict[str, Any] = {
        "model": model,
        "prompt": values["prompt"],
        "n": values.get("num_outputs", 1),
        "size": f"{values['width']}x{values['height']}",
    }
    if response_format:
        body["response_format"] = "b64_json"
    for name in sorted(work.given - set(_MAPPED)):
        if name in fields:
            body[name] = values[name]
        else:
            sink.warn(f"{name}: ignored, not supported by the upstream")
    return body


async def images(
    server: UpstreamServer,
    value: Any,
    work: OperationRequest,
    sink: ProgressSink,
    policy: FetchPolicy,
) -> list[OutputFile]:
    """Store the images of a response.

    Args:
        policy: Allowed hosts for downloads, beyond the public Internet and the upstream's host.

    Raises:
        APIStatusError: They are missing or invalid, or a download failed.
    """
    found = value.get("data") if isinstance(value, dict) else None
    wanted = work.values.get("num_outputs", 1)
    if not isinstance(found, list) or not found or len(found) > wanted:
        count = len(found) if isinstance(found, list) else 0
        raise failed(server.name, f"its response contains {count} images (requested: {wanted})")
    if len(found) < wanted:
        sink.warn(f"num_outputs: the upstream generated {len(found)} of {wanted} images")
    made: list[OutputFile] = []
    try:
        for number, one in enumerate(found):
            made.append(await _picture(server, one, f"image-{number}", sink, policy))
            sink.report((number + 1) / len(found))
    except BaseException:
        for picture in made:
            picture.draft.discard()
        raise
    return made


async def _picture(
    server: UpstreamServer, value: Any, stem: str, sink: ProgressSink, policy: FetchPolicy
) -> OutputFile:
    item = value if isinstance(value, dict) else {}
    encoded, url = item.get("b64_json"), item.get("url")
    if isinstance(encoded, str) and encoded:
        data = await asyncio.to_thread(decoded, encoded)
        if data is None:
            raise failed(server.name, "its response contains an image with invalid base64")
        content_type = picture_type(data)
        if content_type is None:
            raise failed(server.name, "its response contains an image in an unknown format")
        made = await kept(sink, data, content_type, stem)
        await whole(server, made, content_type)
        return made
    if isinstance(url, str) and url:
        made = await fetched(server, url, sink, policy, stem)
        return await judged(server, made, "image", stem)
    raise failed(server.name, "its response contains no image")
