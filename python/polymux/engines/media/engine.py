"""The media engine: conversion and decoding with the native core, images with Pillow.

On a server, only this sandboxed process opens untrusted files. Other engines get samples and pixels
from it.
"""

from __future__ import annotations

import os
from base64 import b64encode
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux._native import media
from polymux._native.version import __version__
from polymux.engines.base import Cancelled, Engine, Output, Produced, threads
from polymux.media.conversion import convert_to_mp3
from polymux.media.inputs import native_source
from polymux.media.options import CONVERSION_FIELDS, Limits, native_limits
from polymux.media.probe import probe
from polymux.media.results import pcm_audio_from_native
from polymux.service.temporary_files import reported

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.media.results import Progress
    from polymux.service.model import Upload

#: Internal operations for other engines. They are not part of the API.
DECODE_AUDIO = "decode_audio"
LOAD_PICTURES = "load_pictures"
LOAD_FRAMES = "load_frames"
REMUX = "remux"
#: Fields of a conversion with the tags and the cover image of the web page of a download.
PAGE_TAGS, PAGE_COVER = "page_tags", "page_cover"
MEASURE_SOUND = "measure_sound"
MEASURE_PICTURE = "measure_picture"
SONG_SIGNATURE = "song_signature"
SONG_QUERY = "song_query"
#: Sample rate of speech models.
_SAMPLE_RATE_HZ = 16_000


class MediaEngine(Engine):
    """Converts and decodes media, and loads images."""

    def __init__(self) -> None:
        self._limits = Limits()
        self._max_pixels = 40_000_000

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Read the options ``limits`` (fields of `polymux.Limits`) and ``max_pixels``."""
        self.max_concurrency = int(options.get("max_concurrency", 1))
        self._limits = Limits(**options.get("limits", {}))
        self._max_pixels = int(options.get("max_pixels", self._max_pixels))
        # Load the native module now: the first request is faster, and a missing FFmpeg is reported.
        return {"build": media.build_info()["version"]}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        if request.operation == "convert_to_mp3":
            return self._convert(request, sink, token)
        if request.operation == REMUX:
            return self._remux(request, sink, token)
        if request.operation == DECODE_AUDIO:
            return self._decode(request.values["file"], sink, token)
        if request.operation == LOAD_PICTURES:
            from polymux.engines.media.images import load_pictures

            pictures = load_pictures(
                request.values["file"], request.values, self._max_pixels, sink, token
            )
            return Output({"pictures": pictures})
        if request.operation == LOAD_FRAMES:
            return self._frames(request, sink, token)
        if request.operation == MEASURE_SOUND:
            return self._measure(request.values["file"], token)
        if request.operation == SONG_SIGNATURE:
            return self._signature(request.values["file"], sink, token)
        if request.operation == SONG_QUERY:
            return self._query(request.values["file"], sink, token)
        if request.operation == MEASURE_PICTURE:
            from polymux.engines.media.images import measured

            return Output(measured(request.values["file"]))
        raise ValueError(request.operation)

    def _convert(self, request: Request, sink: EngineSink, token: Token) -> Output:
        source: Upload = request.values["file"]
        options = {
            python_name: request.values[name]
            for name, python_name in CONVERSION_FIELDS.items()
            if request.values.get(name) is not None
        }
        if PAGE_TAGS in request.values:
            options |= self._page_metadata(source, request.values)

        def report(progress: Progress) -> None:
            if token.cancelled:
                raise Cancelled
            if progress.fraction is not None:
                sink.report(progress.fraction)

        path = sink.draft(source.size_bytes // 10)
        with native_failures():
            made = convert_to_mp3(
                source.path,
                path,
                threads=self.threads or threads(),
                overwrite=False,
                limits=self._limits,
                on_progress=report,
                **options,
            )
        for warning in made.report.warnings:
            sink.warn(str(warning))
        metrics = {"duration": made.report.duration_s, "audio_bytes": float(made.report.bytes)}
        name = _named(source.file_name, ".mp3")
        return Output(
            {"response": Produced(path, "audio/mpeg", name), "report": made.report.to_dict()},
            __version__,
            metrics,
        )

    def _page_metadata(self, source: Upload, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return tags and cover of a web page, except those that the file already has."""
        probed = probe(source.path, limits=self._limits)
        known = {name.lower() for name, value in probed.tags.items() if value}
        lacking = {name: one for name, one in values[PAGE_TAGS].items() if name not in known}
        metadata: dict[str, Any] = {"tags": {**probed.tags, **lacking}}
        picture = values.get(PAGE_COVER)
        if picture is not None and probed.cover is None:
            metadata["cover"] = picture.path.read_bytes()
        return metadata

    def _remux(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Combine one or two downloaded files into one file."""
        from polymux.media.remux import remux

        def report(progress: Progress) -> None:
            if progress.fraction is not None:
                sink.report(progress.fraction)

        sources = [request.values[f"file_{number}"] for number in range(request.values["files"])]
        path = sink.draft(sum(one.size_bytes for one in sources))
        with native_failures():
            made = remux(
                [one.path for one in sources],
                path,
                on_progress=report,
                cancel=token,
                limits=self._limits,
            )
        for warning in made.warnings:
            sink.warn(str(warning))
        name = _named(f"{request.values['title']}.", made.extension)
        return Output(
            {"response": Produced(path, made.content_type, name)},
            metrics={"duration": made.duration_s},
        )

    def _decode(self, source: Upload, sink: EngineSink, token: Token) -> Output:
        """Decode to samples for speech models: a raw file of 16 kHz mono 32-bit floats."""
        self._open(source, sink, token)
        wanted = (_SAMPLE_RATE_HZ, 1, None, None, None, False)
        audio = pcm_audio_from_native(
            media.decode_pcm(
                native_source(source.path), *wanted, native_limits(self._limits), token.check
            )
        )
        path = sink.draft(audio.samples.nbytes)
        write_new(path, audio.samples.cast("B"))
        if audio.damaged_packets:
            sink.warn(f"{audio.damaged_packets} damaged packets were skipped")
        value = {
            "samples": Produced(path, "application/octet-stream", "samples.f32"),
            "duration_s": audio.duration_s,
        }
        return Output(value)

    def _open(self, source: Upload, sink: EngineSink, token: Token) -> None:
        """Open a file and report it: the rest reports no progress, but may take longer."""
        media.probe(native_source(source.path), native_limits(self._limits), token.check)
        sink.report(0.0)

    def _measure(self, source: Upload, token: Token) -> Output:
        limits = native_limits(self._limits)
        info = media.probe(native_source(source.path), limits, token.check)
        return Output({"duration_s": info["duration_s"]})

    def _frames(self, request: Request, sink: EngineSink, token: Token) -> Output:
        """Decode at most ``frames`` frames of ``width`` x ``height`` at ``fps`` for video models.

        The output file has only raw samples, 3 bytes per pixel.
        """
        from polymux.media.video import read_frames

        wanted = request.values
        width, height, most = int(wanted["width"]), int(wanted["height"]), int(wanted["frames"])
        path = sink.draft(width * height * 3 * most)
        with native_failures():
            found = read_frames(
                wanted["file"].path,
                path,
                width=width,
                height=height,
                fps=int(wanted["fps"]),
                max_frames=most,
                cancel=token,
                limits=self._limits,
                frame_pixels=self._max_pixels,
                overwrite=False,
            )
        if found.damaged_packets:
            sink.warn(f"{found.damaged_packets} damaged packets were skipped")
        return Output(
            {
                "samples": Produced(path, "application/octet-stream", "frames.rgb"),
                "frames": found.frames,
                "width": found.width,
                "height": found.height,
                "fps": int(wanted["fps"]),
            }
        )

    def _signature(self, source: Upload, sink: EngineSink, token: Token) -> Output:
        """Return the signature with which other servers recognize a song."""
        self._open(source, sink, token)
        limits = native_limits(self._limits)
        return Output(media.shazam_signature(native_source(source.path), limits, token.check))

    def _query(self, source: Upload, sink: EngineSink, token: Token) -> Output:
        """Return the fingerprint for the music library as Base64 text of at most 250 kB."""
        self._open(source, sink, token)
        limits = native_limits(self._limits)
        made = media.song_query(native_source(source.path), limits, token.check)
        query = b64encode(made["query"]).decode()
        return Output({"query": query, "duration_s": made["duration_s"]})


@contextmanager
def native_failures() -> Iterator[None]:
    """Convert errors of the native core that do not concern the input file.

    Raises:
        Cancelled: The request was canceled.
        InternalServerError: The server's disk is full (code ``storage_full``).
        StoreError: The output file cannot be written.
    """
    try:
        yield
    except errors.OperationCancelledError:
        raise Cancelled from None
    except errors.OutputError as error:
        with reported("cannot write an output file"):
            raise OSError(error.errno, error.strerror) from error


def write_new(path: Path, data: memoryview | bytes) -> None:
    """Write a file that must not exist.

    Raises:
        InternalServerError: The disk is full (code ``storage_full``).
        StoreError: The file cannot be written.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        reported("cannot write an output file"),
        os.fdopen(os.open(path, flags, 0o600), "wb") as file,
    ):
        file.write(data)


def _named(name: str, extension: str) -> str:
    """Return a result's file name from the input's, without directories and control characters."""
    stem = os.path.basename(name.replace("\\", "/")).rpartition(".")  # noqa: PTH119
    kept = "".join(char for char in (stem[0] or stem[2]) if char.isprintable())[:100]
    return f"{kept or 'audio'}{extension}"
