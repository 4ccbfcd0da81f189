"""Prints the signatures that shazamio-core makes for WAV files, as a JSON array.

It is a separate process because shazamio-core's threads sometimes crash at exit.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys


async def _signatures(paths: list[str]) -> list[str]:
    import shazamio_core

    recognizer = shazamio_core.Recognizer()
    return [(await recognizer.recognize_path(path)).signature.uri for path in paths]


if __name__ == "__main__":
    print(json.dumps(asyncio.run(_signatures(sys.argv[1:]))), flush=True)
    os._exit(0)
