"""``POST /v1/images/generations`` and ``/edits``: the operation ``generate_image``."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import re
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux import contract, errors
from polymux._util.text import shown
from polymux.server.compat.openai.errors import OpenAiEndpoint, selector, with_selector
from polymux.server.compat.openai.fields import GivenFields, checked
from polymux.server.http import body as bodies
from polymux.server.routes.operations import OperationEndpoint, job_fields
from polymux.server.routes.predictions import link
from polymux.service.errors import bad_request, status_error
from polymux.service.model import OperationRequest, Upload

if TYPE_CHECKING:
    from collections.abc import Iterable

    from polymux.contract import CheckedRequest
    from polymux.server.routes.endpoint import RequestContext
    from polymux.server.state import ServerState
    from polymux.service.job_table import Job

#: OpenAI's names of the operation's fields.
_NAMES = {"num_outputs": "n", "width": "size", "height": "size"}
_OWN = frozenset(("prompt", "image", "mask", *_NAMES))
_SIZE = re.compile(r"(\d{1,5})x(\d{1,5})", re.ASCII)


class WantedImages(NamedTuple):
    """A parsed image request; `form` is ``"url"`` or ``"b64_json"``."""

    request: CheckedRequest
    form: str


class ImageGenerations(OpenAiEndpoint, OperationEndpoint):
    """``POST /v1/images/generations``."""

    edits = False
    refuses_unknown = True

    def __init__(self, state: ServerState) -> None:
        super().__init__(state, contract.operation("generate_image"))
        self.query = ()
        self.accepted = {"multipart" if self.edits else "json"}

    async def handle(self, asked: RequestContext) -> None:
        access = asked.access
        self.encoding_of(access)
        with ExitStack() as files:
            if self.edits:
                fields = await self.read_fields(asked, files)
            else:
                limits, longest = self.state.settings.limits, self.max_json_bytes
                body = await bodies.whole_object(asked.receive, longest, limits, self.name)
                fields = list(body.items())
            fields, choice = with_selector(self.state.service.routes, self.name, fields)
            wanted = wanted_images(fields, edits=self.edits)
            work = OperationRequest.of(wanted.request, access.caller, access.request_id)
            work = choice.applied(work)
            job = await self.job_of(work, asked, files)
        if job.status != "succeeded":
            await self.tell(asked.send, job.failure, access.request_id, job_fields(job))
            return
        outputs = job.output if isinstance(job.output, list) else [job.output]
        made = [await self._picture(job, one, wanted.form) for one in outputs]
        answer = {"created": int(job.created_at), "data": made}
        await asked.send_json(200, answer, job_fields(job))

    async def _picture(self, job: Job, made: Any, form: str) -> dict[str, str]:
        name = made["file"]
        if form == "url":
            return {"url": link(self.state, job, name)}
        store = self.state.service.store
        file = await store.run(store.media.find, name)
        if file is None:
            raise status_error(
                errors.NotFoundError, "the image has expired. Generate it again", code="gone"
            )
        return {"b64_json": await asyncio.to_thread(_in_base64, store.media.open(file))}


class ImageEdits(ImageGenerations):
    """``POST /v1/images/edits``: generates images from an image."""

    edits = True


def wanted_images(fields: Iterable[tuple[str, Any]], *, edits: bool = False) -> WantedImages:
    """Convert a request of the OpenAI API to a request of the operation.

    Also accepts fields of the operation that OpenAI does not have, such as ``seed``.

    Raises:
        BadRequestError: A field is invalid or not supported.
        NotFoundError: The model is unknown.
    """
    given = GivenFields(fields)
    variants = contract.operation("generate_image").variants
    first = next(one for one in variants if edits == any(f.name == "image" for f in one.fields))
    model = selector("generate_image", given.text("model"), first.model or "")
    form = given.choice("response_format", ("url", "b64_json"), "url")
    prompt = given.text("prompt")
    if prompt is None:
        raise bad_request("prompt: missing. Describe the image", "prompt")
    own: list[tuple[str, Any]] = [("prompt", prompt)]
    number = given.one("n")
    if number is not None:
        own.append(("num_outputs", _as_text("n", number, form_text=edits)))
    size = _size(given.text("size"))
    if edits:
        own.append(("image", _source(given)))
        if size:
            raise bad_request(
                "size: not supported, because edits keep the size of the image. Omit this field",
                "size",
            )
    ignored = _check_rest(given, edits=edits)
    variant = next(one for one in variants if one.model == model)
    known = {one.name for one in variant.fields} - _OWN
    own += [(name, _as_text(name, value, form_text=edits)) for name, value in given.left(known)]
    request = checked("generate_image", [*own, *size], model, _NAMES)
    return WantedImages(replace(request, warnings=(*request.warnings, *ignored)), form)


def _size(text: str | None) -> list[tuple[str, str]]:
    """Return width and height; empty for the model's default size."""
    if text is None or text == "auto":
        return []
    found = _SIZE.fullmatch(text)
    if found is None:
        raise bad_request(
            f"size={shown(text)}: must be 'auto', or width and height such as 1024x1024", "size"
        )
    return [("width", found[1]), ("height", found[2])]


def _source(given: GivenFields) -> Upload:
    file = given.file("image")
    if file is None:
        raise bad_request("image: missing. Send the image in this field", "image")
    if given.one("mask") is not None:
        raise bad_request(
            "mask: transparency masks are not supported. Use /api/v1/modelhost/imagegeneration, "
            "which accepts masks with white areas to repaint",
            "mask",
        )
    return file


def _check_rest(given: GivenFields, *, edits: bool) -> list[str]:
    """Consume fields that may only have the value of the fixed behavior.

    Returns:
        Warnings about ignored fields.
    """
    given.only("quality", ("auto", "standard"), why="must be 'auto' or 'standard'")
    given.only("output_format", ("png",), why="must be 'png'")
    given.only("background", ("auto", "opaque"), why="transparent images are not supported")
    given.only("moderation", ("auto",), why="must be 'auto'")
    given.only("stream", (False, "false"), why="streaming is not supported. Omit this field")
    given.only("partial_images", (0, "0"), why="streaming is not supported. Omit this field")
    given.only("style", why="not supported. Describe the style in the prompt")
    if edits:
        given.only("input_fidelity", ("low",), why="must be 'low'")
    # In OpenAI's API they only identify a user for abuse detection.
    users = ("user", "safety_identifier")
    return [f"{name}: ignored" for name in users if given.text(name) is not None]


def _as_text(name: str, value: Any, *, form_text: bool) -> str:
    if isinstance(value, str) and (form_text or name != "n"):
        return value
    if isinstance(value, (bool, int, float)):
        return json.dumps(value)
    what = "a file" if isinstance(value, Upload) else shown(value)
    kind = "a number" if name == "n" else "a string, a number or a boolean"
    raise bad_request(f"{name}={what}: must be {kind}", name)


def _in_base64(descriptor: int) -> str:
    with os.fdopen(descriptor, "rb") as file:
        return base64.b64encode(file.read()).decode()
