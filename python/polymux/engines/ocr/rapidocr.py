"""OCR with RapidOCR, whose package contains the models."""

from __future__ import annotations

import math
import queue
import time
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output, missing_package, threads
from polymux.engines.ocr.reading_order import (
    MAX_PAGE_S,
    Line,
    in_reading_order,
    is_blank,
    joined,
    pages_of,
    too_long,
    too_slow,
)
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.base import EngineSink, Request, Token

    Page = NDArray[np.uint8]

_TURNS = (0, 1, 2, 3)
#: A page read with this quality is upright: other rotations are not tried.
_GOOD = 0.9
_MAX_SIDE_PX = 2500
#: Maximum ratios of height to width, and of width to height, of pages for the models. The shorter
#: side is scaled to 736 pixels, so longer pages could need too much memory.
_HIGHEST, _WIDEST = 10, 64
#: Minimum ratio of a strip's sides, and the range around a cut that is searched.
_STRIP, _AROUND = 4, 25
#: In pixels. Lower images have no readable letters; longer ones would take minutes.
_LOWEST, _MAX_STRIP = 10, 50_000
#: Languages of the models in the package.
_LANGUAGES = ("eng", "chi_sim", "chi_tra", "deu", "fra", "ita", "spa", "por", "jpn")


class RapidOcrEngine(Engine):
    """An OCR engine; it reads `max_concurrency` images at a time."""

    def __init__(self) -> None:
        self._engines: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Load the models of the package.

        Raises:
            NoBackendError: The package is missing.
        """
        try:
            from rapidocr import RapidOCR
        except ImportError as error:
            raise missing_package("OCR", "rapidocr", "ocr", error) from None
        self.max_concurrency = int(options.get("max_concurrency", 1))
        # An object of the library runs one request at a time.
        for _ in range(self.max_concurrency):
            self._engines.put(
                RapidOCR(
                    params={
                        "EngineConfig.onnxruntime.intra_op_num_threads": threads(),
                        "EngineConfig.onnxruntime.inter_op_num_threads": 1,
                        "Global.log_level": "error",
                        "Global.max_side_len": _MAX_SIDE_PX,
                        # It would rotate single lines, and process the last one first.
                        "Global.use_cls": False,
                    }
                )
            )
        return {"model": "rapidocr", "languages": list(_LANGUAGES)}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        wanted = [one for one in str(request.values.get("lang") or "").split("+") if one]
        unknown = [one for one in wanted if one not in _LANGUAGES]
        if unknown:
            raise status_error(
                errors.BadRequestError,
                f"lang={'+'.join(wanted)[:100]}: unsupported language (allowed: "
                f"{', '.join(_LANGUAGES)}). The engine tesseract supports more languages",
                code="invalid_request",
                param="lang",
            )
        pages = pages_of(request.values)
        texts = []
        for number, page in enumerate(pages):
            # Scaled down, its letters would be unreadable; padded, it would need gigabytes.
            if max(page.shape) > _MAX_STRIP and _is_strip(page):
                raise too_long(number, page, _MAX_STRIP)
        for number, page in enumerate(pages):
            if max(page.shape) > _MAX_SIDE_PX and not (_is_strip(page) or _is_thread(page)):
                sink.warn(
                    f"page {number + 1}: {page.shape[1]}x{page.shape[0]} pixels are scaled down to "
                    f"{_MAX_SIDE_PX} pixels on the longer side"
                )
            until = time.monotonic() + MAX_PAGE_S
            try:
                texts.append(self._read(page, token, until))
            except TimeoutError:
                raise too_slow(number) from None
            sink.report((number + 1) / len(pages))
        return Output({"text": joined(texts)}, "rapidocr", {"pages": float(len(pages))})

    def _read(self, page: Page, token: Token, until: float) -> str:
        """Read a page in the rotation that gives the best quality."""
        import numpy

        if _is_thread(page):
            return ""
        best: tuple[float, list[Line]] = (-1.0, [])
        for turn in _TURNS:
            lines = self._lines(numpy.ascontiguousarray(numpy.rot90(page, -turn)), token, until)
            quality = _quality(lines)
            if quality[0] > best[0]:
                best = (quality[0], lines)
            if turn == 0 and quality[1] >= _GOOD:
                break
        return in_reading_order(best[1])

    def _lines(self, page: Page, token: Token, until: float) -> list[Line]:
        """Read the lines of a page; a long strip is read in pieces."""
        found: list[Line] = []
        for across, down, piece in _cuts(page):
            token.check()
            if time.monotonic() > until:
                raise TimeoutError
            if is_blank(piece):
                continue
            found += (
                line._replace(
                    left=line.left + across,
                    right=line.right + across,
                    top=line.top + down,
                    bottom=line.bottom + down,
                )
                for line in self._lines_of(piece)
            )
        return found

    def _lines_of(self, page: Page) -> list[Line]:
        engine = self._engines.get()
        try:
            found: Any = engine(_padded(page)[:, :, ::-1].copy())  # BGR order.
        finally:
            self._engines.put(engine)
        if found is None or found.boxes is None or found.txts is None:
            return []
        lines = []
        for box, text, score in zip(found.boxes, found.txts, found.scores, strict=True):
            across, down = [float(one[0]) for one in box], [float(one[1]) for one in box]
            lines.append(Line(text, min(across), min(down), max(across), max(down), float(score)))
        return lines


def _is_strip(page: Page) -> bool:
    shortest, longest = sorted(page.shape[:2])
    return bool(longest > _MAX_SIDE_PX and shortest >= _LOWEST and longest >= _STRIP * shortest)


def _is_thread(page: Page) -> bool:
    """Whether a page is too long to be read unscaled, and too narrow for letters."""
    shortest, longest = sorted(page.shape[:2])
    return bool(longest > _MAX_SIDE_PX and shortest < _LOWEST)


def _cuts(page: Page) -> list[tuple[int, int, Page]]:
    """Cut a strip into pieces that need no scaling, each with its position.

    If a receipt or panorama were scaled to the size that the models need, its letters would be
    unreadable. It is cut where the contrast is lowest: between two lines or words.
    """
    import numpy

    height, width = page.shape[:2]
    longest = max(height, width)
    if not _is_strip(page):
        return [(0, 0, page)]
    wide = width > height
    beside = (0, 2) if wide else (1, 2)
    contrast = page.max(axis=beside).astype(numpy.int32) - page.min(axis=beside)
    # Smooth the contrast: the middle of a gap is better than its edge.
    contrast = numpy.convolve(contrast, numpy.ones(_AROUND), "same")
    edges = [0]
    while longest - edges[-1] > _MAX_SIDE_PX:
        first, last = edges[-1] + _MAX_SIDE_PX // 2, edges[-1] + _MAX_SIDE_PX
        edges.append(first + int(contrast[first:last].argmin()))
    pieces = list(pairwise([*edges, longest]))
    if wide:
        return [(start, 0, page[:, start:end]) for start, end in pieces]
    return [(0, start, page[start:end]) for start, end in pieces]


def _padded(page: Page) -> Page:
    """Pad a narrow or low page at the right or bottom with its median color."""
    import numpy

    height, width = page.shape[:2]
    most = max(height, math.ceil(width / _WIDEST)), max(width, math.ceil(height / _HIGHEST))
    if most == (height, width):
        return page
    larger = numpy.empty((*most, 3), numpy.uint8)
    larger[:] = numpy.median(page, axis=(0, 1)).astype(numpy.uint8)
    larger[:height, :width] = page
    return larger


def _quality(lines: list[Line]) -> tuple[float, float]:
    """Return a score for comparing rotations, and the mean quality. Upright lines are wide."""
    if not lines:
        return 0.0, 0.0
    length = sum(len(one.text) for one in lines) or 1
    mean = sum(one.confidence * len(one.text) for one in lines) / length
    wide = sum(one.right - one.left > one.height for one in lines) / len(lines)
    return length * mean**4 * (0.2 + wide), mean * (0.5 + wide / 2)
