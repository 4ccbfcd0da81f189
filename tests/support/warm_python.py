"""Python code in forks of a process that has already imported the packages.

As a program it reads one JSON job per line, forks for it, and prints its exit status.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path
    from typing import Self

#: Loads lazily imported modules once for all forks; openai's resources take seconds.
EVERYTHING = """
import fastapi, mcp, openai, polymux, polymux.cli, polymux.local.sync_local, replicate
import pydantic_ai.models.openai, pydantic_ai.providers.openai
import polymux.local.async_local, polymux.server.app, polymux.server.run
with openai.OpenAI(api_key="none") as client:
    client.audio.transcriptions, client.chat.completions, client.images, client.models
"""
PROGRAM = """
import gc, json, os, sys, warnings
exec(sys.argv.pop(), {})
# Other packages print ResourceWarnings when their objects are deleted.
warnings.simplefilter("ignore", ResourceWarning)
# Otherwise the end of each fork traverses all loaded objects, which copies their memory.
gc.freeze()
for line in sys.stdin:
    child = os.fork()
    if child == 0:
        break
    print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
else:
    sys.exit()
job = json.loads(line)
os.chdir(job["folder"])
os.environ.clear()
os.environ.update(job["environment"])
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
output = os.open(job["output"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.dup2(output, 1)
os.dup2(output, 2)
# Both streams end in one file, in the order in which they were written.
sys.stdout.reconfigure(line_buffering=True)
code = compile(job["code"], "<example>", "exec")
del child, gc, job, json, line, os, output, sys, warnings
exec(code)
"""


class WarmPython:
    """Runs code, each piece in a fork, with warnings as errors. The end of the context stops it.

    Args:
        loaded: Code that runs once before; its names are not visible.
    """

    def __init__(self, loaded: str = EVERYTHING) -> None:
        self._loaded = loaded

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROGRAM, self._loaded],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0

    def run(
        self,
        code: str,
        folder: Path,
        output: Path,
        environment: Mapping[str, str] = os.environ,
        status: int = 0,
    ) -> str:
        """Run code in a folder and return what it prints.

        `output` is a file for what it prints, which is shown if the code fails.
        """
        job = {
            "code": code,
            "folder": str(folder),
            "output": str(output),
            "environment": {**environment},
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == f"{status}\n", output.read_text()
        return output.read_text()
