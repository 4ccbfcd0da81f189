"""Several runs of the `polymux` command in one process, which is started and imported once.

Run as a program, this module is that process: it reads the commands from standard input.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.commands import MAX_S, environment

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path


@dataclass(frozen=True)
class Run:
    code: int
    out: str
    err: str


def run(*commands: Sequence[str | Path], cwd: Path) -> list[Run]:
    """Runs each command to its end; none shows a traceback.

    Raises:
        subprocess.TimeoutExpired: One of them did not end.
    """
    done = subprocess.run(
        [sys.executable, "-W", "error", "-m", "support.commands_in_turn"],
        cwd=cwd,
        env=environment(cwd, PYTHONPATH=":".join(sys.path), XDG_STATE_HOME=str(cwd / "state")),
        input=json.dumps([[str(word) for word in words] for words in commands]),
        capture_output=True,
        text=True,
        timeout=2 * MAX_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = [Run(**one) for one in json.loads(done.stdout)]
    for one in found:
        assert "Traceback" not in one.err, one.err
    return found


def _one(words: list[str]) -> dict[str, int | str]:
    from polymux.cli import main

    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))
    with redirect_stdout(out), redirect_stderr(err):
        try:
            code = main(words)
        except SystemExit as end:
            code = int(end.code or 0)
    told = [one.buffer.getvalue().decode() for one in (out, err)]
    return {"code": code, "out": told[0], "err": told[1]}


if __name__ == "__main__":
    json.dump([_one(words) for words in json.load(sys.stdin)], sys.stdout)
