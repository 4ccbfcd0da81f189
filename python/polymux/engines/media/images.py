"""Pictures, opened with limits and made plain: upright, 8 or 16 bits, no metadata. By Pillow.

What is refused, and by which status, is decided before a pixel is decoded: by the format's
signature, and by the size that the header claims.
"""

from __future__ import annotations

import struct
import warnings
import zlib
from contextlib import contextmanager, suppress
from io import BytesIO
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._util.text import PICTURE
from polymux.engines.base import Produced
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
    """A picture of 8 bits, in colours that mean the same without its profile.

    What it becomes is written over it: a copy of a large one is as large again. A profile that is
    broken, or of other colours than the samples are, changes nothing.
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


#: Pillow's names of what is taken. Decoders that are old, rare or run other programs are left out.
FORMATS = ("PNG", "JPEG", "TIFF", "BMP", "GIF", "WEBP", "PPM")
#: What Pillow's readers raise for broken files, each in its own way.
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
#: Readers of PDF look no further for its first words.
_PDF_WITHIN_BYTES = 1024
#: A progressive JPEG has ten or so; each costs a pass over all of it, and few bytes.
_MAX_SCANS = 50
_START_OF_SCAN = b"\xff\xda"
_MAX_TEXT_BYTES = 1 << 20
_DEEP_MODES = ("I;16", "I;16B", "I;16L", "I;16N", "I", "F")
_DEEPEST = 0xFFFF
_ORIENTATION = 0x0112
#: Of TIFF (6.0, section 8): what samples mean; in grey ones 0 may be white.
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
    """Writes the pixels of a file's pictures to drafts.

    Args:
        wanted: ``pages``, how many pictures at most; ``mode``, ``"rgb"`` or ``"any"``: the latter
            keeps transparency, grey and 16 bits; ``max_side_px``, to which larger ones are made
            smaller (``"rgb"`` only; default: as they are).
        max_pixels: Most that a picture may have; of all pages together twice as many.

    Returns:
        For each picture ``width``, ``height``, ``channels``, ``bits`` and ``pixels``: a file of
        nothing but samples, row by row, native byte order.

    Raises:
        UnsupportedMediaError: Not one of the formats that are taken.
        RequestTooLargeError: Too many pixels or pages.
        UndecodableError: Broken.
    """
    from polymux.engines.media.engine import write_new

    found = []
    total = 0
    with _opened(source) as picture:
        most = int(wanted.get("pages", 1))
        pages = _pages_of(picture)
        if most > 1 and pages > _MAX_PAGES:
            raise _too_large(f"it has more than the {_MAX_PAGES} pages that are taken")
        if pages > most == 1 or _moves(picture):
            sink.log("it has several pictures: the first is taken")
        for number in range(min(pages, most)):
            token.check()
            picture.seek(number)
            total += picture.width * picture.height
            if picture.width * picture.height > max_pixels or total > 2 * max_pixels:
                raise _too_large(
                    f"{picture.width} x {picture.height} pixels are more than the "
                    f"{max_pixels / 1e6:g} megapixels that are taken"
                )
            keep = wanted.get("mode") == "any"
            pixels = _deep_colours(picture, source, sink) if keep and number == 0 else None
            if pixels is None:
                pixels = _pixels(picture, sink, keep=keep, longest=wanted.get("max_side_px"))
            path = sink.draft(pixels.nbytes)
            write_new(path, pixels.data.cast("B"))
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
    """Width, height and channels of the first picture and the number of pages; decodes none.

    Raises:
        UnsupportedMediaError: Not one of the formats that are taken.
        UndecodableError: Broken.
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
    from PIL import Image, PngImagePlugin, UnidentifiedImageError

    PngImagePlugin.MAX_TEXT_CHUNK = _MAX_TEXT_BYTES
    PngImagePlugin.MAX_TEXT_MEMORY = 4 * _MAX_TEXT_BYTES
    # The own limit is looked at before anything is decoded; Pillow's would only warn.
    Image.MAX_IMAGE_PIXELS = None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            # By a file and not by its name: what Pillow maps into memory by a name, uncompressed
            # grey, it takes for as wide as it will be once turned, and scrambles.
            with source.path.open("rb") as file, Image.open(file, formats=FORMATS) as picture:
                if picture.format in ("JPEG", "MPO"):
                    _check_scans(source)
                yield picture
    except UnidentifiedImageError:
        with source.path.open("rb") as file:
            head = file.read(_PDF_WITHIN_BYTES)
        if PICTURE.match(head):
            raise UndecodableError(
                "the picture is broken, or has samples that are not read here, such as floats for "
                "colours: its header cannot be read; make a PNG of it",
                input_name=source.file_name,
            ) from None
        if b"%PDF-" in head:
            raise UnsupportedMediaError(
                "this is a PDF, and pictures are read here: make pictures of its pages first, as "
                "`pdftoppm -r 200 -png` does",
                input_name=source.file_name,
            ) from None
        raise UnsupportedMediaError(
            "this is no picture of a kind that is read: PNG, JPEG, TIFF, BMP, GIF, WebP, PNM",
            input_name=source.file_name,
        ) from None
    except errors.PolymuxError:
        raise
    except _BROKEN as error:
        # Their words name no path.
        raise UndecodableError(
            f"the picture is broken: {error}", input_name=source.file_name
        ) from error


def _check_scans(source: Upload) -> None:
    scans = source.path.read_bytes().count(_START_OF_SCAN)
    if scans > _MAX_SCANS:
        raise _too_large(f"it comes in {scans} passes, and {_MAX_SCANS} are taken")


def _pages_of(picture: Image) -> int:
    """How many there are; of a TIFF that has more than are taken, one more than that.

    Others have no pages: what moves has frames, and a JPEG has smaller ones of itself, or depths
    (CIPA DC-007).
    """
    if picture.format != "TIFF":
        return 1
    # Pillow would look for the last of them, however many there are.
    pages = 1
    with suppress(EOFError):
        while pages <= _MAX_PAGES:
            picture.seek(pages)
            pages += 1
    picture.seek(0)
    return pages


def _too_large(words: str) -> errors.RequestTooLargeError:
    return status_error(errors.RequestTooLargeError, f"the picture is too large: {words}")


def _deep_colours(picture: Image, source: Upload, sink: EngineSink) -> Pixels | None:
    """Colours of 16 bits, which Pillow would make 8, by OpenCV; None where there are none."""
    most = _largest_sample(picture)
    if most <= _DEEPEST >> 8 or picture.mode not in ("RGB", "RGBA", "LA"):
        return None  # Grey ones keep their bits.
    try:
        import cv2
    except ImportError:
        sink.log("16 bits of each colour become 8: OpenCV, which keeps them, is not installed")
        return None
    import numpy as np

    data = np.fromfile(source.path, np.uint8)
    found: Any = cv2.imdecode(data, cv2.IMREAD_UNCHANGED)
    if found is None or found.dtype != np.uint16 or found.shape[:2] != picture.size[::-1]:
        sink.log("16 bits of each colour become 8: OpenCV does not read this picture")
        return None
    if most != _DEEPEST:
        found = np.round(np.minimum(found, most) * (_DEEPEST / most)).astype(np.uint16)
    # OpenCV turns a TIFF as its tag says, and nothing else where it is to change nothing.
    lies = 1 if picture.format == "TIFF" else picture.getexif().get(_ORIENTATION, 1)
    turned = _turned(found, lies)
    order = cv2.COLOR_BGRA2RGBA if turned.shape[2] == _CHANNELS else cv2.COLOR_BGR2RGB
    colours: NDArray[np.uint16] = np.ascontiguousarray(cv2.cvtColor(turned, order))
    return colours


def _largest_sample(picture: Image) -> int:
    """The sample of most light, as the file has it: 255 for all that Pillow reads as it is."""
    for tile in getattr(picture, "tile", ()):
        told = tile[3] if isinstance(tile[3], tuple) else (tile[3],)
        if isinstance(told[0], str) and ";16" in told[0]:
            return _DEEPEST
        if picture.format == "PPM" and isinstance(told[-1], int):
            return told[-1] or _DEEPEST >> 8
    return _DEEPEST >> 8


def _turned(pixels: Any, orientation: int) -> Any:
    """Upright, as EXIF's tag says that a picture lies (EXIF 2.32, 4.6.4)."""
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

    # A copy of a large picture is as large again: there is none where nothing changes.
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
        # Text on nothing is text on white.
        white = Image.new("RGBA", upright.size, "white")
        upright = Image.alpha_composite(white, upright.convert("RGBA"))
    plain = upright if upright.mode == "RGB" else upright.convert("RGB")
    if longest is not None and max(plain.size) > longest:
        plain.thumbnail((longest, longest))
    return np.ascontiguousarray(np.asarray(plain))


def _is_white_zero(picture: Image) -> bool:
    """Whether 0 is white: of 8 bits Pillow makes it black, of more it leaves the negative."""
    tags = getattr(picture, "tag_v2", {}) if picture.format == "TIFF" else {}
    return bool(tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO)


def _deep_grey(picture: Image, sink: EngineSink, *, negative: bool) -> NDArray[np.uint16]:
    """Grey of more than 8 bits in 16; with transparency it becomes colours, which may have it."""
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
    """Samples of 16 bits as they are; of 32 so that the largest is not beyond them.

    Nothing in a file says which value is white: of floats it is the least of 1, 255 and 65,535 that
    none is above, else the largest that there is; of whole numbers 65,535 or the largest.
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
    below = f" and what is below 0 {bottom}" if lowest < 0 else ""
    sink.log(f"samples of 32 bits become 16: {white:g} is {top}{below}")
    shares = np.nan_to_num(values / white, nan=0.0, posinf=1.0, neginf=0.0)
    made: NDArray[np.uint16] = np.round(np.clip(shares, 0, 1) * _DEEPEST).astype(np.uint16)
    return made


def _in_8_bits(deep: NDArray[np.uint16]) -> Image:
    from PIL import Image

    small = (deep >> 8).astype("uint8")
    return Image.fromarray(small if small.shape[2] == _CHANNELS else small[:, :, 0])
