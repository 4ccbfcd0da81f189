"""Detail, video and music over the whole way, and what their estimates say, with tiny models."""

from __future__ import annotations

import asyncio
import io
import os
import random
import subprocess
import sys
import wave
from typing import TYPE_CHECKING, Any

import numpy
import polymux
import pytest
from PIL import Image
from polymux import errors
from polymux.media.video import write_video
from polymux.runtime.settings import EngineSettings, Limits
from support import detail_models, diffusion_models, video_models
from support.polymux_server import PolymuxServer
from support.video_files import drawn, facts_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

VIDEO = {"width": 256, "height": 256, "num_frames": 5, "num_inference_steps": 2, "seed": 1}
DETAIL = {"num_inference_steps": 2, "scale_factor": 1.5, "prompt": "a house", "creativity": 1.0}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("operations")
    models = {
        **detail_models.models(folder / "detail"),
        "video:xl": video_models.text_to_video(folder / "text"),
        "video:576w": video_models.animate_diff(folder / "animated"),
        "video:potat1": video_models.wan(folder / "wan"),
        "music": diffusion_models.stable_diffusion(folder / "music"),
    }
    cast = {role: str(path) for role, path in models.items()}
    engines = {
        "media": EngineSettings("media", threads=1),
        "diffusion": EngineSettings("diffusion", {"models": cast}, threads=1),
    }
    limits = Limits(memory_bytes=8 << 30)  # So that all of it is estimated before.
    with PolymuxServer(folder / "s", engines=engines, limits=limits) as running:
        yield running


@pytest.fixture(scope="module")
def client(server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(server.url, server.key) as made:
        yield made


def picture(width: int = 96, height: int = 64, grey: int | None = None) -> bytes:
    values = random.Random(1).randbytes(8 * 8 * 3)
    image = Image.frombytes("RGB", (8, 8), values).resize((width, height))
    if grey is not None:
        image = Image.new("L", (width, height), grey)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue()


@pytest.mark.parametrize("mask", [None, 255])
def test_detail(client: polymux.Client, mask: int | None) -> None:
    more = {} if mask is None else {"mask": picture(grey=mask)}
    # The second has its models loaded, and its time measured.
    for _ in range(2):
        made = client.upscale_image(picture(), **DETAIL, **more)
    assert Image.open(io.BytesIO(made.images[0].read())).size == (144, 96)
    assert "more_details" not in made.logs


def test_detail_says_which_weights_of_its_prompt_are_missing(client: polymux.Client) -> None:
    made = client.upscale_image(picture(), num_inference_steps=1, scale_factor=1)
    assert "more_details" in made.logs


@pytest.mark.parametrize("model", ["xl", "576w", "potat1"])
def test_video(client: polymux.Client, model: str, tmp_path: Path) -> None:
    for _ in range(2):
        made = client.generate_video("waves", video_model=model, fps=12, **VIDEO)
    path = tmp_path / "made.mp4"
    made.videos[0].save(path)
    codec, width, height, rate, frames = facts_of(path)
    assert codec in ("h264", "vp9")
    assert (width, height, rate, frames) == (256, 256, 12, 5)


def test_video_begun_with_one(client: polymux.Client, tmp_path: Path) -> None:
    path = tmp_path / "begin.mp4"
    frames = [drawn(320, 240, number).tobytes() for number in range(8)]
    write_video(path, frames, width=320, height=240, fps=10)
    made = client.generate_video("waves", init_video=path, init_weight=0.5, **VIDEO)
    made.videos[0].save(tmp_path / "made.mp4")
    assert facts_of(tmp_path / "made.mp4")[1:3] == (256, 256)
    with pytest.raises(errors.APIStatusError) as caught:
        client.generate_video("waves", init_video=b"no video", **VIDEO)
    assert caught.value.status in (415, 422)
    assert "init_video" in str(caught.value)


def test_several_videos_are_several_files(client: polymux.Client) -> None:
    made = client.generate_video("waves", batch_size=2, **VIDEO)
    assert len(made.videos) == 2
    assert made.videos[0].read() != made.videos[1].read()


@pytest.mark.parametrize("given", [{"remove_watermark": True}])
def test_what_nothing_here_does_is_refused(client: polymux.Client, given: dict[str, Any]) -> None:
    with pytest.raises(errors.NoBackendError) as caught:
        client.generate_video("waves", **VIDEO, **given)
    assert caught.value.status == 501
    assert caught.value.param in given


def test_music(client: polymux.Client, tmp_path: Path) -> None:
    for _ in range(2):
        made = client.generate_music("jazz", num_inference_steps=2, denoising=0.5, seed=1)
    made.audio.save(tmp_path / "made.wav")
    with wave.open(str(tmp_path / "made.wav")) as sound:
        assert (sound.getframerate(), sound.getnchannels(), sound.getsampwidth()) == (44100, 1, 2)
        assert sound.getnframes() == 512 * 441
        samples = numpy.frombuffer(sound.readframes(1 << 20), numpy.int16)
    assert abs(samples.astype(int)).max() > 1000
    assert Image.open(io.BytesIO(made.spectrogram.read())).size == (512, 512)
    assert "vibes" in made.logs  # It is a stand-in, and that is told.
    converted = polymux.convert_to_mp3(tmp_path / "made.wav", tmp_path / "made.mp3")
    assert converted.report is not None


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda c: c.upscale_image(picture(), **DETAIL), ("passes of a megapixel", "scale_factor")),
        (lambda c: c.generate_video("x", **VIDEO), ("2 steps of 5 frames", "fewer frames")),
        (lambda c: c.generate_video("x", video_model="potat1", **VIDEO), ("5 frames of 256",)),
        (lambda c: c.generate_music("x"), ("steps", "fewer steps")),
    ],
)  # fmt: skip
def test_estimates_have_numbers_and_remedies(
    server: PolymuxServer, call: Any, words: tuple[str, ...]
) -> None:
    key, _ = server.keys.add("hurried", max_estimate_s=0.000001)
    with (
        polymux.Client(server.url, key) as hurried,
        pytest.raises(errors.UnprocessableEntityError) as caught,
    ):
        call(hurried)
    assert caught.value.code == "estimate_over_limit"
    for one in (*words, "upstream", "TFLOP/s"):
        assert one in str(caught.value)


def test_the_asynchronous_client_local_and_the_command_do_them_too(
    server: PolymuxServer, tmp_path: Path
) -> None:
    small = tmp_path / "small.png"
    small.write_bytes(picture())

    async def ask() -> list[str]:
        async with polymux.AsyncClient(server.url, server.key) as client:
            made = [
                await client.upscale_image(small, **DETAIL),
                await client.generate_video("waves", **VIDEO),
                await client.generate_music("jazz", num_inference_steps=2, seed=1),
            ]
        return [one.status for one in made]

    assert asyncio.run(ask()) == ["succeeded"] * 3
    with polymux.Local(engines=server.settings.engines) as local:
        assert len(local.upscale_image(small, **DETAIL).images) == 1
        assert len(local.generate_video("waves", **VIDEO).videos) == 1
        assert (
            local.generate_music("jazz", num_inference_steps=2, seed=1).audio.read()[:4] == b"RIFF"
        )
    size = ["--width", "256", "--height", "256", "--num-frames", "5", "--num-inference-steps", "2"]
    commands = {
        "png": ["upscale-image", str(small), "--scale-factor", "1.5", "--num-inference-steps", "2"],
        "mp4": ["generate-video", "waves", *size],
        "wav": ["generate-music", "jazz", "--num-inference-steps", "2"],
    }
    for suffix, words in commands.items():
        folder = tmp_path / suffix
        done = subprocess.run(
            [
                sys.executable,
                "-m",
                "polymux",
                *words,
                "--output-dir",
                str(folder),
                "--server",
                server.url,
            ],
            env={**os.environ, "POLYMUX_API_KEY": server.key},
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        assert [one for one in folder.iterdir() if one.suffix == f".{suffix}"]


def test_weights_that_forbid_trade_are_used_where_settings_say_so(
    server: PolymuxServer, tmp_path: Path
) -> None:
    path = server.settings.engines["diffusion"].options["models"]["video:xl"]
    named = tmp_path / "zeroscope-v2-xl"
    named.symlink_to(path)
    answers = []
    for accepted in ({}, {"non_commercial": True}):
        options = {"models": {"video:xl": str(named)}, **accepted}
        engines = {"diffusion": EngineSettings("diffusion", options, threads=1)}
        with polymux.Local(engines=engines) as local:
            try:
                answers.append(local.generate_video("waves", **VIDEO).status)
            except errors.NoBackendError as error:
                answers.append(str(error))
    assert "CC-BY-NC-4.0" in answers[0]
    assert "non_commercial = true" in answers[0]
    assert answers[1] == "succeeded"
