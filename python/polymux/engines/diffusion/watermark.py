"""The invisible mark in a picture that tells it was made by a machine.

The one that Stable Diffusion XL's own programs hide: 48 bits, by the method "dwtDct" of the package
invisible-watermark, which reads it too.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux.engines.base import missing_package

if TYPE_CHECKING:
    from collections.abc import Callable

    from PIL.Image import Image

    from polymux.engines.base import EngineSink

#: Below that there is no room for it.
_MIN_PX = 256


def marker(*, wanted: bool, size: tuple[int, int], sink: EngineSink) -> Callable[[Image], Image]:
    """What hides the mark in a picture; where it is not wanted, or has no room, what does nothing.

    Raises:
        NoBackendError: The package is missing.
    """
    if not wanted:
        return _unmarked
    if min(size) < _MIN_PX:
        sink.log(f"apply_watermark: a picture below {_MIN_PX} pixels has no room for it")
        return _unmarked
    return _marker()


def _marker() -> Callable[[Image], Image]:
    try:
        from diffusers.pipelines.stable_diffusion_xl.watermark import WATERMARK_BITS
        from imwatermark import WatermarkEncoder
    except ImportError:
        failure = missing_package("apply_watermark", "invisible-watermark", "diffusion")
        failure.param = "apply_watermark"
        raise failure from None
    import numpy
    from PIL import Image as Pictures

    encoder = WatermarkEncoder()
    encoder.set_watermark("bits", WATERMARK_BITS)

    def marked(picture: Image) -> Image:
        # The package takes blue first, and gives it so.
        blue_first = numpy.asarray(picture.convert("RGB"))[:, :, ::-1]
        made = encoder.encode(numpy.ascontiguousarray(blue_first), "dwtDct")
        return Pictures.fromarray(numpy.ascontiguousarray(made[:, :, ::-1]))

    return marked


def _unmarked(picture: Image) -> Image:
    return picture
