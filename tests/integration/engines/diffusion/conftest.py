"""Tiny models with random weights: they prove plumbing, and say nothing of beauty."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from support import diffusing, diffusion_models

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.engines.diffusion.engine import DiffusionEngine


@pytest.fixture(scope="session")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Role to a model."""
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
def engine(models: dict[str, Path]) -> DiffusionEngine:
    return diffusing.engine(models)


@pytest.fixture
def sink(tmp_path: Path) -> diffusing.HeardSink:
    return diffusing.HeardSink(tmp_path)
