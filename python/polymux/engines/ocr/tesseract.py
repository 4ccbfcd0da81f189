"""OCR with the tesseract program and its installed languages."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output
from polymux.engines.ocr.reading_order import (
    COLUMN_GAP,
    Line,
    in_reading_order,
    joined,
    pages_of,
    too_long,
)
from polymux.service.errors import engine_failed, status_error

if TYPE_CHECKING:
    from collections.abc import Mapping

    import numpy as np
    from numpy.typing import NDArray

    from polymux.engines.base import EngineSink, Request, Token

    Page = NDArray[np.uint8]

_MAX_RUN_S = 600.0
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
        return {"languages": self._languages}

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
            texts.append(self._read(page, wanted, token))
            sink.report((number + 1) / len(pages))
        return Output({"text": joined(texts)}, "tesseract", {"pages": float(len(pages))})

    def _read(self, page: Page, languages: str, token: Token) -> str:
        import numpy

        turn = self._turn(page, token)
        if turn:
            page = numpy.ascontiguousarray(numpy.rot90(page, -turn))
        # Positions are needed: tesseract's text output merges columns that are close.
        table = self._output("-l", languages, "--psm", "3", "tsv", page=page, token=token)
        return in_reading_order(_lines(table))

    def _turn(self, page: Page, token: Token) -> int:
        """Return the quarter turns to the right that make the page upright; 0 if unknown."""
        if not self._finds_turns:
            return 0
        try:
            found = self._output("--psm", "0", page=page, token=token)
        except errors.APIStatusError:
            return 0  # Too few letters.
        turned, sure = _TURNED.search(found), _SURE.search(found)
        if turned is None or sure is None or float(sure[1]) < _SURE_ENOUGH:
            return 0
        return int(turned[1]) // 90

    def _output(self, *arguments: str, page: Page | None = None, token: Token | None = None) -> str:
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
            out, wrong = process.communicate(data, timeout=_MAX_RUN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.communicate()
            raise engine_failed(f"tesseract timed out after {_MAX_RUN_S:.0f} s") from None
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


def _ppm(page: Page) -> bytes:
    height, width, _ = page.shape
    return b"P6 %d %d 255\n" % (width, height) + page.tobytes()
