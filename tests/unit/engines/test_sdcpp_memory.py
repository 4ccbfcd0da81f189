"""Memory of requests to stable-diffusion.cpp, which is known before a model is loaded."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest
from polymux.downloads.url_inputs import UrlFetcher
from polymux.engines.sdcpp.backend import SdcppBackend
from polymux.errors import UnprocessableEntityError
from polymux.fetch.fetcher import FetchPolicy
from polymux.models.roles import assign_models
from polymux.service.admission import Bounds
from polymux.service.model import OperationRequest
from support.repositories import safetensors, write
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

WEIGHTS = safetensors(unet__x=(1 << 20,), te__x=(1,))


def needed_bytes(place: Path, **given: Any) -> int:
    cast = assign_models({"picture:B": str(place)}, family="sdcpp")
    backend = SdcppBackend(Scripted(), Scripted(), cast, UrlFetcher(FetchPolicy(), 1 << 20))
    values = {"width": 512, "height": 512, "num_inference_steps": 1, **given}
    work = OperationRequest("generate_image", "B", "", values, frozenset())
    estimate = asyncio.run(backend.estimate(work))
    needed = estimate.memory_bytes
    assert needed is not None
    Bounds(memory_bytes=needed).check(work, estimate)
    with pytest.raises(UnprocessableEntityError, match="memory"):
        Bounds(memory_bytes=needed - 1).check(work, estimate)
    return needed


def test_weights_and_pixels_count(tmp_path: Path) -> None:
    place = write(tmp_path / "own", {"model.safetensors": WEIGHTS})
    first = needed_bytes(place)
    assert first > len(WEIGHTS)
    # Sides are rounded up to the grid of the networks.
    assert needed_bytes(place, width=500) == first < needed_bytes(place, width=576)
    write(place, {"vae.safetensors": WEIGHTS})
    assert needed_bytes(place) == first + len(WEIGHTS)
    (place / "vae.safetensors").rename(place / "taesd.safetensors")
    assert needed_bytes(place) < first + len(WEIGHTS)
    # Without a small decoder, large images are decoded in tiles.
    large = {"width": 2048, "height": 2048}
    with_taesd = needed_bytes(place, **large)
    (place / "taesd.safetensors").unlink()
    assert needed_bytes(place, **large) < with_taesd - len(WEIGHTS)
