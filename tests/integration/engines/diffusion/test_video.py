"""Videos of the diffusion engine, by tiny models with random weights: plumbing, not beauty."""

from __future__ import annotations

import io
import os
import threading
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.engines.base import Cancelled, Request, Token
from polymux.engines.diffusion import previews, video
from polymux.engines.diffusion.image_files import FACTS, SAMPLES
from polymux.engines.diffusion.pipelines import PipelineManager
from polymux.service.model import Upload
from support import diffusing, video_models
from support.video_files import drawn, facts_of, frames_of, likeness

if TYPE_CHECKING:
    from pathlib import Path

    from numpy.typing import NDArray

#: What the names of the interface stand for here.
TEXT_TO_VIDEO, ANIMATED, WAN, PICTURES = "xl", "576w", "potat1", "animov-512x"
ALL = (TEXT_TO_VIDEO, ANIMATED, WAN)
WIDTH, HEIGHT = 48, 32


@pytest.fixture(scope="module")
def manager(tmp_path_factory: pytest.TempPathFactory) -> PipelineManager:
    folder = tmp_path_factory.mktemp("videos")
    makers = {
        TEXT_TO_VIDEO: video_models.text_to_video,
        ANIMATED: video_models.animate_diff,
        WAN: video_models.wan,
        PICTURES: video_models.no_video,
    }
    models = {
        f"video:{name}": {"path": str(maker(folder / name)), "name": name, "version": "f" * 64}
        for name, maker in makers.items()
    }
    os.environ["POLYMUX_THREADS"] = "1"
    return PipelineManager({"models": models, "max_pixels": WIDTH * HEIGHT * 4})


def request(model: str, **given: Any) -> Request:
    asked = {
        "prompt": "waves on a beach",
        "video_model": model,
        "width": WIDTH,
        "height": HEIGHT,
        "num_frames": 5,
        "num_inferences_steps": 4,
        "guidance_scale": 3.0,
        "fps": 10,
        "seed": 7,
    }
    return diffusing.request("generate_video", **asked | given)


def begun_with(
    folder: Path, count: int, width: int = WIDTH, height: int = HEIGHT
) -> dict[str, Any]:
    """A request's video, as the backend hands it on."""
    frames = numpy.stack([drawn(width, height, number) for number in range(count)])
    path = folder / f"frames-{count}-{width}-{height}"
    path.write_bytes(frames.tobytes())
    facts = {"frames": count, "width": width, "height": height, "fps": 10}
    upload = Upload(path, "frames.rgb", "application/octet-stream", frames.nbytes)
    return {"init_video" + SAMPLES: upload, "init_video" + FACTS: facts}


def made_by(manager: PipelineManager, asked: Request, sink: diffusing.HeardSink) -> list[Path]:
    output = video.make(manager, asked, sink, diffusing.token())
    assert [one.content_type for one in output.value] == ["video/mp4"] * len(output.value)
    return [one.path for one in output.value]


def pixels(manager: PipelineManager, sink: diffusing.HeardSink, asked: Request) -> NDArray[Any]:
    (path,) = made_by(manager, asked, sink)
    return frames_of(path)


@pytest.mark.parametrize("model", ALL)
def test_each_pipeline_makes_an_mp4(
    manager: PipelineManager, sink: diffusing.HeardSink, model: str
) -> None:
    output = video.make(manager, request(model, num_frames=6, fps=7), sink, diffusing.token())
    (file,) = output.value
    assert file.file_name == "video-1.mp4"
    codec, *facts = facts_of(file.path)
    assert facts == [WIDTH, HEIGHT, Fraction(7), 6]
    assert codec in ("h264", "vp9")
    assert (output.metrics["steps"], output.metrics["frames"]) == (4.0, 6.0)
    assert sink.progress == sorted(sink.progress)
    assert len(sink.progress) == 4
    assert "seed: 7" in sink.lines
    assert any(line.startswith(f"encoded as {codec} by ") for line in sink.lines)
    assert ("the model makes 9 frames: those after 6 are cut off" in sink.lines) == (model == WAN)


@pytest.mark.parametrize("model", ALL)
def test_seeds_repeat_and_a_batch_has_the_seeds_that_follow(
    manager: PipelineManager, sink: diffusing.HeardSink, model: str
) -> None:
    both = made_by(manager, request(model, batch_size=2, num_inferences_steps=2), sink)
    assert len(both) == 2
    assert len(sink.progress) == 4
    second = made_by(manager, request(model, seed=8, num_inferences_steps=2), sink)
    assert both[1].read_bytes() == second[0].read_bytes()
    assert both[0].read_bytes() != both[1].read_bytes()


@pytest.mark.parametrize("model", ALL)
def test_init_weight_says_how_much_of_the_video_is_kept(
    manager: PipelineManager, sink: diffusing.HeardSink, tmp_path: Path, model: str
) -> None:
    begun = begun_with(tmp_path, 5)
    asked = request(model, **begun)
    kept = pixels(manager, sink, asked._replace(values={**asked.values, "init_weight": 1.0}))
    for number, frame in enumerate(kept):
        assert likeness(frame, drawn(WIDTH, HEIGHT, number)) > 28
    assert sink.progress == []
    ignored = made_by(manager, asked._replace(values={**asked.values, "init_weight": 0.0}), sink)
    without = made_by(manager, request(model), sink)
    assert ignored[0].read_bytes() == without[0].read_bytes()
    sink.progress.clear()
    between = pixels(manager, sink, asked._replace(values={**asked.values, "init_weight": 0.25}))
    assert len(sink.progress) == 3
    assert between.shape == kept.shape
    assert not numpy.array_equal(between, frames_of(without[0]))
    other = begun_with(tmp_path, 5, WIDTH, HEIGHT)
    other_frames = 255 - numpy.fromfile(other["init_video" + SAMPLES].path, numpy.uint8)
    other["init_video" + SAMPLES].path.write_bytes(other_frames.tobytes())
    changed = pixels(manager, sink, asked._replace(values={**asked.values, "init_weight": 0.25}))
    assert not numpy.array_equal(between, changed)


@pytest.mark.parametrize("model", ALL)
def test_the_videos_of_one_model_share_its_weights(
    manager: PipelineManager, sink: diffusing.HeardSink, tmp_path: Path, model: str
) -> None:
    made_by(manager, request(model, num_inferences_steps=1), sink)
    before = {name: id(one) for name, one in manager.parts(f"video:{model}").items()}
    made_by(
        manager,
        request(model, num_inferences_steps=2, init_weight=0.5, **begun_with(tmp_path, 5)),
        sink,
    )
    assert {name: id(one) for name, one in manager.parts(f"video:{model}").items()} == before


@pytest.mark.parametrize("model", ALL)
def test_cancelling_ends_within_a_step(
    manager: PipelineManager, tmp_path: Path, model: str
) -> None:
    token = Token()
    sink = diffusing.HeardSink(tmp_path, lambda _: token.cancel())
    with pytest.raises(Cancelled):
        video.make(manager, request(model, num_inferences_steps=30), sink, token)
    assert len(sink.progress) == 1
    assert sink.drafts == 0
    # What was cut short leaves the model as it was.
    fresh = diffusing.HeardSink(tmp_path)
    assert len(made_by(manager, request(model, num_inferences_steps=1), fresh)) == 1


@pytest.mark.parametrize("model", ALL)
def test_cancelling_while_frames_are_decoded_ends_there(
    manager: PipelineManager, tmp_path: Path, model: str
) -> None:
    token = Token()
    last = threading.Event()

    def heard(progress: float) -> None:
        if progress >= 0.94:
            last.set()
            token.cancel()

    sink = diffusing.HeardSink(tmp_path, heard)
    with pytest.raises(Cancelled):
        video.make(manager, request(model, num_inferences_steps=2), sink, token)
    assert last.is_set()
    assert sink.drafts == 0


def test_cancelling_while_frames_are_encoded_leaves_no_file(
    manager: PipelineManager, tmp_path: Path
) -> None:
    token = Token()

    class Sink(diffusing.HeardSink):
        def draft(self, expected_bytes: int = 0) -> Path:
            token.cancel()
            return super().draft(expected_bytes)

    sink = Sink(tmp_path)
    with pytest.raises(Cancelled):
        video.make(manager, request(TEXT_TO_VIDEO), sink, token)
    assert sink.files == []


def test_a_short_video_gives_as_many_frames_and_a_long_one_is_cut(
    manager: PipelineManager, sink: diffusing.HeardSink, tmp_path: Path
) -> None:
    short = request(WAN, init_weight=0.5, **begun_with(tmp_path, 3))
    assert len(pixels(manager, sink, short)) == 3
    assert any("init_video has 3 frames at 10 frames/s" in line for line in sink.lines)
    assert any("the model makes 5 frames: those after 3" in line for line in sink.lines)
    long = request(TEXT_TO_VIDEO, init_weight=0.5, num_frames=4, **begun_with(tmp_path, 9))
    assert len(pixels(manager, sink, long)) == 4


def test_sizes_off_the_models_grid_are_worked_on_larger_and_cut(
    manager: PipelineManager, sink: diffusing.HeardSink, tmp_path: Path
) -> None:
    size = {"width": 40, "height": 24}
    frames = pixels(manager, sink, request(WAN, **size))
    assert frames.shape == (5, 24, 40, 3)
    assert "the model works on 48 x 32: what is above 40 x 24 is cut off" in sink.lines
    begun = begun_with(tmp_path, 5, 40, 24)
    assert pixels(manager, sink, request(WAN, **size, **begun)).shape == (5, 24, 40, 3)
    sink.lines.clear()
    assert pixels(manager, sink, request(TEXT_TO_VIDEO, **size)).shape == (5, 24, 40, 3)
    assert not any("works on" in line for line in sink.lines)


@pytest.mark.parametrize(
    ("model", "given", "kind", "words"),
    [
        (ANIMATED, {"num_frames": 9}, errors.BadRequestError, "num_frames=9: .* 8 at most"),
        (TEXT_TO_VIDEO, {"width": 512}, errors.RequestTooLargeError, "512 x 32"),
        (PICTURES, {}, errors.NoBackendError, "makes no videos"),
    ],
)
def test_what_a_model_cannot_make_is_refused(
    manager: PipelineManager,
    sink: diffusing.HeardSink,
    model: str,
    given: dict[str, Any],
    kind: type[errors.PolymuxError],
    words: str,
) -> None:
    with pytest.raises(kind, match=words):
        video.make(manager, request(model, **given), sink, diffusing.token())
    assert sink.drafts == 0


@pytest.mark.parametrize("model", ALL)
def test_long_prompts_are_cut_and_that_is_told(
    manager: PipelineManager, sink: diffusing.HeardSink, model: str
) -> None:
    tokenizer = manager.parts(f"video:{model}")["tokenizer"]
    around = len(tokenizer("").input_ids)
    words = "x" * 2000
    count = len(tokenizer(words).input_ids) - around
    made_by(manager, request(model, prompt=words), sink)
    reads = tokenizer.model_max_length - around
    assert f"prompt: of its {count} tokens the model reads the first {reads}" in sink.lines


def test_words_and_guidance_count(manager: PipelineManager, sink: diffusing.HeardSink) -> None:
    plain = pixels(manager, sink, request(TEXT_TO_VIDEO, guidance_scale=8.0))
    for given in (
        {"prompt": "a city"},
        {"negative_prompt": "sea"},
        {"guidance_scale": 1.0},
        {"num_inferences_steps": 5},
    ):
        other = pixels(manager, sink, request(TEXT_TO_VIDEO, **{"guidance_scale": 8.0} | given))
        assert not numpy.array_equal(plain, other)


@pytest.mark.parametrize("model", ALL)
@pytest.mark.parametrize("begun", [False, True])
def test_previews_show_a_frame_and_change_nothing(
    manager: PipelineManager,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    begun: bool,
) -> None:
    given = {"init_weight": 0.25, **begun_with(tmp_path, 5)} if begun else {}
    asked = request(model, **given)
    plain = diffusing.HeardSink(tmp_path)
    (without,) = made_by(manager, asked, plain)
    assert plain.previews == []
    monkeypatch.setattr(previews, "_EVERY_S", 0.0)
    monkeypatch.setattr(previews, "_SHARE", 1e9)
    sink = diffusing.HeardSink(tmp_path)
    (made,) = made_by(manager, asked, sink)
    assert made.read_bytes() == without.read_bytes()
    assert len(sink.previews) == len(sink.progress)
    with Image.open(io.BytesIO(sink.previews[-1])) as preview:
        assert preview.format == "JPEG"
        assert preview.size == (WIDTH, HEIGHT)
        shown = numpy.asarray(preview)
    # The last is a frame of the video itself, as far as two ways of packing leave it.
    number = 0 if model == WAN else 2
    assert likeness(shown, frames_of(made)[number]) > 18


def test_a_full_disk_is_told(manager: PipelineManager, tmp_path: Path) -> None:
    class Sink(diffusing.HeardSink):
        def draft(self, expected_bytes: int = 0) -> Path:
            return super().draft(expected_bytes).parent / "none" / "draft"

    with pytest.raises((OSError, errors.PolymuxError)):
        video.make(manager, request(TEXT_TO_VIDEO, num_inferences_steps=1), Sink(tmp_path), Token())
