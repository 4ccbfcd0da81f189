"""Options of the media functions, and their conversion to native options.

This module checks types. The native core checks ranges, and reports all invalid options in one
error.
"""

from __future__ import annotations

import operator
import re
import shutil
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias, TypedDict

from polymux._native import media
from polymux._util.deprecation import notice
from polymux._util.frozen import Record
from polymux._util.text import shown
from polymux.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from polymux._native import _media

Preset: TypeAlias = Literal["ffmpeg", "best", "fast"]
Carry: TypeAlias = Literal["copy", "none"]
CoverPicture: TypeAlias = "Carry | bytes | bytearray | memoryview"
Verify: TypeAlias = Literal["sequential", "ffmpeg"]
Tags: TypeAlias = "Carry | Mapping[str, str]"
Time: TypeAlias = "float | str"

#: Names of the conversion fields in the polymux API, and their names in `convert_to_mp3`.
CONVERSION_FIELDS = {
    "bitrate": "bitrate",
    "vbr_quality": "vbr_quality",
    "sample_rate": "sample_rate",
    "channels": "channels",
    "start": "start",
    "end": "end",
    "stream": "audio_stream",
}

_COVERS = ((b"\xff\xd8\xff", "image/jpeg"), (b"\x89PNG\r\n\x1a\n", "image/png"))
_REFERENCES = ("sequential", "ffmpeg")
#: Deprecated values.
_OLD_VERIFY = ("first-seam", "all")
_CLOCK = re.compile(r"(?:(?:(\d{1,6}):)?([0-5]?\d):)?([0-5]?\d(?:\.\d{0,9})?)", re.ASCII)
_SECONDS = re.compile(r"\d{1,9}(?:\.\d{0,9})?", re.ASCII)


class Limits(Record):
    """Limits on one input file.

    The defaults suit trusted files. A server uses lower limits.

    Attributes:
        probe_bytes: Bytes examined to detect the streams. Default: 5,000,000.
        streams: Number of streams of any kind in the container. Default: 1,000.
        duration_s: Duration of the decoded audio, counted while decoding. Default: 24 hours.
        sample_rate_hz: Highest input sample rate. Default: 768,000.
        channels: Highest input channel count. Default: 64.
        tag_bytes: Total size of tags, chapters and cover. Default: 64 MiB.
        chapters: Number of chapter marks. Default: 10,000.

    Example:
        >>> import polymux
        >>> try:
        ...     polymux.convert_to_mp3("talk.mp4", limits=polymux.Limits(duration_s=0.5))
        ... except polymux.LimitExceededError as error:
        ...     print(error.code)
        limit_exceeded
    """

    probe_bytes: int = 5_000_000
    streams: int = 1000
    duration_s: float = 24.0 * 3600.0
    sample_rate_hz: int = 768_000
    channels: int = 64
    tag_bytes: int = 64 * 1024 * 1024
    chapters: int = 10_000


class EncodingOptions(TypedDict, total=False):
    """The keyword options of all conversions; see `polymux.convert_to_mp3`."""

    bitrate: int | str | None
    vbr_quality: float | None
    abr: bool
    preset: Preset
    sample_rate: int | None
    channels: int | None
    audio_stream: int | None
    start: Time | None
    end: Time | None
    tags: Tags
    cover: CoverPicture
    id3v2_version: Literal[3, 4]
    identical_file: bool
    threads: int | None
    exact: bool
    verify: Verify | None
    strict: bool
    limits: Limits | None


def native_options(values: EncodingOptions) -> _media.ConvertOptions:
    """Build and check the native options.

    Raises:
        TypeError: An option is unknown or has the wrong type.
        InvalidRequestError: Options are out of range; the message names all of them.
    """
    unknown = sorted(set(values) - set(EncodingOptions.__annotations__))
    if unknown:
        raise TypeError(
            f"unknown option{'' if len(unknown) == 1 else 's'} {', '.join(map(shown, unknown))} "
            f"(allowed: {', '.join(EncodingOptions.__annotations__)})"
        )
    options = media.ConvertOptions()
    bitrate = values.get("bitrate")
    if isinstance(bitrate, str):
        options.bitrate_bps = media.parse_bitrate(bitrate)
    else:
        options.bitrate_bps = optional_integer("bitrate", bitrate)
    options.vbr_quality = _optional_number("vbr_quality", values.get("vbr_quality"))
    options.preset = _text("preset", values.get("preset", "ffmpeg"))
    options.sample_rate_hz = optional_integer("sample_rate", values.get("sample_rate"))
    options.channels = optional_integer("channels", values.get("channels"))
    options.audio_stream = optional_integer("audio_stream", values.get("audio_stream"))
    options.start_s = seconds("start", values.get("start"))
    options.end_s = seconds("end", values.get("end"))
    _set_cover(options, values.get("cover", "copy"))
    options.id3v2_version = integer("id3v2_version", values.get("id3v2_version", 3))
    options.threads = optional_integer("threads", values.get("threads")) or 0
    options.verify = _reference(values.get("verify"))
    for name in ("abr", "identical_file", "exact", "strict"):
        setattr(options, name, flag(name, values.get(name, False)))
    _set_tags(options, values.get("tags", "copy"))
    options.limits = native_limits(values.get("limits"))
    media.validate(options)
    return options


def _reference(verify: object) -> str:
    if verify is None:
        return "none"

    text = _text("verify", verify)
    if text in _OLD_VERIFY:
        warnings.warn(
            notice(f"verify={text!r}", "verify='sequential'"), DeprecationWarning, stacklevel=4
        )
        return "sequential"
    if text not in _REFERENCES:
        raise InvalidRequestError(
            f"verify: invalid value (got {shown(text)}, allowed 'sequential' or 'ffmpeg')"
        )
    if text == "ffmpeg" and shutil.which("ffmpeg") is None:
        raise MissingDependencyError(
            "verify: cannot find the ffmpeg program. Install FFmpeg, or verify with 'sequential'"
        )
    return text


def native_limits(limits: Limits | None) -> _media.Limits:
    """Convert limits to the native limits; None means the defaults.

    Raises:
        TypeError: `limits` is not a `Limits`, or a field has the wrong type.
        InvalidRequestError: A field does not fit the native type.
    """
    native = media.Limits()
    if limits is None:
        return native
    if not isinstance(limits, Limits):
        raise TypeError(
            f"limits: invalid type (got {type(limits).__name__}, allowed polymux.Limits or None)"
        )
    for name in Limits.names():
        value = getattr(limits, name)
        if name == "duration_s":
            native.duration_s = number(f"limits.{name}", value)
        else:
            wide = name.endswith("_bytes")
            setattr(native, name, integer(f"limits.{name}", value, bits=64 if wide else 32))
    return native


def integer(name: str, value: Any, *, bits: int = 32) -> int:
    """Return the value as an integer that fits the native field.

    Raises:
        TypeError: The value is not an integer. A bool or a float is not accepted.
        InvalidRequestError: The value does not fit.
    """
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool):
        raise TypeError(f"{name}: must be an integer (got {shown(value)})")
    if not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
        raise InvalidRequestError(
            f"{name}: out of range (got {shown(number)}, allowed signed integers of {bits} bits)"
        )
    return number


def optional_integer(name: str, value: Any) -> int | None:
    """Return the value as `integer` does; None stays None."""
    return None if value is None else integer(name, value)


def flag(name: str, value: Any) -> bool:
    """Return the value if it is a bool.

    Raises:
        TypeError: The value is not a bool.
    """
    if not isinstance(value, bool):
        raise TypeError(f"{name}: must be True or False (got {shown(value)})")
    return value


def number(name: str, value: Any) -> float:
    """Return the value as a float. Text and bools are rejected.

    Raises:
        TypeError: The value is not a number.
        InvalidRequestError: The integer is too large for a float.
    """
    if isinstance(value, (bool, str, bytes, bytearray)):
        raise TypeError(f"{name}: must be a number (got {shown(value)})")
    try:
        return float(value)
    except TypeError:
        raise TypeError(f"{name}: must be a number (got {shown(value)})") from None
    except OverflowError:
        raise InvalidRequestError(
            f"{name}: out of range (got an integer that is too large for a float)"
        ) from None


def _optional_number(name: str, value: Any) -> float | None:
    return None if value is None else number(name, value)


def _text(name: str, value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{name}: must be a string (got {shown(value)})")
    if not value.isprintable():
        raise InvalidRequestError(
            f"{name}={shown(value)}: contains characters that are not printable"
        )
    return value


def seconds(name: str, value: Time | None) -> float | None:
    """Return a position in seconds from a number, ``"93.5"``, ``"1:33.5"`` or ``"0:01:33.500"``.

    Raises:
        TypeError: The value is neither a number nor text.
        InvalidRequestError: The text is not a time.
    """
    if not isinstance(value, str):
        return _optional_number(name, value)
    if _SECONDS.fullmatch(value):
        return float(value)
    parts = _CLOCK.fullmatch(value)
    if parts is None:
        raise InvalidRequestError(
            f"{name}={shown(value)}: invalid time. Use seconds such as 93.5, or [HH:]MM:SS[.mmm] "
            "such as '1:33.5'"
        )
    hours, minutes, rest = parts.groups()
    return int(hours or 0) * 3600 + int(minutes or 0) * 60 + float(rest)


def _set_tags(options: _media.ConvertOptions, tags: Any) -> None:
    if isinstance(tags, Mapping):
        options.replace_tags = [_tag(key, value) for key, value in tags.items()]
    else:
        options.tags = _text("tags", tags)


def _set_cover(options: _media.ConvertOptions, cover: Any) -> None:
    if not isinstance(cover, (bytes, bytearray, memoryview)):
        options.cover = _text("cover", cover)
        return
    data = bytes(cover)
    content_type = cover_type(data)
    if content_type is None:
        raise InvalidRequestError("cover: unsupported image type (allowed: JPEG, PNG)")
    options.replace_cover = content_type, data


def cover_type(data: bytes) -> str | None:
    r"""Return the content type of a cover image, or None if it is not a JPEG or PNG.

    Example:
        >>> from polymux.media.options import cover_type
        >>> cover_type(b"\xff\xd8\xff\xe0"), cover_type(b"RIFF....WEBP")
        ('image/jpeg', None)
    """
    return next((kind for magic, kind in _COVERS if data.startswith(magic)), None)


def _tag(key: Any, value: Any) -> tuple[str, str]:
    if not isinstance(key, str) or not isinstance(value, str):
        raise TypeError(f"tags: keys and values must be strings (got {shown(key)}: {shown(value)})")
    try:
        (key + value).encode()
    except UnicodeEncodeError as error:
        raise InvalidRequestError(
            f"tags: {shown(key)} contains characters that cannot be encoded as UTF-8"
        ) from error
    return key, value
