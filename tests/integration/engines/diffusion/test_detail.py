"""Detail added to upscaled images, with tiny models of random weights."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import numpy
import pytest
from PIL import Image
from polymux import errors
from polymux.engines.base import Cancelled, Token
from polymux.engines.diffusion.upscale import tiled_diffusion
from polymux.engines.diffusion.upscale.images import resized
from polymux.engines.diffusion.upscale.schedulers import Solver
from support import detail_models, diffusion
from support.detail_models import ROLE, SMALL, difference, picture, worked
from support.lazy_imports import torch
from support.weights import upscaler

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine
    from support.detail_models import Paint, Work


@pytest.mark.parametrize(
    ("size", "factor"),
    [((61, 43), 1.5), ((30, 21), 4.7), ((90, 80), 0.4), ((1, 1), 2), ((300, 1), 2)],
)  # fmt: skip
def test_the_size_is_the_factor(work: Work, size: tuple[int, int], factor: float) -> None:
    output, sink = work(picture(*size), scale_factor=factor)
    with Image.open(output.value[0].path) as opened:
        assert opened.size == tuple(max(1, round(side * factor)) for side in size)
    assert sink.progress == sorted(sink.progress)
    assert sink.progress[-1] == pytest.approx(0.95)


def test_no_creativity_is_the_enlarged_picture(work: Work) -> None:
    output, sink = work(creativity=0)
    with Image.open(output.value[0].path) as opened:
        assert numpy.array_equal(numpy.asarray(opened), resized(SMALL, (120, 100)))
    assert any("creativity" in line for line in sink.lines)


def test_little_creativity_stays_closer_than_much(paint: Paint) -> None:
    decoded = paint(creativity=0.01, num_inference_steps=100)
    little, much = (
        difference(paint(creativity=one, num_inference_steps=10), decoded) for one in (0.2, 0.9)
    )
    assert 0 < little < much


def test_resemblance_dynamic_and_prompts_count(paint: Paint) -> None:
    plain = paint()
    for values in (
        {"resemblance": 0}, {"dynamic": 1}, {"prompt": "a dog"}, {"prompt": "a (barn:1.8)"},
        {"prompt": "a BREAK barn"}, {"negative_prompt": "rain"}, {"pattern": True},
    ):  # fmt: skip
        assert not numpy.array_equal(paint(**values), plain), values
    # Without guidance, the negative prompt has no effect.
    first, second = (paint(dynamic=1, negative_prompt=one) for one in ("", "(rain:2)"))
    assert numpy.array_equal(first, second)


def test_a_picture_in_one_tile_is_not_tiled(paint: Paint) -> None:
    small, large = (paint(tiling_width=side, tiling_height=side) for side in (16, 256))
    assert numpy.array_equal(small, large)


def predictions(paint: Paint, patched: pytest.MonkeyPatch, **values: Any) -> list[Any]:
    """Combined predictions of a network that returns one constant per tile.

    Each is relative to the difference between tiles.
    """
    found: list[Any] = []
    plain = Solver.next

    def next_(self: Solver, prediction: Any, timestep: Any, latents: Any, generator: Any) -> Any:
        found.append(prediction / (prediction.max() - prediction.min()))
        return plain(self, prediction, timestep, latents, generator)

    patched.setattr(Solver, "next", next_)
    patched.setattr(
        tiled_diffusion.Painter,
        "_noise_of",
        lambda _, piece, *__: torch.full_like(piece, float(piece.std())),
    )
    paint(picture(256, 256), scale_factor=1, **values)
    assert len(found) == 2
    return found


def largest_step(prediction: Any, *, around: bool = False) -> float:
    """The largest difference between adjacent cells."""
    if around:
        prediction = torch.nn.functional.pad(prediction, (0, 1, 0, 1), "circular")
    return max(float(prediction.diff(dim=dim).abs().max()) for dim in (2, 3))


def test_tiles_leave_no_seam(paint: Paint, monkeypatch: pytest.MonkeyPatch) -> None:
    for prediction in predictions(paint, monkeypatch):
        assert 0 < largest_step(prediction) < 0.3


def test_a_pattern_has_no_seam_at_its_edges(paint: Paint, monkeypatch: pytest.MonkeyPatch) -> None:
    for prediction in predictions(paint, monkeypatch, pattern=True):
        assert 0 < largest_step(prediction, around=True) < 0.4


@pytest.mark.parametrize("at", [1, 6])
def test_it_ends_at_the_next_tile(detailing: DiffusionEngine, tmp_path: Path, at: int) -> None:
    """Progress counts ten tiles: one encoding, four in each of two steps, and one decoding."""
    token = Token()

    def leave(_: float) -> None:
        if len(sink.progress) == at:
            token.cancel()

    sink = diffusion.HeardSink(tmp_path, leave)
    files = diffusion.picture("image", Image.fromarray(picture(90, 70)), tmp_path)
    asked = diffusion.request("upscale_image", "A", **detail_models.QUICK | files)
    with pytest.raises(Cancelled):
        detailing.run(asked, sink, token)
    assert len(sink.progress) == at


@pytest.mark.parametrize(("kind", "form"), [("png", "PNG"), ("jpg", "JPEG"), ("webp", "WEBP")])
def test_formats(work: Work, kind: str, form: str) -> None:
    output, _ = work(output_format=kind)
    (file,) = output.value
    assert file.file_name == f"detailed.{kind}"
    assert file.content_type == f"image/{form.lower()}"
    with Image.open(file.path) as opened:
        assert opened.format == form
        if kind == "png":
            settings = opened.text["parameters"]
            assert settings.startswith("a barn\nSteps: 4, Sampler: Euler, CFG scale: 6, Seed: 1337")
            assert "Size: 120x100" in settings
            assert "Denoising strength: 0.5" in settings
        if kind == "jpg":
            again = io.BytesIO()
            opened.save(again, "JPEG", quality=95)
            assert opened.quantization == Image.open(again).quantization
    assert output.version == "f" * 64


def test_what_is_white_in_the_mask_is_kept(paint: Paint) -> None:
    mask = numpy.zeros((25, 30, 3), numpy.uint8)
    mask[:, :15] = 255
    found = paint(mask=mask)
    enlarged = resized(SMALL, (120, 100))
    assert numpy.array_equal(found[:, :54], enlarged[:, :54])
    assert not numpy.array_equal(found[:, 66:], enlarged[:, 66:])
    assert numpy.array_equal(found[:, 66:], paint()[:, 66:])


def test_a_network_enlarges_where_there_is_one(detail: dict[str, Path], tmp_path: Path) -> None:
    enlarging = diffusion.engine(
        detail, upscaler=str(upscaler()), upscaler_factor=2, previews=False
    )
    output, sink = worked(enlarging, tmp_path, SMALL, creativity=0)
    with Image.open(output.value[0].path) as opened:
        found = numpy.asarray(opened)
    assert found.shape == (100, 120, 3)
    assert 0 < difference(found, resized(SMALL, (120, 100))) < 10
    assert any("realesr-animevideov3-x2" in line for line in sink.lines)


def test_what_nothing_here_does_is_refused(work: Work) -> None:
    with pytest.raises(errors.NoBackendError) as caught:
        work(handfix="hands_only")
    assert caught.value.param == "handfix"


def test_too_much_is_refused_before_work(detail: dict[str, Path], tmp_path: Path) -> None:
    engine = diffusion.engine(detail, max_detail_pixels=10_000)
    with pytest.raises(errors.RequestTooLargeError, match="120 x 100") as caught:
        worked(engine, tmp_path, SMALL)
    assert caught.value.status == 413
    assert not engine.manager.is_loaded(ROLE)
