"""/v1/images with the package openai and a scripted backend.

`engines/diffusion/test_generation_on_server.py` tests the real engine.
"""

from __future__ import annotations

import asyncio
import base64
from typing import TYPE_CHECKING, Any
from urllib.request import urlopen

import pytest
from support.lazy_imports import openai
from support.openai_compat import PICTURE, ScriptedModels, of, of_asyncio
from support.polymux_server import PolymuxServer, form

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LIGHTNING = "bytedance/sdxl-lightning-4step"
ASTRA = "lorenzomarines/astra"
BOAT = ("boat.png", b"a picture")


@pytest.fixture(scope="module")
def made() -> ScriptedModels:
    return ScriptedModels(max_concurrency=2)


@pytest.fixture
def client(server: PolymuxServer) -> Iterator[openai.OpenAI]:
    with of(server) as made:
        yield made


def test_pictures_by_their_links(client: openai.OpenAI, backend: ScriptedModels) -> None:
    made = client.images.generate(prompt="a lighthouse", n=2, size="1024x768")
    assert made.data is not None
    found = []
    for one in made.data:
        assert one.b64_json is None
        assert one.url is not None
        with urlopen(one.url, timeout=10) as answer:
            assert answer.headers["content-type"] == "image/png"
            found.append(answer.read())
    assert found == [PICTURE + b"0", PICTURE + b"1"]
    [work] = backend.began
    assert work.model == LIGHTNING
    assert (work.values["width"], work.values["height"]) == (1024, 768)
    assert work.values["prompt"] == "a lighthouse"


def test_pictures_as_they_are(client: openai.OpenAI, backend: ScriptedModels) -> None:
    made = client.images.generate(
        prompt="a lighthouse",
        model=ASTRA,
        response_format="b64_json",
        quality="auto",
        user="ada",
        extra_body={"seed": 7, "negative_prompt": "fog", "guidance_scale": 5.5},
    )
    assert made.data is not None
    [one] = made.data
    assert one.url is None
    assert base64.b64decode(one.b64_json or "") == PICTURE + b"0"
    [work] = backend.began
    assert (work.model, work.variant) == (ASTRA, "B")
    given = {name: work.values[name] for name in work.given}
    assert given == {
        "prompt": "a lighthouse", "seed": 7, "negative_prompt": "fog", "guidance_scale": 5.5,
    }  # fmt: skip


def test_edits_and_asyncio(server: PolymuxServer, backend: ScriptedModels) -> None:
    async def main() -> Any:
        async with of_asyncio(server) as client:
            return await client.images.edit(
                image=BOAT, prompt="at night", n=2, size="auto", response_format="b64_json",
                input_fidelity="low",
            )  # fmt: skip

    made = asyncio.run(main())
    assert len(made.data) == 2
    [work] = backend.began
    assert (work.model, work.variant) == (ASTRA, "B")
    assert work.values["image"].file_name == "boat.png"
    assert (work.values["prompt"], work.values["num_outputs"]) == ("at night", 2)


#: (unsupported request, field in the error).
NOT_MADE: list[tuple[dict[str, Any], str]] = [
    ({"n": 9}, "n"), ({"size": "1001x1000"}, "size"), ({"prompt": ""}, "prompt"),
    ({"quality": "hd"}, "quality"), ({"extra_body": {"hue": 1}}, "hue"),
    ({"response_format": "svg"}, "response_format"), ({"partial_images": 2}, "partial_images"),
    ({"extra_body": {"stream": True}}, "stream"), ({"extra_body": {"image": "x"}}, "image"),
]  # fmt: skip
NOT_EDITED: list[tuple[dict[str, Any], str]] = [
    ({"mask": BOAT}, "mask"), ({"image": [BOAT, BOAT]}, "image"), ({"size": "512x512"}, "size"),
    ({"n": 5}, "n"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("more", "param", "edit"),
    [(*one, False) for one in NOT_MADE] + [(*one, True) for one in NOT_EDITED],
)
def test_what_is_not_done_is_refused(
    client: openai.OpenAI, backend: ScriptedModels, more: dict[str, Any], param: str, edit: bool
) -> None:
    ask: Any = client.images.edit if edit else client.images.generate
    given = {"prompt": "a lighthouse"} | ({"image": BOAT} if edit else {})
    with pytest.raises(openai.BadRequestError) as refused:
        ask(**(given | more))
    assert refused.value.param == param
    assert param in refused.value.message
    assert refused.value.type == "invalid_request_error"
    assert backend.began == []


def test_by_hand(server: PolymuxServer) -> None:
    for body in (b"{", b"[]", b"", b"\xff", b'"text"'):
        answer = server.json("/v1/images/generations", body)
        assert (answer.status, answer.json()["error"]["code"]) == (400, "invalid_request")
    data, headers = form(("prompt", "x"))
    assert server.ask("POST", "/v1/images/generations", data, headers).status == 415
    answer = server.ask("POST", "/v1/images/edits", data, headers)
    assert answer.json()["error"]["param"] == "image"
    assert server.json("/v1/images/edits", {"prompt": "x"}).status == 415
    # Null values count as missing.
    value = {"prompt": "x", "n": None, "size": None, "style": None, "user": None, "model": None}
    assert server.json("/v1/images/generations", value).status == 200


def test_ignored_fields_are_reported(server: PolymuxServer) -> None:
    path = "/v1/images/generations"
    answer = server.json(path, {"prompt": "x", "user": "u", "safety_identifier": "s"})
    assert answer.headers["polymux-warnings"].count('", "') == 1
    assert "safety_identifier" in answer.headers["polymux-warnings"]
    assert answer.headers["polymux-job-id"]
    assert "polymux-warnings" not in server.json(path, {"prompt": "x"}).headers


def test_models_are_found_by_their_names(client: openai.OpenAI) -> None:
    """The slashes in their names are percent-encoded."""
    listed = list(client.models.list())
    names = [one.id for one in listed]
    assert "generate_image" in {one.to_dict()["operation"] for one in listed}
    assert names[:3] == ["default", "turian/insanely-fast-whisper-with-video", "whisper-1"]
    assert {LIGHTNING, ASTRA} < set(names)
    assert client.models.retrieve(ASTRA).id == ASTRA


def test_where_nothing_makes_pictures(tmp_path: Path) -> None:
    """Returns 501 with a header that prevents the package from retrying."""
    chats = ScriptedModels("chats", "chat")
    with (
        PolymuxServer(tmp_path / "s", lambda: [chats]) as server,
        of(server, max_retries=2) as client,
        pytest.raises(openai.InternalServerError) as refused,
    ):
        client.images.generate(prompt="a lighthouse")
    assert (refused.value.status_code, refused.value.code) == (501, "no_backend")
    assert refused.value.response.headers["x-should-retry"] == "false"
    sent = refused.value.response.request.headers
    assert sent.get("x-stainless-retry-count", "0") == "0"
