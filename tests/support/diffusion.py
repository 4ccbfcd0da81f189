"""Diffusion engines in the test process, and requests for them."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import numpy
from polymux.contract import operation
from polymux.engines.base import Request, Token
from polymux.engines.diffusion.engine import DiffusionEngine
from polymux.engines.diffusion.image_files import FACTS, SAMPLES
from polymux.service.model import Upload

from support.sinks import HeardSink

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from PIL.Image import Image

__all__ = ["HeardSink", "engine", "picture", "request", "token", "upload", "watermark_bits"]


def engine(models: Mapping[str, Path], **options: Any) -> DiffusionEngine:
    """An engine without loaded models; `models` are assigned by role."""
    from polymux.models.roles import ROLES

    os.environ["POLYMUX_THREADS"] = "1"
    made = DiffusionEngine()
    cast = {
        role: {"path": str(path), "name": ROLES[role].model, "version": "f" * 64}
        for role, path in models.items()
    }
    device = os.environ.get("POLYMUX_TEST_DEVICE", "cpu")
    dtype = os.environ.get("POLYMUX_TEST_DTYPE", "auto")
    made.load({"models": cast, "device": device, "dtype": dtype, **options})
    return made


def request(name: str, variant: str = "", /, **given: Any) -> Request:
    """A request with the contract's defaults, like the service sends it to an engine."""
    shape = next(one for one in operation(name).variants if one.id == variant)
    defaults = {
        one.name: one.raw.get("upstream_default") if one.default is None else one.default
        for one in shape.fields
    }
    values = {name: one for name, one in defaults.items() if one is not None}
    return Request(name, variant, shape.model or "", values | given, frozenset(given))


def watermark_bits(pixels: numpy.ndarray[Any, Any]) -> int:
    """How many of the 48 bits of the watermark a foreign decoder reads."""
    from diffusers.pipelines.stable_diffusion_xl.watermark import WATERMARK_BITS
    from imwatermark import WatermarkDecoder

    blue_first = numpy.ascontiguousarray(pixels[:, :, ::-1].astype(numpy.uint8))
    found = WatermarkDecoder("bits", 48).decode(blue_first, "dwtDct")
    return sum(int(one) == other for one, other in zip(found, WATERMARK_BITS, strict=True))


def picture(name: str, image: Image, folder: Path) -> dict[str, Any]:
    """The image of a request, like the backend sends it to an engine."""
    samples = numpy.asarray(image.convert("RGB"))
    path = folder / f"{name}-{samples.shape[1]}x{samples.shape[0]}-{abs(hash(samples.tobytes()))}"
    path.write_bytes(samples.tobytes())
    facts = {"width": image.width, "height": image.height, "channels": 3, "bits": 8}
    return {
        name + SAMPLES: Upload(path, "pixels", "application/octet-stream", samples.nbytes),
        name + FACTS: facts,
    }


def upload(path: Path) -> Upload:
    return Upload(path, path.name, "application/octet-stream", path.stat().st_size)


def token() -> Token:
    return Token()
