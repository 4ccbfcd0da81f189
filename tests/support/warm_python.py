"""Python code in a process of its own that need not import the packages again: a fork of one.

As a program it forks for each line of its input, a job in JSON, and tells its exit status.
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

#: What is loaded late is loaded before, once for all: resources of openai take seconds.
PROGRAM = """
import json, os, sys
import fastapi, mcp, openai, polymux, polymux.cli, polymux.local.sync_local, replicate
import pydantic_ai.models.openai, pydantic_ai.providers.openai
import polymux.local.async_local, polymux.server.app, polymux.server.run
with openai.OpenAI(api_key="none") as client:
    client.audio.transcriptions, client.chat.completions, client.images, client.models
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
said = os.open(job["said"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
os.dup2(said, 1)
os.dup2(said, 2)
code = compile(job["code"], "<example>", "exec")
del child, client, fastapi, job, json, line, mcp, openai, os, polymux, pydantic_ai
del replicate, said, sys
exec(code)
"""


class WarmPython:
    """Runs code, each in a fork; warnings are errors. As a context manager it ends."""

    def __enter__(self) -> Self:
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-c", PROGRAM],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )  # fmt: skip
        return self

    def __exit__(self, *_: object) -> None:
        self._process.communicate(timeout=60)
        assert self._process.returncode == 0

    def run(
        self, code: str, folder: Path, said: Path, environment: Mapping[str, str] = os.environ
    ) -> None:
        """Runs it in a folder; what it says is kept in a file, and shown where it fails."""
        job = {
            "code": code,
            "folder": str(folder),
            "said": str(said),
            "environment": {**environment},
        }
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(job), file=self._process.stdin, flush=True)
        assert self._process.stdout.readline() == "0\n", said.read_text()
