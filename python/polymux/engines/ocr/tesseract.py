"""Text from pictures by the program tesseract, with whatever languages are installed for it."""

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
#: It keeps places in 16 bits, and fails at pages with more pixels on a side.
_MAX_SIDE_PX = 32_767
_TURNED = re.compile(r"^Rotate: (\d+)$", re.MULTILINE)
_SURE = re.compile(r"^Orientation confidence: ([\d.]+)$", re.MULTILINE)
_SURE_ENOUGH = 1.0
_ORIENTATION = "osd"
#: Rows of its table that are words, and how many cells they have.
_WORD, _COLUMNS = "5", 12


class TesseractEngine(Engine):
    """The program, once for each page; one OpenMP thread, as two are many times slower."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Finds the program (``program``, else that of PATH) and its languages.

        Raises:
            NoBackendError: It is not there.
        """
        program = options.get("program") or shutil.which("tesseract")
        if program is None:
            raise status_error(
                errors.NoBackendError,
                "tesseract is not installed: on Debian and Ubuntu apt install tesseract-ocr",
            )
        self._command = [str(program)]
        ending = shutil.which("setpriv")
        if ending is not None:
            # Who started this process may be killed, and it with them: no page is read on then.
            self._command = [ending, "--pdeathsig", "KILL", str(program)]
        self._default = str(options.get("language", "eng"))
        listed = self._output("--list-langs").splitlines()[1:]
        found = {one.strip() for one in listed if one.strip()}
        #: It tells which way up a page is, and reads nothing.
        self._finds_turns = _ORIENTATION in found
        self._languages = sorted(found - {_ORIENTATION})
        return {"languages": self._languages}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        wanted = str(request.values.get("lang") or self._default)
        missing = [one for one in wanted.split("+") if one not in self._languages]
        if missing:
            raise status_error(
                errors.BadRequestError,
                f"lang={wanted[:100]}: not installed: {', '.join(missing)[:100]}; there is "
                f"{', '.join(self._languages)}",
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
        # By where the words stand: its own text runs across columns that stand close.
        table = self._output("-l", languages, "--psm", "3", "tsv", page=page, token=token)
        return in_reading_order(_lines(table))

    def _turn(self, page: Page, token: Token) -> int:
        """How many quarters to the right make the page upright; 0 where nobody can tell."""
        if not self._finds_turns:
            return 0
        try:
            found = self._output("--psm", "0", page=page, token=token)
        except errors.APIStatusError:
            return 0  # Too few letters to tell.
        turned, sure = _TURNED.search(found), _SURE.search(found)
        if turned is None or sure is None or float(sure[1]) < _SURE_ENOUGH:
            return 0
        return int(turned[1]) // 90

    def _output(self, *arguments: str, page: Page | None = None, token: Token | None = None) -> str:
        # By its standard input: a file would outlive this process, where that is killed.
        files = () if page is None else ("stdin", "stdout")
        process = subprocess.Popen(  # noqa: S603 - no shell; no word of a stranger
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
            raise engine_failed(f"tesseract took more than {_MAX_RUN_S:.0f} s") from None
        if token is not None:
            token.check()
        if process.returncode != 0:
            words = wrong.decode("utf-8", "replace").strip().splitlines()[-1:] or ["no word of why"]
            raise engine_failed(f"tesseract failed: {words[0][:300]}")
        return out.decode("utf-8", "replace")


def _lines(table: str) -> list[Line]:
    """Pieces of lines out of its table of words; one ends where a gap is as wide as a column's.

    https://tesseract-ocr.github.io/tessdoc/Command-Line-Usage.html (its TSV)
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
