"""Images at upstreams in OpenAI's form."""

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

#: What becomes of the interface's fields; the others have no place in OpenAI's.
_MAPPED = ("prompt", "width", "height", "num_outputs", "model")


def refuse_image(name: str, work: OperationRequest) -> None:
    """Raises for pictures that begin with one.

    Raises:
        NoBackendError: It should begin with `image` or `mask`.
    """
    for field in ("image", "mask"):
        if field in work.values:
            raise status_error(
                errors.NoBackendError,
                f"the upstream {name} makes pictures of descriptions alone: leave {field} out",
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
    """The request as OpenAI has it; what is left out is said in the log.

    Args:
        fields: Fields of the interface that this upstream takes by our names.
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
            sink.log(f"{name}: the upstream has no such option, so it is left out")
    return body


async def images(
    server: UpstreamServer,
    value: Any,
    work: OperationRequest,
    sink: ProgressSink,
    policy: FetchPolicy,
) -> list[OutputFile]:
    """The pictures of an answer, as files of this server's store.

    Args:
        policy: What may be fetched beyond the public Internet and the upstream's own host.

    Raises:
        APIStatusError: They are none, or cannot be fetched.
    """
    found = value.get("data") if isinstance(value, dict) else None
    wanted = work.values.get("num_outputs", 1)
    if not isinstance(found, list) or not found or len(found) > wanted:
        raise failed(server.name, f"its answer has not the {wanted} pictures that were asked for")
    if len(found) < wanted:
        sink.log(f"num_outputs: the upstream made {len(found)} of {wanted}")
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
    told = value if isinstance(value, dict) else {}
    encoded, url = told.get("b64_json"), told.get("url")
    if isinstance(encoded, str) and encoded:
        data = await asyncio.to_thread(decoded, encoded)
        if data is None:
            raise failed(server.name, "its answer has a picture that is no base64")
        content_type = picture_type(data)
        if content_type is None:
            raise failed(server.name, "its answer has a picture that is none")
        made = await kept(sink, data, content_type, stem)
        await whole(server, made, content_type)
        return made
    if isinstance(url, str) and url:
        made = await fetched(server, url, sink, policy, stem)
        return await judged(server, made, "image", stem)
    raise failed(server.name, "its answer has no picture")
