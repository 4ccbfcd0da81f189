"""Videos of the diffusion engine, with tiny models of random weights."""

from __future__ import annotations

import io
import os
import re
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.engines.base import Cancelled, Request, Token
from polymux.engines.diffusion import steps, video
from polymux.engines.diffusion.image_files import FACTS, SAMPLES
from polymux.engines.diffusion.pipelines import PipelineManager
from support import diffusion
from support.diffusion import HeardSink
from support.video_files import drawn, facts_of, frames_of, likeness

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from numpy.typing import NDArray

    Render = Callable[..., list[Path]]
    Frames = Callable[..., NDArray[Any]]

#: The API's model names that the test models stand for.
TEXT_TO_VIDEO, ANIMATED, WAN, PICTURES = "xl", "576w", "potat1", "animov-512x"
ALL = (TEXT_TO_VIDEO, ANIMATED, WAN)
WIDTH, HEIGHT = 48, 32


@pytest.fixture(scope="module")
def manager(every: dict[str, Path]) -> PipelineManager:
    models = {
        role: {"path": str(path), "name": role, "version": "f" * 64}
        for role, path in every.items()
        if role.startswith("video:")
    }
    os.environ["POLYMUX_THREADS"] = "1"
    return PipelineManager({"models": models, "max_pixels": WIDTH * HEIGHT * 4})


def request(model: str, **given: Any) -> Request:
    asked = {
        "prompt": "waves on a beach", "video_model": model, "width": WIDTH, "height": HEIGHT,
        "num_frames": 5, "num_inferences_steps": 2, "guidance_scale": 3.0, "fps": 10, "seed": 7,
    }  # fmt: skip
    return diffusion.request("generate_video", **asked | given)


def begun_with(
    folder: Path, count: int, width: int = WIDTH, height: int = HEIGHT, *, negative: bool = False
) -> dict[str, Any]:
    """The input video of a request, in the form in which the backend passes it on."""
    frames = numpy.stack([drawn(width, height, number) for number in range(count)])
    path = folder / f"frames-{count}-{width}-{height}-{negative}"
    path.write_bytes((255 - frames if negative else frames).tobytes())
    facts = {"frames": count, "width": width, "height": height, "fps": 10}
    return {"init_video" + SAMPLES: diffusion.upload(path), "init_video" + FACTS: facts}


def made_by(manager: PipelineManager, asked: Request, sink: HeardSink) -> list[Path]:
    output = video.make(manager, asked, sink, diffusion.token())
    assert [one.content_type for one in output.value] == ["video/mp4"] * len(output.value)
    return [one.path for one in output.value]


@pytest.fixture
def render(manager: PipelineManager, sink: HeardSink) -> Render:
    """The generated files."""
    return lambda model, **given: made_by(manager, request(model, **given), sink)


@pytest.fixture
def frames(render: Render) -> Frames:
    """The frames of one generated file."""
    return lambda model, **given: frames_of(*render(model, **given))


@pytest.mark.parametrize("model", ALL)
def test_each_pipeline_makes_an_mp4(manager: PipelineManager, sink: HeardSink, model: str) -> None:
    tokenizer = manager.parts(f"video:{model}")["tokenizer"]
    around = len(tokenizer("").input_ids)
    words = "x" * 2000
    asked = request(model, num_frames=6, fps=7, prompt=words)
    output = video.make(manager, asked, sink, diffusion.token())
    (file,) = output.value
    assert file.file_name == "video-1.mp4"
    codec, *facts = facts_of(file.path)
    assert facts == [WIDTH, HEIGHT, Fraction(7), 6]
    assert codec in ("h264", "vp9")
    assert (output.metrics["steps"], output.metrics["frames"]) == (2.0, 6.0)
    assert sink.progress == sorted(sink.progress)
    assert len(sink.progress) == 2
    assert sink.seed == 7
    assert any(codec in line for line in sink.lines)
    assert any("9 frames" in line for line in sink.lines) == (model == WAN)
    count = len(tokenizer(words).input_ids) - around
    reads = tokenizer.model_max_length - around
    assert any({f"{count}", f"{reads}"} <= {*re.findall(r"\d+", one)} for one in sink.lines)


def test_a_batch_has_the_seeds_that_follow(
    render: Render, manager: PipelineManager, sink: HeardSink
) -> None:
    model = ANIMATED
    both = render(model, batch_size=2)
    assert len(both) == 2
    assert len(sink.progress) == 4
    before = {name: id(one) for name, one in manager.parts(f"video:{model}").items()}
    second = render(model, seed=8)
    assert both[1].read_bytes() == second[0].read_bytes() != both[0].read_bytes()
    # All videos share the model's weights.
    assert {name: id(one) for name, one in manager.parts(f"video:{model}").items()} == before


@pytest.mark.parametrize("model", [ANIMATED, WAN])
def test_init_weight(
    frames: Frames, render: Render, sink: HeardSink, tmp_path: Path, model: str
) -> None:
    begun, negative = (begun_with(tmp_path, 5, negative=one) for one in (False, True))
    kept = frames(model, **begun, init_weight=1.0)
    for number, frame in enumerate(kept):
        assert likeness(frame, drawn(WIDTH, HEIGHT, number)) > 28
    assert sink.progress == []
    (ignored,) = render(model, **begun, init_weight=0.0)
    (without,) = render(model)
    assert ignored.read_bytes() == without.read_bytes()
    sink.progress.clear()
    more = {"init_weight": 0.25, "num_inferences_steps": 4}
    between = frames(model, **begun, **more)
    assert len(sink.progress) == 3
    assert between.shape == kept.shape
    assert not numpy.array_equal(between, frames_of(without))
    assert not numpy.array_equal(between, frames(model, **negative, **more))


def test_cancelling_ends_it_soon(manager: PipelineManager, tmp_path: Path) -> None:
    """Also while frames are decoded or encoded. The model does not change."""
    model = WAN
    for count, at in ((30, 0.0), (2, 0.94)):
        token = Token()

        def heard(done: float, token: Token = token, at: float = at) -> None:
            if done >= at:
                token.cancel()

        sink = HeardSink(tmp_path, heard)
        with pytest.raises(Cancelled):
            video.make(manager, request(model, num_inferences_steps=count), sink, token)
        assert token.cancelled
        assert len(sink.progress) == (1 if at == 0 else count)
        assert sink.drafts == 0
    token = Token()

    class Sink(HeardSink):
        def draft(self, expected_bytes: int = 0) -> Path:
            token.cancel()
            return super().draft(expected_bytes)

    sink = Sink(tmp_path)
    with pytest.raises(Cancelled):
        video.make(manager, request(model, num_inferences_steps=1), sink, token)
    assert sink.files == []
    fresh = HeardSink(tmp_path)
    assert len(made_by(manager, request(model, num_inferences_steps=1), fresh)) == 1


def test_the_shorter_length_counts(frames: Frames, sink: HeardSink, tmp_path: Path) -> None:
    begun = {"init_weight": 0.5}
    assert len(frames(WAN, **begun, **begun_with(tmp_path, 3))) == 3
    assert any("init_video" in line and "3 frames" in line for line in sink.lines)
    assert any("5 frames" in line for line in sink.lines)
    assert len(frames(TEXT_TO_VIDEO, **begun, num_frames=4, **begun_with(tmp_path, 9))) == 4


def test_sizes_off_the_grid_are_cut(frames: Frames, sink: HeardSink, tmp_path: Path) -> None:
    size = {"width": 40, "height": 24}
    begun = begun_with(tmp_path, 5, 40, 24)
    for model, more in ((TEXT_TO_VIDEO, {}), (WAN, {}), (WAN, begun)):
        assert frames(model, **size, **more).shape == (5, 24, 40, 3)
        warned = any("48 x 32" in line and "40 x 24" in line for line in sink.lines)
        assert warned == (model == WAN)


@pytest.mark.parametrize(
    ("model", "given", "kind", "words"),
    [
        (ANIMATED, {"num_frames": 9}, errors.BadRequestError, r"(?=.*num_frames).*\b8\b"),
        (TEXT_TO_VIDEO, {"width": 512}, errors.RequestTooLargeError, "512 x 32"),
        (PICTURES, {}, errors.NoBackendError, "StableDiffusionPipeline"),
    ],
)
def test_what_is_refused(
    render: Render, sink: HeardSink, model: str, given: dict[str, Any], kind: Any, words: str
) -> None:
    with pytest.raises(kind, match=words):
        render(model, **given)
    assert sink.drafts == 0


def test_words_and_guidance_count(frames: Frames) -> None:
    others = ({}, {"prompt": "a city"}, {"negative_prompt": "sea"}, {"guidance_scale": 1.0})
    found = {frames(TEXT_TO_VIDEO, **{"guidance_scale": 8.0} | one).tobytes() for one in others}
    assert len(found) == len(others)


@pytest.mark.parametrize(("model", "begun"), [(ANIMATED, True), (WAN, False)])
def test_previews_show_a_frame_and_change_nothing(
    manager: PipelineManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    begun: bool,
) -> None:
    given = {"init_weight": 0.25, **begun_with(tmp_path, 5)} if begun else {}
    asked = request(model, num_inferences_steps=4, **given)
    plain, sink = (HeardSink(tmp_path) for _ in range(2))
    (without,) = made_by(manager, asked, plain)
    assert plain.previews == []
    monkeypatch.setattr(steps, "_PREVIEW_EVERY_S", 0.0)
    monkeypatch.setattr(steps, "_PREVIEW_SHARE", 1e9)
    (made,) = made_by(manager, asked, sink)
    assert made.read_bytes() == without.read_bytes()
    assert len(sink.previews) == len(sink.progress)
    with Image.open(io.BytesIO(sink.previews[-1])) as preview:
        assert preview.format == "JPEG"
        assert preview.size == (WIDTH, HEIGHT)
        shown = numpy.asarray(preview)
    # The last preview is a frame of the video, apart from compression differences.
    assert likeness(shown, frames_of(made)[0 if model == WAN else 2]) > 18
