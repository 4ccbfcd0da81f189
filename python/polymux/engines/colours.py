"""What the numbers of a picture mean: those of another colour space than sRGB become sRGB's."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.Image import Image

    from polymux.engines.base import EngineSink

_MOST_PROFILE_BYTES = 4 << 20
_RGB = "RGB "
_MODES = ("RGB", "RGBA")


def in_srgb(picture: Image, sink: EngineSink) -> Image:
    """A picture of 8 bits, in colours that mean the same without its profile.

    What it becomes is written over it: a copy of a large one is as large again. A profile that is
    broken, or of other colours than the samples are, changes nothing.
    """
    profile = picture.info.get("icc_profile")
    if not profile or len(profile) > _MOST_PROFILE_BYTES:
        return picture
    if picture.mode in ("P", "PA"):
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    if picture.mode not in _MODES:
        return picture
    try:
        from PIL import ImageCms
    except ImportError:  # Pillow can be built without LittleCMS.
        sink.log("the picture's colour profile is left out: this Pillow knows none")
        return picture
    try:
        own = ImageCms.ImageCmsProfile(BytesIO(profile))
        is_other = own.profile.xcolor_space == _RGB
        if is_other and "srgb" not in ImageCms.getProfileDescription(own).lower():
            picture.load()
            ImageCms.profileToProfile(
                picture, own, ImageCms.createProfile("sRGB"),
                renderingIntent=ImageCms.Intent.RELATIVE_COLORIMETRIC, inPlace=True,
            )  # fmt: skip
    except (ImageCms.PyCMSError, OSError, ValueError, TypeError):
        sink.log("the picture's colour profile is broken: its colours are taken for sRGB's")
    return picture
