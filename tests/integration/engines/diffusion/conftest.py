"""Tiny models with random weights: they test the pipeline, not image quality."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.engines.diffusion import calibration, steps
from support import detail_models, diffusion, diffusion_models, video_models
from support.lazy_imports import torch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine


@pytest.fixture(scope="session", autouse=True)
def _quick() -> Iterator[None]:
    """More threads make tiny models slower. No test depends on the device's speed."""
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(calibration, "_MEASURED_S", 0.01)
        yield


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Role of images -> model."""
    folder = tmp_path_factory.mktemp("models")
    xl = diffusion_models.stable_diffusion_xl(folder / "xl")
    return {
        "picture:A": xl,
        "picture:B": xl,
        "picture:C": diffusion_models.stable_diffusion_xl(folder / "playground", seed=1),
        "picture:refiner": diffusion_models.refiner(folder / "refiner"),
        "picture:decoder": diffusion_models.tiny_vae(folder / "taesdxl"),
    }


@pytest.fixture(scope="session")
def detail(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Role of detail -> model."""
    return detail_models.models(tmp_path_factory.mktemp("detail"))


@pytest.fixture(scope="session")
def every(
    models: dict[str, Path], detail: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, Path]:
    """Role of any operation -> model."""
    folder = tmp_path_factory.mktemp("every")
    return {
        **models,
        **detail,
        "video:xl": video_models.text_to_video(folder / "text"),
        "video:576w": video_models.animate_diff(folder / "animated"),
        "video:potat1": video_models.wan(folder / "wan"),
        "video:animov-512x": diffusion_models.stable_diffusion(folder / "pictures"),
        "music": diffusion_models.stable_diffusion(folder / "music"),
    }


@pytest.fixture(scope="session")
def engine(models: dict[str, Path]) -> DiffusionEngine:
    return diffusion.engine(models)


@pytest.fixture(scope="session")
def detailing(detail: dict[str, Path]) -> DiffusionEngine:
    return diffusion.engine(detail, previews=False)


@pytest.fixture
def work(detailing: DiffusionEngine, tmp_path: Path) -> detail_models.Work:
    """Run the engine on an image. Returns its response and the reported messages."""
    return lambda pixels=detail_models.SMALL, **values: detail_models.worked(
        detailing, tmp_path, pixels, **values
    )


@pytest.fixture
def paint(detailing: DiffusionEngine, tmp_path: Path) -> detail_models.Paint:
    """Run the engine on an image. Returns the resulting samples."""
    return lambda pixels=detail_models.SMALL, **values: detail_models.made(
        detailing, tmp_path, pixels, **values
    )


@pytest.fixture
def sink(tmp_path: Path) -> diffusion.HeardSink:
    return diffusion.HeardSink(tmp_path)


@pytest.fixture
def previews_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Send a preview after every step, however long it takes."""
    monkeypatch.setattr(steps, "_PREVIEW_EVERY_S", 0.0)
    monkeypatch.setattr(steps, "_PREVIEW_SHARE", 1e9)
