from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract
from polymux.client.request import Request, build_request
from polymux.errors import InvalidRequestError
from support import requests
from support.form_parsers import File, starlette

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "model": "m"}
SOUND = b"RIFF\x00\xff\r\n--x\r\n"


def whole_body(request: Request) -> bytes:
    body = request.body
    return body if isinstance(body, bytes) else b"".join(body)


def received(request: Request) -> contract.CheckedRequest:
    """The request as a server reads it, with files as bytes."""
    model = dict(request.query).get("model")
    body = whole_body(request)
    assert request.length_bytes == len(body)
    if request.content_type == "application/json":
        return contract.read_json(request.operation, body, model=model)
    fields = [
        (part.name, part.content if isinstance(part, File) else part.value)
        for part in starlette(body, request.content_type)
    ]
    return contract.read_form(request.operation, fields, model=model)


@requests.each_field
def test_a_server_reads_what_was_given(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    values = requests.with_field(variant, field, requests.sample(field))
    given = {name: SOUND if value is requests.FILE else value for name, value in values.items()}
    if "written_as" in field.raw:
        given[field.name] = int(given[field.name])
    request = build_request(operation.name, given, model=variant.model)
    found = received(request)
    assert (request.path, request.variant) == (operation.path, variant.id)
    assert (found.variant, found.values, found.warnings) == (variant.id, given, ())


def test_values_are_sent_as_the_server_reads_them() -> None:
    """Whole numbers as integers, and no texts that mean "not set"."""
    given = {"prompt": "x", "width": 512.0, "scheduler": "", "negative_prompt": ""}
    expected = {"prompt": "x", "width": 512, "negative_prompt": ""}
    for model in (None, "lorenzomarines/astra"):
        values = received(build_request("generate_image", given, model=model)).values
        assert repr(values) == repr(expected)
    request = build_request("generate_image", {"prompt": "x", "num_inferences_steps": 4.0})
    assert json.loads(whole_body(request)) == {"prompt": "x", "num_inferences_steps": 4}
    assert b"4.0" not in whole_body(request)
    assert given["width"] == 512.0


@pytest.mark.parametrize(
    ("operation", "values", "variant"),
    [("upscale_image", {"image": SOUND, "scale": 3}, "B"), ("upscale_image", {"image": SOUND}, "A"),
     ("generate_image", {"prompt": "x"}, "A"),
     ("generate_image", {"prompt": "x", "refine_steps": 3}, "B"),
     ("generate_image", {"prompt": "x", "image": b"PNG"}, "B"),
     ("generate_image", {"prompt": "x", "guidance_scale": 0.5, "num_inference_steps": 90}, "C")],
)  # fmt: skip
def test_a_server_s_model_may_be_named(
    operation: str, values: dict[str, Any], variant: str
) -> None:
    """The request is checked as a variant that accepts its fields, in an encoding of all."""
    request = build_request(operation, values, model="my-model")
    assert (request.query, request.variant) == ((("model", "my-model"),), variant)
    assert request.content_type.startswith("multipart/form-data")
    for model in ("my/model", "", "realesrgan/"):
        with pytest.raises(InvalidRequestError):
            build_request(operation, values, model=model)
    with pytest.raises(InvalidRequestError):
        build_request("read_text", {"file": SOUND}, model="my-model")
    with pytest.raises(InvalidRequestError):
        build_request("generate_music", {"prompt_a": "x", "alpha": 7}, model="my-model")


@pytest.mark.parametrize("name", ["transcribe", "stt", "modelhost/stt", "/api/v1/modelhost/stt"])
def test_an_operation_has_several_names(name: str) -> None:
    request = build_request(name, {"audio": SOUND})
    assert request.target == (
        "/api/v1/modelhost/stt?model=turian%2Finsanely-fast-whisper-with-video"
    )


@pytest.mark.parametrize(
    ("operation", "values", "extra", "sent"),
    [
        ("chat", CHAT | {"messages": "Hi"}, None, CHAT),
        ("chat", CHAT, {"min_p": 0.1, "x": None}, {**CHAT, "min_p": 0.1, "x": None}),
        ("search_music", {"song": "x", "limit": 7}, None, {"song": "x", "limit": "7"}),
        ("search_music", {"song": "x"}, {"where": ["a"]}, {"song": "x", "where": ["a"]}),
        ("search_music", {"song": "x", "limit": None}, None, {"song": "x"}),
    ],
)
def test_bodies(
    operation: str, values: dict[str, Any], extra: dict[str, Any] | None, sent: Any
) -> None:
    before = dict(values)
    request = build_request(operation, values, extra_body=extra)
    assert json.loads(whole_body(request)) == sent
    assert request.query == ()
    assert values == before


@pytest.mark.parametrize(
    ("operation", "values", "model", "variant"),
    [
        ("generate_image", {"prompt": "x"}, None, "A"),
        ("generate_image", {"prompt": "x", "image": b"x"}, None, "B"),
        ("generate_image", {"prompt": "x", "image": None}, None, "A"),
        ("generate_image", {"prompt": "x", "image": b"x"},
         "playgroundai/playground-v2.5-1024px-aesthetic", "C"),
        ("upscale_image", {"image": b"x"}, None, "A"),
        ("upscale_image", {"image": b"x", "scale": 2}, None, "B"),
        ("upscale_image", {"image": b"x", "face_enhance": False}, None, "B"),
    ],
)  # fmt: skip
def test_fields_choose_the_variant(
    operation: str, values: dict[str, Any], model: str | None, variant: str
) -> None:
    request = build_request(operation, values, model=model)
    models = {one.id: one.model for one in contract.operation(operation).variants}
    assert (request.variant, request.query) == (variant, (("model", models[variant]),))


def test_a_model_keeps_the_version_it_was_given_with() -> None:
    model = "anotherjesse/zeroscope-v2-xl:9f747673945c"
    request = build_request("generate_video", {"prompt": "x"}, model=model)
    assert request.query == (("model", model),)


@pytest.mark.parametrize(
    ("operation", "values", "options", "named"),
    [
        ("generate_image", {"prompt": "x"}, {"model": "x/y"}, "x/y"),
        ("generate_image", {"prompt": "x"}, {"model": ""}, "bytedance/sdxl-lightning-4step"),
        ("search_music", {"song": "x"}, {"model": "x/y"}, "model"),
        ("search_music", {"song": "x", "limit": 51}, {}, "limit.*51.*50"),
        ("sing", {}, {}, "sing"),
        ("generate_music", {"prompt_a": "x"}, {"extra_body": {"num_inference_steps": 9}},
         "num_inference_steps"),
        ("generate_music", {"prompt_a": "x"}, {"extra_body": {"num_inferences_steps": 9}},
         "num_inferences_steps"),
        ("chat", CHAT, {"extra_body": {"api_base": "http://127.0.0.1"}}, "api_base"),
    ],
)  # fmt: skip
def test_requests_that_are_refused(
    operation: str, values: dict[str, Any], options: dict[str, Any], named: str
) -> None:
    with pytest.raises(polymux.InvalidRequestError, match=named):
        build_request(operation, values, **options)


def test_all_problems_come_at_once_and_before_any_file_is_opened(tmp_path: Path) -> None:
    values = {"image": tmp_path / "missing.png", "scale": 99, "face_enhanc": True}
    with pytest.raises(polymux.InvalidRequestError, match="face_enhance") as caught:
        build_request("upscale_image", values)
    assert {problem.field for problem in caught.value.problems} == {"scale", "face_enhanc"}
    with pytest.raises(polymux.InputNotFoundError):
        build_request("upscale_image", {"image": tmp_path / "missing.png"})


@pytest.mark.parametrize("extra", [["a"], "a", {1: 2}, {"tags": ["a"]}])
def test_extra_fields_that_a_form_cannot_carry(extra: Any) -> None:
    with pytest.raises(TypeError, match=r"extra_body|'tags'"):
        build_request("generate_video", {"prompt": "x"}, extra_body=extra)


def test_fields_come_before_files() -> None:
    values = {"audio": ("talk.mp3", SOUND), "task": "translate"}
    request = build_request("transcribe", values, extra_body={"loop": True})
    assert starlette(whole_body(request), request.content_type) == [
        ("task", "translate"),
        ("loop", "true"),
        File("audio", "talk.mp3", "audio/mpeg", SOUND),
    ]


def test_progress_is_that_of_the_body() -> None:
    reports: list[tuple[int, int | None]] = []
    request = build_request(
        "identify_song",
        {"file": io.BytesIO(SOUND * 1000)},
        on_progress=lambda sent, total: reports.append((sent, total)),
    )
    body = whole_body(request)
    assert reports[-1] == (len(body), len(body))


def test_lengths_that_are_not_known() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield SOUND

    async def read(request: Request) -> bytes:
        assert not isinstance(request.body, bytes)
        return b"".join([piece async for piece in request.body])

    request = build_request("identify_song", {"file": iter([SOUND])})
    assert request.length_bytes is None
    assert SOUND in whole_body(request)
    assert SOUND in asyncio.run(read(build_request("identify_song", {"file": pieces()})))
