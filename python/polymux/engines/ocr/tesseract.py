"""OCR with the tesseract program and its installed languages."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output
from polymux.engines.ocr.reading_order import (
    COLUMN_GAP,
    MAX_PAGE_S,
    Line,
    in_reading_order,
    is_blank,
    joined,
    pages_of,
    too_long,
    too_slow,
)
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.base import EngineSink, Request, Token

    Page = NDArray[np.uint8]

#: A3 at 300 dpi has 17 megapixels.
_MAX_PIXELS = 20_000_000
#: Tesseract stores positions in 16 bits and fails on longer sides.
_MAX_SIDE_PX = 32_767
_TURNED = re.compile(r"^Rotate: (\d+)$", re.MULTILINE)
_SURE = re.compile(r"^Orientation confidence: ([\d.]+)$", re.MULTILINE)
_SURE_ENOUGH = 1.0
_ORIENTATION = "osd"
#: Level of word rows in the TSV output, and the number of columns.
_WORD, _COLUMNS = "5", 12


class TesseractEngine(Engine):
    """Runs tesseract once per page with one OpenMP thread, because two are many times slower."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Find the program (option ``program``, else in PATH) and its languages.

        Raises:
            NoBackendError: The program is not installed.
        """
        program = options.get("program") or shutil.which("tesseract")
        if program is None:
            raise status_error(
                errors.NoBackendError,
                "tesseract is not installed. On Debian and Ubuntu, run: apt install tesseract-ocr",
            )
        self.max_concurrency = int(options.get("max_concurrency", 1))
        self._command = [str(program)]
        ending = shutil.which("setpriv")
        if ending is not None:
            # If this process is killed, tesseract ends too instead of finishing the page.
            self._command = [ending, "--pdeathsig", "KILL", str(program)]
        self._default = str(options.get("language", "eng"))
        listed = self._output("--list-langs").splitlines()[1:]
        found = {one.strip() for one in listed if one.strip()}
        #: The language "osd" only detects the orientation of a page.
        self._finds_turns = _ORIENTATION in found
        self._languages = sorted(found - {_ORIENTATION})
        return {"model": "tesseract", "languages": self._languages}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        wanted = str(request.values.get("lang") or self._default)
        missing = [one for one in wanted.split("+") if one not in self._languages]
        if missing:
            raise status_error(
                errors.BadRequestError,
                f"lang={wanted[:100]}: language not installed: {', '.join(missing)[:100]} "
                f"(installed: {', '.join(self._languages)})",
                code="invalid_request",
                param="lang",
            )
        pages = pages_of(request.values)
        for number, page in enumerate(pages):
            if max(page.shape) > _MAX_SIDE_PX:
                raise too_long(number, page, _MAX_SIDE_PX)
        texts = []
        for number, page in enumerate(pages):
            token.check()
            until = time.monotonic() + MAX_PAGE_S
            try:
                texts.append(self._read(_smaller(page, number, sink), wanted, token, until))
            except subprocess.TimeoutExpired:
                raise too_slow(number) from None
            sink.report((number + 1) / len(pages))
        return Output({"text": joined(texts)}, "tesseract", {"pages": float(len(pages))})

    def _read(self, page: Page, languages: str, token: Token, until: float) -> str:
        import numpy

        if is_blank(page):
            return ""
        turn = self._turn(page, token, until)
        if turn:
            page = numpy.ascontiguousarray(numpy.rot90(page, -turn))
        # Positions are needed: tesseract's text output merges columns that are close.
        table = self._output(
            "-l", languages, "--psm", "3", "tsv", page=page, token=token, until=until
        )
        return in_reading_order(_lines(table))

    def _turn(self, page: Page, token: Token, until: float) -> int:
        """Return the quarter turns to the right that make the page upright; 0 if unknown."""
        if not self._finds_turns:
            return 0
        try:
            found = self._output("--psm", "0", page=page, token=token, until=until)
        except errors.APIStatusError:
            return 0  # Too few letters.
        turned, sure = _TURNED.search(found), _SURE.search(found)
        if turned is None or sure is None or float(sure[1]) < _SURE_ENOUGH:
            return 0
        return int(turned[1]) // 90

    def _output(
        self,
        *arguments: str,
        page: Page | None = None,
        token: Token | None = None,
        until: float | None = None,
    ) -> str:
        """Run the program.

        Raises:
            subprocess.TimeoutExpired: It did not end in time.
        """
        # The page is passed on standard input: a file would remain if this process is killed.
        files = () if page is None else ("stdin", "stdout")
        process = subprocess.Popen(  # noqa: S603 - no shell, no untrusted arguments
            [*self._command, *files, *arguments],
            # Two OpenMP threads are many times slower than one.
            env=os.environ | {"OMP_THREAD_LIMIT": "1", "OMP_NUM_THREADS": "1"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        if token is not None:
            token.on_cancel(process.kill)
        try:
            data = None if page is None else _ppm(page)
            left_s = MAX_PAGE_S if until is None else max(0.0, until - time.monotonic())
            out, wrong = process.communicate(data, timeout=left_s)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise
        if token is not None:
            token.check()
        if process.returncode != 0:
            words = wrong.decode("utf-8", "replace").strip().splitlines()[-1:] or ["unknown error"]
            raise engine_failed(f"tesseract failed: {words[0][:300]}")
        return out.decode("utf-8", "replace")


def _lines(table: str) -> list[Line]:
    """Join the words of the TSV output to lines. A line ends at a gap as wide as between columns.

    https://tesseract-ocr.github.io/tessdoc/Command-Line-Usage.html (TSV format)
    """
    found: list[Line] = []
    last: tuple[str, ...] = ()
    for row in table.splitlines():
        cells = row.split("\t")
        if cells[0] != _WORD or len(cells) < _COLUMNS or not cells[-1].strip():
            continue
        left, top, width, height = map(float, cells[6:10])
        word = Line(cells[-1], left, top, left + width, top + height, float(cells[10]) / 100)
        before = found[-1] if found and tuple(cells[1:5]) == last else None
        if before is not None and left - before.right <= COLUMN_GAP * before.height:
            found[-1] = _together(before, word)
        else:
            found.append(word)
        last = tuple(cells[1:5])
    return found


def _together(line: Line, word: Line) -> Line:
    return Line(
        f"{line.text} {word.text}",
        min(line.left, word.left),
        min(line.top, word.top),
        max(line.right, word.right),
        max(line.bottom, word.bottom),
        min(line.confidence, word.confidence),
    )


def _smaller(page: Page, number: int, sink: EngineSink) -> Page:
    """Scale a page (counted from 0) down if it has too many pixels."""
    height, width = page.shape[:2]
    if height * width <= _MAX_PIXELS:
        return page
    import numpy
    from PIL import Image

    factor = math.sqrt(_MAX_PIXELS / (height * width))
    size = max(1, round(width * factor)), max(1, round(height * factor))
    sink.warn(f"page {number + 1}: {width}x{height} pixels are scaled down to {size[0]}x{size[1]}")
    return numpy.asarray(Image.fromarray(page).resize(size, Image.Resampling.BOX))


def _ppm(page: Page) -> bytes:
    height, width, _ = page.shape
    return b"P6 %d %d 255\n" % (width, height) + page.tobytes()
