"""Pictures over the whole way: client, server, media engine, and diffusion in its own process."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import os
import random
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import httpx2
import numpy
import polymux
import pytest
from PIL import Image
from polymux import errors
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.settings import EngineSettings, Limits
from support import diffusion_models, openai_door
from support.polymux_server import PolymuxServer
from support.web import Exchange, Server

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

B = "lorenzomarines/astra"
SMALL = {"width": 256, "height": 256, "num_inference_steps": 2, "seed": 3}


def soft(width: int, height: int) -> bytes:
    values = random.Random(1).randbytes(8 * 8 * 3)
    image = Image.frombytes("RGB", (8, 8), values).resize((width, height))
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


def engines(models: dict[str, Path], **options: Any) -> dict[str, EngineSettings]:
    cast = {role: str(path) for role, path in models.items() if role in ("picture:A", "picture:B")}
    return {
        "media": EngineSettings("media", threads=1),
        "diffusion": EngineSettings("diffusion", {"models": cast, **options}, threads=1),
    }


@pytest.fixture(scope="module")
def lora(models: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    return diffusion_models.lora(tmp_path_factory.mktemp("lora"), models["picture:B"])


@pytest.fixture(scope="module")
def site(lora: Path) -> Iterator[Server]:
    """Where those weights lie."""

    async def send(exchange: Exchange) -> None:
        await exchange.answer(200, lora.read_bytes(), "Content-Type: application/octet-stream")

    with Server(send) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    models: dict[str, Path], site: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("generation")
    policy = FetchPolicy(allowed_hosts=(site.authority,))
    limits = Limits(memory_bytes=4 << 30)
    with PolymuxServer(
        folder / "s", engines=engines(models), limits=limits, fetch=policy
    ) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
        yield made


def read(file: polymux.RemoteFile) -> Image.Image:
    return Image.open(io.BytesIO(file.read()))


def test_text_picture_and_mask_make_pictures(client: polymux.Client) -> None:
    plain = client.generate_image("a house", model=B, num_outputs=2, **SMALL)
    assert plain.status == "succeeded"
    assert [read(one).size for one in plain.images] == [(256, 256)] * 2
    assert "seed: 3" in plain.logs
    assert "stands in" in plain.logs or "in the place of" in plain.logs
    image, mask = soft(300, 200), soft(64, 64)
    from_picture = client.generate_image("a house", image=image, **SMALL)
    assert read(from_picture.images[0]).size == (296, 200)
    repainted = client.generate_image("a house", image=image, mask=mask, **SMALL)
    assert read(repainted.images[0]).size == (256, 256)
    told = read(repainted.images[0]).text["parameters"]
    assert "Seed: 3" in told
    assert "Denoising strength: 0.8" in told


def test_the_package_openai_makes_pictures(server: PolymuxServer) -> None:
    """By their links, and as they are: the same for the same seed."""
    fields = {"num_inference_steps": 2, "seed": 3}
    with openai_door.of(server) as package:
        linked = package.images.generate(
            prompt="a house", model=B, n=2, size="256x256", extra_body=fields
        )
        whole = package.images.generate(
            prompt="a house", model=B, n=2, size="256x256", extra_body=fields,
            response_format="b64_json",
        )  # fmt: skip
    found = []
    for one in linked.data or ():
        answer = httpx2.get(one.url or "")
        assert answer.headers["content-type"] == "image/png"
        found.append(answer.content)
    assert found == [base64.b64decode(one.b64_json or "") for one in whole.data or ()]
    pictures = [Image.open(io.BytesIO(one)) for one in found]
    assert [(one.format, one.size) for one in pictures] == [("PNG", (256, 256))] * 2
    assert pictures[0].tobytes() != pictures[1].tobytes()


def test_the_package_openai_edits_a_picture(server: PolymuxServer) -> None:
    """It begins with the one that was given, and has its size: another makes another."""

    def edited(given: bytes) -> Image.Image:
        made = package.images.edit(
            image=("boat.png", given), prompt="a house", model=B, response_format="b64_json",
            extra_body={"num_inference_steps": 4, "seed": 3},
        )  # fmt: skip
        [one] = made.data or ()
        return Image.open(io.BytesIO(base64.b64decode(one.b64_json or "")))

    black = io.BytesIO()
    Image.new("RGB", (256, 192)).save(black, "PNG")
    with openai_door.of(server) as package:
        first, again, other = (edited(one) for one in (soft(256, 192),) * 2 + (black.getvalue(),))
    assert (first.format, first.size) == ("PNG", (256, 192))
    assert first.text["parameters"].startswith("a house")
    assert first.tobytes() == again.tobytes() != other.tobytes()


def test_the_same_seed_is_the_same_picture(client: polymux.Client) -> None:
    first = client.generate_image("a house", model=B, **SMALL)
    again = client.generate_image("a house", model=B, **SMALL)
    assert first.images[0].read() == again.images[0].read()
    assert first.version == again.version
    assert len(first.version) == 64


def test_variant_a_takes_json_and_has_defaults_of_its_own(client: polymux.Client) -> None:
    made = client.generate_image("a house", width=256, height=256)
    told = read(made.images[0]).text["parameters"]
    assert "Steps: 4, Sampler: K_EULER, CFG scale: 0.0" in told
    assert "Negative prompt: worst quality, low quality" in told
    assert made.input["negative_prompt"] == "worst quality, low quality"


def test_strangers_files_are_refused_before_the_engine(client: polymux.Client) -> None:
    with pytest.raises(errors.APIStatusError) as caught:
        client.generate_image("a house", image=b"no picture at all", **SMALL)
    assert caught.value.status == 415
    assert str(caught.value).startswith("image: ")
    with pytest.raises(errors.APIStatusError) as caught:
        client.generate_image("a house", image=soft(64, 64)[:200], **SMALL)
    assert caught.value.status == 422
    with pytest.raises(errors.InvalidRequestError, match="mask: needs image"):
        client.generate_image("a house", mask=soft(64, 64), model=B, **SMALL)


def packed(image: Image.Image, form: str = "PNG", *others: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **({"save_all": True, "append_images": others} if others else {}))
    return buffer.getvalue()


#: The right half is white.
HALF = Image.new("L", (256, 256))
HALF.paste(255, (128, 0, 256, 256))
MASKS = {
    "two colours": packed(HALF.convert("1")),
    "palette": packed(HALF.convert("P")),
    "transparency": packed(HALF.convert("LA")),
    "16 bits": packed(Image.fromarray(numpy.asarray(HALF).astype(numpy.uint16) * 257)),
    "print": packed(HALF.convert("CMYK"), "JPEG"),
    "numbers": packed(Image.fromarray(numpy.asarray(HALF).astype(numpy.float32)), "TIFF"),
    "animated": packed(HALF, "GIF", Image.new("L", (256, 256), 255)),
    "small": packed(HALF.resize((64, 64), Image.Resampling.NEAREST)),
    "narrow": packed(HALF.resize((16, 2048), Image.Resampling.NEAREST)),
}


@pytest.mark.parametrize("kind", MASKS)
def test_masks_of_all_kinds_keep_what_is_black(client: polymux.Client, kind: str) -> None:
    image = soft(256, 256)
    asked = SMALL | {"image": image, "mask": MASKS[kind], "prompt_strength": 1.0}
    answer = client.generate_image("a house", model=B, **asked)
    before = numpy.asarray(Image.open(io.BytesIO(image))).astype(int)
    found = numpy.asarray(read(answer.images[0])).astype(int)
    assert (found[:, :112] == before[:, :112]).all()
    assert abs(found[:, 144:] - before[:, 144:]).mean() > 5
    told = "mask: it has several pictures: the first is taken"
    assert (told in answer.logs) is (kind == "animated")


@pytest.mark.parametrize(
    "given",
    [{"width": 513}, {"width": 8}, {"height": 4096}, {"num_outputs": 0}, {"num_outputs": 5},
     {"seed": 1 << 63}, {"num_inference_steps": 501}, {"guidance_scale": 51}, {"prompt": ""}],
    ids=str,
)  # fmt: skip
def test_what_is_out_of_bounds_is_named(server: PolymuxServer, given: dict[str, Any]) -> None:
    fields = {"prompt": "a house", **SMALL} | given
    answer = httpx2.post(
        f"{server.url}/api/v1/modelhost/imagegeneration",
        params={"model": B},
        headers={"Authorization": f"Bearer {server.key}"},
        files={name: (None, str(one)) for name, one in fields.items()},
        timeout=60,
    )
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"].startswith(f"generate_image: {next(iter(given))}")


def test_half_a_character_in_json_is_refused(server: PolymuxServer) -> None:
    answer = httpx2.post(
        f"{server.url}/api/v1/modelhost/imagegeneration",
        headers={"Authorization": f"Bearer {server.key}", "Content-Type": "application/json"},
        content=b'{"prompt": "a \\ud800 house", "width": 256, "height": 256}',
        timeout=60,
    )
    assert answer.status_code == 400, answer.text
    assert "half a surrogate pair" in answer.json()["error"]


def test_weights_at_an_address_are_fetched_by_the_guard(
    client: polymux.Client, site: Server
) -> None:
    plain = client.generate_image("a house", model=B, **SMALL)
    address = site.url("/l.safetensors")
    over = client.generate_image(
        "a house", model=B, replicate_weights=address, lora_scale=1, **SMALL
    )
    assert plain.images[0].read() != over.images[0].read()
    assert "LoRA weights" in over.logs
    with pytest.raises(errors.BadRequestError, match="not on the public Internet"):
        client.generate_image(
            "a house", model=B, replicate_weights="http://169.254.169.254/l.safetensors", **SMALL
        )


def test_progress_previews_and_cancelling(server: PolymuxServer, client: polymux.Client) -> None:
    began = client.generate_image(
        "a house", model=B, wait=False, **SMALL | {"num_inference_steps": 500, "width": 1024}
    )
    progress, shown = [], []
    for one in client.predictions.events(began.id):
        progress.append(one.extra.get("progress"))
        if "preview" in one.extra:
            shown.append(one.extra["preview"])
        if shown or one.status not in ("starting", "processing"):
            break
    assert shown
    told = [one for one in progress if one is not None]
    assert told == sorted(told)
    head, _, data = shown[0].partition(",")
    assert head == "data:image/jpeg;base64"
    assert max(Image.open(io.BytesIO(base64.b64decode(data))).size) in (64, 192)
    ended_at = time.monotonic()
    ended = client.predictions.cancel(began.id)
    assert ended.status == "canceled"
    assert time.monotonic() - ended_at < 5
    # The process lives on: the next has nothing to load.
    assert client.generate_image("a house", model=B, **SMALL).metrics["predict_time"] < 5
    assert "preview" not in client.predictions.get(began.id).extra


def test_what_waits_in_the_queue_is_cancelled_at_once(client: polymux.Client) -> None:
    long = SMALL | {"num_inference_steps": 500, "width": 1024}
    at_work = client.generate_image("a house", model=B, wait=False, **long)
    waiting = client.generate_image("a tree", model=B, wait=False, **SMALL)
    assert client.predictions.cancel(waiting.id).status == "canceled"
    assert client.predictions.get(at_work.id).status in ("starting", "processing")
    assert client.predictions.cancel(at_work.id).status == "canceled"


@pytest.mark.parametrize(
    ("call", "words", "param"),
    [
        (lambda c: c.generate_image("x", model="playgroundai/playground-v2.5-1024px-aesthetic"),
         "playground-v2.5-1024px-aesthetic", "model"),
        (lambda c: c.upscale_image(soft(32, 32)), "juggernaut-reborn", "sd_model"),
        (lambda c: c.upscale_image(soft(32, 32), sd_model="flat2DAnimerge_v45Sharp.safetensors"),
         "flat2d-animerge-v4.5-sharp", "sd_model"),
        (lambda c: c.generate_video("x", video_model="potat1"), "potat1", "video_model"),
        (lambda c: c.generate_music("x"), "riffusion-model-v1", "model"),
    ],
)  # fmt: skip
def test_without_weights_it_says_what_to_fetch(
    client: polymux.Client, call: Any, words: str, param: str
) -> None:
    with pytest.raises(errors.NoBackendError) as caught:
        call(client)
    assert caught.value.status == 501
    assert words in str(caught.value)
    assert "polymux models" in str(caught.value)
    assert caught.value.param == param


def test_what_nothing_here_can_do_is_refused(client: polymux.Client) -> None:
    with pytest.raises(errors.NoBackendError, match=r"sdxl-refiner-1\.0 is not installed"):
        client.generate_image("x", model=B, refine="base_image_refiner", **SMALL)


def test_an_estimate_over_a_key_s_limit_tells_numbers_and_remedies(
    server: PolymuxServer, client: polymux.Client
) -> None:
    key, _ = server.keys.add("hurried", max_estimate_s=0.001)
    with (
        polymux.Client(server.url, key) as hurried,
        pytest.raises(errors.UnprocessableEntityError) as caught,
    ):
        hurried.generate_image("a house", model=B, num_outputs=4, width=1024, height=1024)
    told = str(caught.value)
    assert caught.value.code == "estimate_over_limit"
    assert "4 x 50 steps of 1024 x 1024" in told
    for word in ("smaller picture", "fewer steps", "another model", "upstream", "TFLOP/s"):
        assert word in told
    assert client.generate_image("a house", model=B, **SMALL).status == "succeeded"


def test_local_the_command_and_the_asynchronous_client_paint_too(
    server: PolymuxServer, models: dict[str, Path], tmp_path: Path, client: polymux.Client
) -> None:
    expected = Image.open(
        io.BytesIO(client.generate_image("a house", model=B, **SMALL).images[0].read())
    )

    async def ask() -> bytes:
        async with polymux.AsyncClient(server.url, server.key) as other:
            made = await other.generate_image("a house", model=B, **SMALL)
            return await made.images[0].aread()

    other = Image.open(io.BytesIO(asyncio.run(ask())))
    assert other.tobytes() == expected.tobytes()
    with polymux.Local(engines=engines(models)) as local:
        made = local.generate_image("a house", model=B, **SMALL)
        assert Image.open(io.BytesIO(made.images[0].read())).tobytes() == expected.tobytes()
    words = ["generate-image", "a house", "--model", B, "--width", "256", "--height", "256"]
    words += ["--num-inference-steps", "2", "--seed", "3", "--output-dir", str(tmp_path), "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "polymux", *words, "--server", server.url],
        env={**os.environ, "POLYMUX_API_KEY": server.key},
        capture_output=True,
        check=True,
        timeout=60,
    )
    assert json.loads(done.stdout)["status"] == "succeeded"
    saved = [one for one in tmp_path.iterdir() if one.suffix == ".png"]
    assert Image.open(saved[0]).tobytes() == expected.tobytes()


def test_memory_is_back_after_unloading(server: PolymuxServer, client: polymux.Client) -> None:
    client.generate_image("a house", model=B, **SMALL)
    backend = server.state.service.backends["diffusion"]
    process = backend._inner.process
    assert process is not None
    pid = process.pid
    asyncio.run_coroutine_threadsafe(backend._inner.unload(), server.loop).result(20)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert client.generate_image("a house", model=B, **SMALL).status == "succeeded"
