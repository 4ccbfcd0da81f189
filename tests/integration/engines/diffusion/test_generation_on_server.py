"""Images, detail, video and music through client, server, media engine and diffusion engine.

One model has SDXL's shape without weights, so its cost can be estimated without running it.
"""

from __future__ import annotations

import base64
import io
import json
import random
import shutil
import time
import wave
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from PIL import Image
from polymux import errors
from polymux.fetch.fetcher import FetchPolicy
from polymux.media.video import write_video
from polymux.runtime.settings import EngineSettings, Limits
from support import diffusion_models
from support.http_server import Exchange, Server
from support.polymux_server import PolymuxServer
from support.video_files import drawn, facts_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

A, B = "bytedance/sdxl-lightning-4step", "lorenzomarines/astra"
TOO_SLOW = "playgroundai/playground-v2.5-1024px-aesthetic"
SMALL = {"width": 256, "height": 256, "num_inference_steps": 2, "seed": 3}
LONG = {"width": 1024, "height": 1024, "num_inference_steps": 500}
VIDEO = {"width": 256, "height": 256, "num_frames": 5, "num_inference_steps": 2, "seed": 1}
DETAIL = {"num_inference_steps": 2, "scale_factor": 1.5, "prompt": "a house", "creativity": 1.0}
#: The values in which the published network's shape differs from the small one's.
SHAPE = {
    "block_out_channels": [320, 640, 1280],
    "layers_per_block": 2,
    "down_block_types": ["DownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D"],
    "up_block_types": ["CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "UpBlock2D"],
    "attention_head_dim": [5, 10, 20],
    "transformer_layers_per_block": [1, 2, 10],
    "cross_attention_dim": 2048,
    "addition_time_embed_dim": 256,
    "projection_class_embeddings_input_dim": 2816,
    "norm_num_groups": 32,
}


def packed(image: Image.Image, form: str = "PNG", *others: Image.Image) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **({"save_all": True, "append_images": others} if others else {}))
    return buffer.getvalue()


def soft(width: int, height: int) -> bytes:
    values = random.Random(1).randbytes(8 * 8 * 3)
    return packed(Image.frombytes("RGB", (8, 8), values).resize((width, height)))


@pytest.fixture(scope="module")
def engines(
    every: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, EngineSettings]:
    folder = tmp_path_factory.mktemp("cast")
    slow = shutil.copytree(every["picture:B"], folder / "slow")
    config = slow / "unet" / "config.json"
    config.write_text(json.dumps(json.loads(config.read_text("utf-8")) | SHAPE), "utf-8")
    (folder / "zeroscope-v2-xl").symlink_to(every["video:xl"])
    left_out = ("picture:refiner", "picture:decoder")
    cast = {role: str(path) for role, path in every.items() if role not in left_out}
    cast |= {"picture:C": str(slow), "video:xl": str(folder / "zeroscope-v2-xl")}
    options = {"models": cast, "non_commercial": True}
    return {
        "media": EngineSettings("media", threads=1),
        "diffusion": EngineSettings("diffusion", options, threads=1, max_concurrency=2),
    }


@pytest.fixture(scope="module")
def site(every: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Serves LoRA weights."""
    lora = diffusion_models.lora(tmp_path_factory.mktemp("lora"), every["picture:B"])

    async def send(exchange: Exchange) -> None:
        await exchange.answer(200, lora.read_bytes(), "Content-Type: application/octet-stream")

    with Server(send) as running:
        yield running


@pytest.fixture(scope="module")
def server(
    engines: dict[str, EngineSettings], site: Server, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("generation")
    policy = FetchPolicy(allowed_hosts=(site.authority,))
    limits = Limits(memory_bytes=64 << 30)  # Everything fits, so everything is estimated.
    with PolymuxServer(folder / "s", engines=engines, limits=limits, fetch=policy) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    """A client whose key allows longer work than the server's default."""
    key, _ = server.keys.add("patient", max_estimate_s=86_400 * 30)
    with polymux.Client(server.url, key) as made:
        yield made


@pytest.fixture(scope="module")
def plain(client: polymux.Client) -> bytes:
    return client.generate_image("a house", model=B, **SMALL).images[0].read()


def read(file: Any) -> Image.Image:
    return Image.open(io.BytesIO(file if isinstance(file, bytes) else file.read()))


def test_text_picture_and_mask_make_pictures(client: polymux.Client, plain: bytes) -> None:
    two = client.generate_image("a house", model=B, num_outputs=2, **SMALL)
    assert two.status == "succeeded"
    assert [read(one).size for one in two.images] == [(256, 256)] * 2
    # Equal seeds give equal images.
    assert two.images[0].read() == plain != two.images[1].read()
    assert len(two.version) == 64
    assert "seed: 3" in two.logs
    assert "stands in" in two.logs or "instead of" in two.logs
    from_picture = client.generate_image("a house", image=soft(300, 200), **SMALL)
    assert read(from_picture.images[0]).size == (296, 200)
    # The right half of the mask and the whole second image behind it are white.
    mask = Image.new("L", (64, 16))
    mask.paste(255, (32, 0, 64, 16))
    given = {"image": soft(256, 256), "prompt_strength": 1.0}
    given["mask"] = packed(mask, "GIF", Image.new("L", (64, 16), 255))
    repainted = client.generate_image("a house", model=B, **given, **SMALL)
    before, found = (
        numpy.asarray(read(one)).astype(int) for one in (given["image"], repainted.images[0])
    )
    assert (found[:, :112] == before[:, :112]).all()
    assert abs(found[:, 144:] - before[:, 144:]).mean() > 5
    assert "mask" in repainted.logs
    parameters = read(repainted.images[0]).text["parameters"]
    assert "Seed: 3" in parameters
    assert "Denoising strength: 1.0" in parameters


def test_variant_a_takes_json_and_has_defaults_of_its_own(client: polymux.Client) -> None:
    made = client.generate_image("a house", width=256, height=256)
    parameters = read(made.images[0]).text["parameters"]
    assert "Steps: 4, Sampler: K_EULER, CFG scale: 0.0" in parameters
    assert "Negative prompt: worst quality, low quality" in parameters
    assert made.input["negative_prompt"] == "worst quality, low quality"


def test_detail(client: polymux.Client) -> None:
    made = client.upscale_image(soft(96, 64), **DETAIL, mask=packed(Image.new("L", (96, 64), 255)))
    assert read(made.images[0]).size == (144, 96)
    assert "more_details" not in made.logs, "the default prompt's weights, and not this one's"


def test_video(client: polymux.Client, tmp_path: Path) -> None:
    """`test_video.py` tests the other models."""
    made = client.generate_video("waves", video_model="potat1", fps=12, **VIDEO)
    made.videos[0].save(tmp_path / "made.mp4")
    codec, *facts = facts_of(tmp_path / "made.mp4")
    assert codec in ("h264", "vp9")
    assert facts == [256, 256, 12, 5]


def test_videos_begun_with_one(client: polymux.Client, tmp_path: Path) -> None:
    path = tmp_path / "begin.mp4"
    frames = [drawn(320, 240, number).tobytes() for number in range(8)]
    write_video(path, frames, width=320, height=240, fps=10)
    begun = {"init_video": path, "init_weight": 0.5, "batch_size": 2}
    first, second = client.generate_video("waves", **begun, **VIDEO).videos
    first.save(tmp_path / "made.mp4")
    assert facts_of(tmp_path / "made.mp4")[1:3] == (256, 256)
    assert first.read() != second.read()


def test_music(client: polymux.Client, tmp_path: Path) -> None:
    made = client.generate_music("jazz", num_inference_steps=2, denoising=0.5, seed=1)
    made.audio.save(tmp_path / "made.wav")
    with wave.open(str(tmp_path / "made.wav")) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (44100, 1, 2)
        assert sound.getnframes() == 512 * 441
        samples = numpy.frombuffer(sound.readframes(1 << 20), numpy.int16)
    assert abs(samples.astype(int)).max() > 1000
    assert read(made.spectrogram).size == (512, 512)
    assert "vibes" in made.logs  # The log says that another model is used.


@pytest.mark.parametrize(
    ("call", "kind", "statuses", "words"),
    [
        (lambda c: c.generate_image("x", image=b"no picture", **SMALL),
         errors.APIStatusError, (415,), "image"),
        (lambda c: c.generate_image("x", mask=soft(64, 64), model=B, **SMALL),
         errors.InvalidRequestError, (None,), "mask.*image"),
        (lambda c: c.generate_image("x", model=B, replicate_weights="http://169.254.169.254/l",
                                    **SMALL), errors.BadRequestError, (400,), "URL"),
        (lambda c: c.generate_video("x", init_video=b"no video", **VIDEO),
         errors.APIStatusError, (415, 422), "init_video"),
        (lambda c: c.generate_video("x", remove_watermark=True, **VIDEO),
         errors.NoBackendError, (501,), "remove_watermark"),
    ],
    ids=["no picture", "mask", "weights", "no video", "watermark"],
)  # fmt: skip
def test_what_is_refused(
    client: polymux.Client, call: Any, kind: Any, statuses: tuple[int | None, ...], words: str
) -> None:
    with pytest.raises(kind, match=words) as caught:
        call(client)
    assert getattr(caught.value, "status", None) in statuses


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (b'{"prompt": "a \\ud800 house", "width": 256, "height": 256}', "surrogate"),
        (b'{"prompt": "a house", "width": 8, "height": 256}', "width"),
        (b'{"prompt": "", "width": 256, "height": 256}', "prompt"),
    ],
)
def test_what_is_out_of_bounds_is_named(server: PolymuxServer, body: bytes, words: str) -> None:
    answer = server.json("/api/v1/modelhost/imagegeneration", body)
    assert answer.status == 400, answer.body
    assert words in answer.json()["error"]


def test_weights_at_an_address(client: polymux.Client, site: Server, plain: bytes) -> None:
    weights = {"replicate_weights": site.url("/l.safetensors"), "lora_scale": 1}
    over = client.generate_image("a house", model=B, **weights, **SMALL)
    assert over.images[0].read() != plain
    assert "LoRA" in over.logs


def ended(client: polymux.Client, job: Any) -> None:
    assert client.predictions.cancel(job.id).status == "canceled"


def test_progress_previews_and_cancelling(client: polymux.Client) -> None:
    began = client.generate_image("a house", model=B, wait=False, **LONG)
    progress, shown = [], []
    for one in client.predictions.events(began.id):
        progress.append(one.extra.get("progress"))
        if "preview" in one.extra:
            shown.append(one.extra["preview"])
        if shown or one.status not in ("starting", "processing"):
            break
    assert shown
    reported = [one for one in progress if one is not None]
    assert reported == sorted(reported)
    head, _, data = shown[0].partition(",")
    assert head == "data:image/jpeg;base64"
    assert max(read(base64.b64decode(data)).size) in (64, 192)
    ended(client, began)
    assert "preview" not in client.predictions.get(began.id).extra


def refused(call: Callable[[], Any], *words: str) -> None:
    with pytest.raises(errors.UnprocessableEntityError) as caught:
        call()
    assert caught.value.code == "estimate_over_limit"
    for one in (*words, "TFLOP/s"):
        assert one in str(caught.value)


def test_an_estimate_waits_for_nobody(server: PolymuxServer, client: polymux.Client) -> None:
    """Two requests run and a third waits. A request that is too large is rejected at once."""
    key, _ = server.keys.add("hurried", max_estimate_s=0.001)

    def statuses() -> list[str]:
        return [client.predictions.get(one.id).status for one in begun]

    with polymux.Client(server.url, key) as hurried:
        client.generate_image("a house", model=B, **SMALL)  # Loads the model.
        begun = [client.generate_image("x", model=B, wait=False, **LONG) for _ in range(3)]
        until = time.monotonic() + 30
        while statuses() != ["processing", "processing", "starting"]:
            assert time.monotonic() < until
            time.sleep(0.05)
        refused(lambda: hurried.generate_image("a house", model=B, width=512, height=768))
        assert statuses()[:2] == ["processing"] * 2
        for one in reversed(begun):
            ended(client, one)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.generate_image("x", model=B, num_outputs=4, width=512, height=1024),
         ("50 steps", "512 x 1024")),
        (lambda c: c.upscale_image(soft(96, 64), **DETAIL), ("scale_factor",)),
        (lambda c: c.generate_video("x", **VIDEO), ("2 steps", "5 frames")),
        (lambda c: c.generate_music("x"), ("steps",)),
    ],
    ids=["picture", "detail", "video", "music"],
)  # fmt: skip
def test_estimates_tell_remedies(server: PolymuxServer, call: Any, words: tuple[str, ...]) -> None:
    key, _ = server.keys.add("hurried", max_estimate_s=0.000001)
    with polymux.Client(server.url, key) as hurried:
        refused(lambda: call(hurried), *words)


SLOW = {"model": TOO_SLOW, "width": 1024, "height": 1024, "num_inference_steps": 50}


def test_what_would_take_hours_is_refused(server: PolymuxServer, client: polymux.Client) -> None:
    with polymux.Client(server.url, server.key) as usual:
        before = server.state.service.jobs.count
        refused(lambda: usual.generate_image("a house", **SLOW), "300 s", "1024 x 1024")
        assert server.state.service.jobs.count == before
        assert usual.generate_image("a house", model=A, **SMALL).status == "succeeded"
    # With a patient key the request starts and fails because the model has no weights.
    with pytest.raises(errors.APIError, match=r"\bslow\b"):
        client.generate_image("a house", **SLOW)


def test_weights_that_forbid_trade_want_a_setting(
    engines: dict[str, EngineSettings],
) -> None:
    """The server's settings allow them, so it generates videos with them."""
    path = engines["diffusion"].options["models"]["video:xl"]
    own = {"diffusion": EngineSettings("diffusion", {"models": {"video:xl": path}}, threads=1)}
    with polymux.Local(engines=own) as local, pytest.raises(errors.NoBackendError) as caught:
        local.generate_video("waves", **VIDEO)
    assert "CC-BY-NC-4.0" in str(caught.value)
    assert "non_commercial = true" in str(caught.value)
