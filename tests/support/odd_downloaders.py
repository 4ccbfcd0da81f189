"""Downloaders that do more than fetch, for their process: each a family of `polymux.engines`."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from polymux.downloads.engine import DownloadEngine

if TYPE_CHECKING:
    from polymux.engines.base import EngineSink, Output, Request, Token

LOUD = "support.odd_downloaders:LoudDownloader"
ENDLESS_LINE = "support.odd_downloaders:EndlessLineDownloader"
#: What they say before they fetch.
SAID_BYTES = 1 << 30
_PIECE_BYTES = 1 << 20


class LoudDownloader(DownloadEngine):
    """Says a gibibyte on its standard error, in lines of 64 bytes."""

    piece = (b"w" * 63 + b"\n") * (_PIECE_BYTES // 64)

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        left_bytes = SAID_BYTES
        while left_bytes > 0:
            left_bytes -= os.write(2, self.piece)
        return super().run(request, sink, token)


class EndlessLineDownloader(LoudDownloader):
    """The same, without the end of a line."""

    piece = b"w" * _PIECE_BYTES
