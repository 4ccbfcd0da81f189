"""Opening of images with limits: upright, 8 or 16 bits, without metadata. Uses Pillow.

Images are rejected before any pixel is decoded, by the format's signature and by the size in the
header.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.file_signatures import PICTURE
from polymux.engines.base import Produced, missing_package
from polymux.errors import UndecodableError, UnsupportedMediaError
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    import numpy as np
    from numpy.typing import NDArray
    from PIL.Image import Image

    from polymux.engines.base import EngineSink, Token
    from polymux.service.model import Upload

    Pixels = NDArray[np.uint8] | NDArray[np.uint16]

_MAX_PROFILE_BYTES = 4 << 20
_RGB = "RGB "
_MODES = ("RGB", "RGBA")


def in_srgb(picture: Image, sink: EngineSink) -> Image:
    """Convert an 8-bit image to sRGB, if it has a color profile.

    The conversion is in place, because a copy of a large image needs as much memory again. A
    profile that is broken or for another color space is ignored.
    """
    profile = picture.info.get("icc_profile")
    if not profile or len(profile) > _MAX_PROFILE_BYTES:
        return picture
    if picture.mode in ("P", "PA"):
        picture = picture.convert("RGBA" if picture.has_transparency_data else "RGB")
    if picture.mode not in _MODES:
        return picture
    try:
        from PIL import ImageCms
    except ImportError:  # Pillow can be built without LittleCMS.
        sink.warn(
            "the color profile of the image is ignored, because this build of Pillow does not "
            "support color profiles"
        )
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
        sink.warn("the color profile of the image is damaged, so sRGB is assumed")
    return picture


#: Supported formats by Pillow's names. Old or rare decoders, and those that start programs, are
#: excluded.
FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
#: Exceptions of Pillow's readers for broken files.
_BROKEN = (
    OSError,
    ValueError,
    SyntaxError,
    EOFError,
    KeyError,
    TypeError,
    IndexError,
    struct.error,
    zlib.error,
)
_MAX_PAGES = 200
#: PDF readers search for the header in this range.
_PDF_WITHIN_BYTES = 1024
#: Maximum scans of a progressive JPEG. About ten are usual. A scan needs a pass over the image, but
#: few bytes.
_MAX_SCANS = 50
_START_OF_SCAN = b"\xff\xda"
_MAX_TEXT_BYTES = 1 << 20
_DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
_DEEPEST = 0xFFFF
_ORIENTATION = 0x0112
#: TIFF 6.0, section 8: the meaning of samples. In grayscale images, 0 can be white.
_PHOTOMETRIC, _WHITE_IS_ZERO = 262, 0
_CHANNELS = 4


def _moves(picture: Image) -> bool:
    return picture.format not in ("TIFF", "MPO") and getattr(picture, "is_animated", False)


def load_pictures(
    source: Upload,
    wanted: Mapping[str, Any],
    max_pixels: int,
    sink: EngineSink,
    token: Token,
) -> list[dict[str, Any]]:
    """Write the pixels of a file's images to output files.

    Args:
        source: The file.
        wanted: ``pages``, the maximum number of images; ``mode``, ``"rgb"`` or ``"any"``, which
            keeps transparency, grayscale and 16 bits; ``max_side_px``, to which larger images are
            scaled down (only with ``"rgb"``; default: unchanged).
        max_pixels: Maximum pixels of an image; all pages together may have twice as many.
        sink: Provides output files.
        token: Checked before each image.

    Returns:
        For each image ``width``, ``height``, ``channels``, ``bits`` and ``pixels``, a file with
            only the samples, row by row, in native byte order.

    Raises:
        NoBackendError: Pillow or NumPy is not installed.
        UnsupportedMediaError: The format is not supported.
        RequestTooLargeError: There are too many pixels or pages.
        UndecodableError: The file is broken.
    """
    from polymux.engines.media.engine import write_new

    found = []
    total = 0
    with _opened(source) as picture:
        most = int(wanted.get("pages", 1))
        pages = _pages_of(picture)
        if most > 1 and pages > _MAX_PAGES:
            raise _too_large(f"too many pages (allowed: {_MAX_PAGES})")
        if pages > most == 1 or _moves(picture):
            sink.warn("the file contains several images, of which only the first is used")
        for number in range(min(pages, most)):
            token.check()
            picture.seek(number)
            total += picture.width * picture.height
            if picture.width * picture.height > max_pixels:
                raise _too_large(
                    f"image too large (got {picture.width} x {picture.height} pixels, allowed "
                    f"{max_pixels / 1e6:g} megapixels)"
                )
            if total > 2 * max_pixels:
                raise _too_large(
                    f"image too large (allowed: {2 * max_pixels / 1e6:g} megapixels in all pages)"
                )
            keep = wanted.get("mode") == "any"
            pixels = _deep_colours(picture, source, sink) if keep and number == 0 else None
            if pixels is None:
                pixels = _pixels(picture, sink, keep=keep, longest=wanted.get("max_side_px"))
            path = sink.draft(pixels.nbytes)
            write_new(path, pixels.data.cast("B"))
            sink.report((number + 1) / min(pages, most))
            found.append(
                {
                    "width": pixels.shape[1],
                    "height": pixels.shape[0],
                    "channels": pixels.shape[2],
                    "bits": pixels.dtype.itemsize * 8,
                    "pixels": Produced(path, "application/octet-stream", "pixels"),
                }
            )
    return found


def measured(source: Upload) -> dict[str, int]:
    """Return size and channels of the first image, and the number of pages, without decoding.

    Raises:
        UnsupportedMediaError: The format is not supported.
        UndecodableError: The file is broken.
    """
    with _opened(source) as picture:
        return {
            "width": picture.width,
            "height": picture.height,
            "pages": _pages_of(picture),
            "channels": 4 if picture.has_transparency_data else 3,
        }


@contextmanager
def _opened(source: Upload) -> Iterator[Image]:
    try:
        import numpy as np  # noqa: F401 - pixels become arrays
        from PIL import Image, PngImagePlugin, UnidentifiedImageError
    except ImportError as error:
        name = "NumPy" if error.name == "numpy" else "Pillow"
        raise missing_package("images", name, "images") from error

    PngImagePlugin.MAX_TEXT_CHUNK = _MAX_TEXT_BYTES
    PngImagePlugin.MAX_TEXT_MEMORY = 4 * _MAX_TEXT_BYTES
    # Our limit is checked before anything is decoded; Pillow's limit would only warn.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # Pass a file instead of its name: Pillow memory-maps uncompressed grayscale images by
            # name, with the width after rotation, which scrambles them.
            with source.path.open("rb") as file, Image.open(file, formats=FORMATS) as picture:
                if picture.format in ("JPEG", "MPO"):
                    _check_scans(source)
                yield picture
    except UnidentifiedImageError:
        with source.path.open("rb") as file:
            head = file.read(_PDF_WITHIN_BYTES)
        if PICTURE.match(head):
            raise UndecodableError(
                "the image header is damaged, or the pixel format is not supported (for example, "
                "floating-point colors). Convert the image to PNG",
                input_name=source.file_name,
            ) from None
        if b"%PDF-" in head:
            raise UnsupportedMediaError(
                "PDF is not supported. Convert its pages to images first, for example with "
                "`pdftoppm -r 200 -png`",
                input_name=source.file_name,
            ) from None
        raise UnsupportedMediaError(
            "unsupported image format (allowed: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM)",
            input_name=source.file_name,
        ) from None
    except errors.PolymuxError:
        raise
    except _BROKEN as error:
        # Pillow's messages do not contain paths.
        raise UndecodableError(
            f"the image is damaged: {error}", input_name=source.file_name
        ) from error


def _check_scans(source: Upload) -> None:
    scans = source.path.read_bytes().count(_START_OF_SCAN)
    if scans > _MAX_SCANS:
        raise _too_large(
            f"too many JPEG scans (got {scans}, allowed {_MAX_SCANS}). Save the image as PNG or "
            "baseline JPEG"
        )


def _pages_of(picture: Image) -> int:
    """Return the number of pages of a TIFF, at most one more than the limit; 1 for other formats.

    The frames of an animation, and the previews or depth images in a JPEG (CIPA DC-007), are not
    pages.
    """
    if picture.format != "TIFF":
        return 1
    # Pillow's own count would read all pages, however many there are.
    pages = 1
    with suppress(EOFError):
        while pages <= _MAX_PAGES:
            picture.seek(pages)
            pages += 1
    picture.seek(0)
    return pages


def _too_large(words: str) -> errors.RequestTooLargeError:
    return status_error(errors.RequestTooLargeError, words)


def _deep_colours(picture: Image, source: Upload, sink: EngineSink) -> Pixels | None:
    """Read 16-bit colors with OpenCV, because Pillow reduces them to 8 bits; else None."""
    most = _largest_sample(picture)
    if most <= _DEEPEST >> 8 or picture.mode not in ("RGB", "RGBA", "LA"):
        return None  # Grayscale keeps its bits in Pillow.
    try:
        import cv2
    except ImportError:
        sink.warn("16-bit colors are reduced to 8 bits: OpenCV is not installed")
        return None
    import numpy as np

    data = np.fromfile(source.path, np.uint8)
    found: Any = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    if found is None or found.dtype != np.uint16 or found.shape[:2] != picture.size[::-1]:
        sink.warn("16-bit colors are reduced to 8 bits: OpenCV cannot read this image")
        return None
    if most != _DEEPEST:
        found = np.round(np.minimum(found, most) * (_DEEPEST / most)).astype(np.uint16)
    # With IMREAD_UNCHANGED, OpenCV still rotates TIFF files, but no other formats.
    lies = 1 if picture.format == "TIFF" else picture.getexif().get(_ORIENTATION, 1)
    turned = _turned(found, lies)
    order = cv2.COLOR_BGRA2RGBA if turned.shape[2] == _CHANNELS else cv2.COLOR_BGR2RGB
    colours: NDArray[np.uint16] = np.ascontiguousarray(cv2.cvtColor(turned, order))
    return colours


def _largest_sample(picture: Image) -> int:
    """Return the maximum sample value in the file; 255 for formats that Pillow reads unchanged."""
    for tile in getattr(picture, "tile", ()):
        arguments = tile[3] if isinstance(tile[3], tuple) else (tile[3],)
        if isinstance(arguments[0], str) and ";16" in arguments[0]:
            return _DEEPEST
        if picture.format == "PPM" and isinstance(arguments[-1], int):
            return arguments[-1] or _DEEPEST >> 8
    return _DEEPEST >> 8


def _turned(pixels: Any, orientation: int) -> Any:
    """Rotate an image upright according to its EXIF orientation (EXIF 2.32, 4.6.4)."""
    import numpy as np

    upright = {
        2: lambda one: one[:, ::-1],
        3: lambda one: one[::-1, ::-1],
        4: lambda one: one[::-1],
        5: lambda one: one.swapaxes(0, 1),
        6: lambda one: np.rot90(one, -1),
        7: lambda one: one[::-1, ::-1].swapaxes(0, 1),
        8: lambda one: np.rot90(one),
    }
    turn = upright.get(orientation)
    return pixels if turn is None else np.ascontiguousarray(turn(pixels))


def _pixels(picture: Image, sink: EngineSink, *, keep: bool, longest: int | None = None) -> Pixels:
    import numpy as np
    from PIL import Image, ImageOps

    # Avoid copies if nothing changes: they need as much memory as the image.
    lies = picture.getexif().get(_ORIENTATION, 1) != 1
    upright = ImageOps.exif_transpose(picture) if lies else picture
    if upright.mode in _DEEP_MODES:
        deep = _deep_grey(upright, sink, negative=_is_white_zero(picture))
        if keep:
            return deep
        upright = _in_8_bits(deep)
    upright = in_srgb(upright, sink)
    if keep:
        mode = "RGBA" if upright.has_transparency_data else "L" if upright.mode == "L" else "RGB"
        pixels = np.asarray(upright if upright.mode == mode else upright.convert(mode))
        return np.ascontiguousarray(pixels if pixels.ndim == 3 else pixels[:, :, None])
    if upright.has_transparency_data:
        # Put transparent images on white, so dark text remains readable.
        white = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(white, upright.convert("RGBA"))
    plain = upright if upright.mode == "RGB" else upright.convert("RGB")
    if longest is not None and max(plain.size) > longest:
        plain.thumbnail((longest, longest))
    return np.ascontiguousarray(np.asarray(plain))


def _is_white_zero(picture: Image) -> bool:
    """Whether 0 is white. Pillow inverts such 8-bit images itself, but not deeper ones."""
    tags = getattr(picture, "tag_v2", {}) if picture.format == "TIFF" else {}
    return bool(tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO)


def _deep_grey(picture: Image, sink: EngineSink, *, negative: bool) -> NDArray[np.uint16]:
    """Convert deep grayscale to 16 bits, or to 16-bit RGBA if it has transparency."""
    import numpy as np

    values: NDArray[Any] = np.asarray(picture)
    grey = _in_16_bits(values, sink, negative=negative)[:, :, None]
    if negative:
        grey = np.subtract(_DEEPEST, grey, dtype=np.uint16)
    clear = picture.info.get("transparency")
    if not isinstance(clear, int):
        return np.ascontiguousarray(grey)
    alpha = np.where(values != clear, _DEEPEST, 0).astype(np.uint16)[:, :, None]
    return np.concatenate((grey, grey, grey, alpha), axis=2)


def _in_16_bits(values: NDArray[Any], sink: EngineSink, *, negative: bool) -> NDArray[np.uint16]:
    """Scale samples to 16 bits; 16-bit samples are unchanged.

    Files do not state which value is white. For floats it is the smallest of 1, 255 and 65,535 that
    no sample exceeds, else the largest sample. For integers it is 65,535 or the largest sample.
    """
    import numpy as np

    if values.dtype.kind == "u":
        return values.astype(np.uint16, copy=False)
    is_whole = values.dtype.kind == "i"
    known = values if is_whole else np.nan_to_num(values, nan=0.0, posinf=0.0, neginf=0.0)
    lowest, largest = float(known.min()), float(known.max())
    if is_whole and lowest >= 0 and largest <= _DEEPEST:
        return values.astype(np.uint16)
    tops = (_DEEPEST,) if is_whole else (1, _DEEPEST >> 8, _DEEPEST)
    white = next((one for one in tops if largest <= one), largest)
    top, bottom = ("black", "white") if negative else ("white", "black")
    below = f" and values below 0 are {bottom}" if lowest < 0 else ""
    sink.warn(f"32-bit samples are reduced to 16 bits: {white:g} is {top}{below}")
    shares = np.nan_to_num(values / white, nan=0.0, posinf=1.0, neginf=0.0)
    made: NDArray[np.uint16] = np.round(np.clip(shares, 0, 1) * _DEEPEST).astype(np.uint16)
    return made


def _in_8_bits(deep: NDArray[np.uint16]) -> Image:
    from PIL import Image

    small = (deep >> 8).astype("uint8")
    return Image.fromarray(small if small.shape[2] == _CHANNELS else small[:, :, 0])
