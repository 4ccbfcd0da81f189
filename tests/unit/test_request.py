"""Requests as they go over the wire, read back by what servers read them with."""

from __future__ import annotations

import asyncio
import io
import json
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract
from polymux.client.request import Request, build_request
from support import requests
from support.form_parsers import File, starlette

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

CHAT: dict[str, Any] = {"messages": [{"role": "user", "content": "Hi"}], "model": "m"}
SOUND = b"RIFF\x00\xff\r\n--x\r\n"

VARIANTS = [
    (operation, variant) for operation in contract.operations() for variant in operation.variants
]
FIELDS = [
    (operation, variant, field) for operation, variant in VARIANTS for field in variant.fields
]
FIELD_IDS = [f"{operation.name}{variant.id}-{field.name}" for operation, variant, field in FIELDS]


def whole_body(request: Request) -> bytes:
    body = request.body
    return body if isinstance(body, bytes) else b"".join(body)


def received(request: Request) -> contract.CheckedRequest:
    """What a server understands; files are bytes."""
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


@pytest.mark.parametrize(("operation", "variant", "field"), FIELDS, ids=FIELD_IDS)
def test_a_server_reads_what_was_given(
    operation: contract.Operation, variant: contract.Variant, field: contract.Field
) -> None:
    values = requests.with_field(variant, field, requests.sample(field))
    given = {name: SOUND if value is requests.FILE else value for name, value in values.items()}
    if "written_as" in field.raw:
        given[field.name] = int(given[field.name])
    request = build_request(operation.name, given, model=variant.model)
    assert request.path == operation.path
    assert request.variant == variant.id
    found = received(request)
    assert found.variant == variant.id
    assert found.values == given
    assert found.warnings == ()


@pytest.mark.parametrize("name", ["transcribe", "stt", "modelhost/stt", "/api/v1/modelhost/stt"])
def test_an_operation_has_several_names(name: str) -> None:
    request = build_request(name, {"audio": SOUND})
    assert (request.operation, request.path) == ("transcribe", "/api/v1/modelhost/stt")
    assert request.target == (
        "/api/v1/modelhost/stt?model=turian%2Finsanely-fast-whisper-with-video"
    )


def test_a_text_is_the_users_message() -> None:
    request = build_request("chat", {"messages": "Grüße 🎵", "model": "m"})
    assert json.loads(whole_body(request)) == {
        "messages": [{"role": "user", "content": "Grüße 🎵"}],
        "model": "m",
    }
    assert (request.query, request.target) == ((), "/api/v1/fastllm/chatcompletion")


def test_what_is_none_is_absent() -> None:
    request = build_request("generate_video", {"prompt": "waves", "fps": None, "seed": 0})
    assert received(request).values == {"prompt": "waves", "seed": 0}


def test_numbers_that_travel_as_texts() -> None:
    body = whole_body(build_request("search_music", {"song": "x", "limit": 7}))
    assert json.loads(body) == {"song": "x", "limit": "7"}
    with pytest.raises(polymux.InvalidRequestError, match="limit=51: must be from 1 to 50"):
        build_request("search_music", {"song": "x", "limit": 51})


@pytest.mark.parametrize(
    ("operation", "values", "model", "variant"),
    [
        ("generate_image", {"prompt": "x"}, None, "A"),
        ("generate_image", {"prompt": "x", "image": b"x"}, None, "B"),
        ("generate_image", {"prompt": "x", "image": None}, None, "A"),
        ("generate_image", {"prompt": "x", "image": b"x", "mask": b"y"}, None, "B"),
        (
            "generate_image",
            {"prompt": "x", "image": b"x"},
            "playgroundai/playground-v2.5-1024px-aesthetic",
            "C",
        ),
        ("upscale_image", {"image": b"x"}, None, "A"),
        ("upscale_image", {"image": b"x", "scale": 2}, None, "B"),
        ("upscale_image", {"image": b"x", "face_enhance": False}, None, "B"),
    ],
)
def test_fields_choose_the_variant(
    operation: str, values: dict[str, Any], model: str | None, variant: str
) -> None:
    request = build_request(operation, values, model=model)
    assert request.variant == variant
    (selector,) = request.query
    assert selector == (
        "model",
        next(v for o, v in VARIANTS if v.id == variant and o.name == operation).model,
    )


def test_a_model_keeps_the_version_it_was_given_with() -> None:
    request = build_request(
        "generate_video", {"prompt": "x"}, model="anotherjesse/zeroscope-v2-xl:9f747673945c"
    )
    assert request.query == (("model", "anotherjesse/zeroscope-v2-xl:9f747673945c"),)


def test_models_that_are_none() -> None:
    with pytest.raises(polymux.InvalidRequestError, match='there is no model "x/y"; there are'):
        build_request("generate_image", {"prompt": "x"}, model="x/y")
    with pytest.raises(polymux.InvalidRequestError, match='there is no model ""'):
        build_request("generate_image", {"prompt": "x"}, model="")
    with pytest.raises(polymux.InvalidRequestError, match="takes no model selector"):
        build_request("search_music", {"song": "x"}, model="x/y")
    with pytest.raises(polymux.InvalidRequestError, match="no operation 'sing'"):
        build_request("sing", {})


def test_all_problems_come_at_once_and_before_any_file_is_opened(tmp_path: Path) -> None:
    values = {"image": tmp_path / "missing.png", "scale": 99, "face_enhanc": True}
    with pytest.raises(polymux.InvalidRequestError) as caught:
        build_request("upscale_image", values)
    assert {problem.field for problem in caught.value.problems} == {"scale", "face_enhanc"}
    assert "face_enhance" in str(caught.value)
    with pytest.raises(polymux.InputNotFoundError):
        build_request("upscale_image", {"image": tmp_path / "missing.png"})


def test_extra_fields_go_along() -> None:
    chat = build_request("chat", CHAT, extra_body={"min_p": 0.1, "x": None})
    assert json.loads(whole_body(chat)) == {**CHAT, "min_p": 0.1, "x": None}
    video = build_request("generate_video", {"prompt": "x"}, extra_body={"loop": True})
    assert ("loop", "true") in starlette(whole_body(video), video.content_type)
    search = build_request("search_music", {"song": "x"}, extra_body={"where": ["a"]})
    assert json.loads(whole_body(search)) == {"song": "x", "where": ["a"]}


@pytest.mark.parametrize("name", ["num_inference_steps", "num_inferences_steps"])
def test_extra_fields_do_not_replace_those_of_the_contract(name: str) -> None:
    with pytest.raises(polymux.InvalidRequestError, match="give it as an argument"):
        build_request("generate_music", {"prompt_a": "x"}, extra_body={name: 10**9})


def test_extra_fields_that_would_steer_the_server_are_refused() -> None:
    with pytest.raises(polymux.InvalidRequestError, match="api_base"):
        build_request("chat", CHAT, extra_body={"api_base": "http://127.0.0.1"})


@pytest.mark.parametrize("extra", [["a"], "a", {1: 2}, {None: 2}])
def test_extra_fields_are_a_mapping_of_names(extra: Any) -> None:
    with pytest.raises(TypeError, match="extra_body"):
        build_request("chat", CHAT, extra_body=extra)


def test_what_a_form_cannot_carry() -> None:
    with pytest.raises(TypeError, match="'tags'"):
        build_request("generate_video", {"prompt": "x"}, extra_body={"tags": ["a"]})


def test_the_callers_values_are_left_alone() -> None:
    values = {"messages": "Hi", "model": "m", "seed": None}
    before = dict(values)
    build_request("chat", values, extra_body={"a": 1})
    assert values == before


def test_fields_come_before_files() -> None:
    request = build_request("transcribe", {"audio": ("talk.mp3", SOUND), "task": "translate"})
    parts = starlette(whole_body(request), request.content_type)
    assert [part.name for part in parts] == ["task", "audio"]
    assert parts[1] == File("audio", "talk.mp3", "audio/mpeg", SOUND)


def test_progress_is_that_of_the_body() -> None:
    told: list[tuple[int, int | None]] = []
    request = build_request(
        "identify_song",
        {"file": io.BytesIO(SOUND * 1000)},
        on_progress=lambda sent, total: told.append((sent, total)),
    )
    body = whole_body(request)
    assert told[-1] == (len(body), len(body))


def test_lengths_that_are_not_known() -> None:
    def pieces() -> Iterator[bytes]:
        yield SOUND

    request = build_request("identify_song", {"file": pieces()})
    assert request.length_bytes is None
    assert SOUND in whole_body(request)


def test_async_iterables_are_read_by_async_readers() -> None:
    async def pieces() -> AsyncIterator[bytes]:
        yield SOUND

    async def read(request: Request) -> bytes:
        assert not isinstance(request.body, bytes)
        return b"".join([piece async for piece in request.body])

    request = build_request("identify_song", {"file": pieces()})
    assert SOUND in asyncio.run(read(request))
