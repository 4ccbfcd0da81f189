"""Downloaders that misbehave in their process, each a family of `polymux.engines`."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

from polymux.downloads.engine import DownloadEngine
from polymux.engines.base import Output

if TYPE_CHECKING:
    from polymux.engines.base import EngineSink, Request, Token

LOUD = "support.faulty_downloaders:LoudDownloader"
ENDLESS_LINE = "support.faulty_downloaders:EndlessLineDownloader"
SCRIPTS = "support.faulty_downloaders:ScriptRunner"
#: Bytes on standard error before the download: in lines, and without a line end.
LINES_BYTES, LINE_BYTES = 1 << 26, 1 << 29
_PIECE_BYTES = 1 << 20
#: Calculates, then tries what a site's script must not do: connect, read, write and signal.
SCRIPT = """
async function tried(what) {
  try { return String(await what()); } catch (error) { return error.constructor.name; }
}
const found = {
  reckoned: [..."polymux"].reverse().join(""),
  reached: await tried(async () => (await fetch(ADDRESS)).status),
  read: await tried(() => Deno.readTextFileSync("/etc/passwd").length),
  wrote: await tried(() => Deno.writeTextFileSync(FILE, "x")),
};
console.log(JSON.stringify(found));
"""


class LoudDownloader(DownloadEngine):
    """Writes many lines of 64 bytes to standard error."""

    stderr_bytes = LINES_BYTES
    piece = (b"w" * 63 + b"\n") * (_PIECE_BYTES // 64)

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        left_bytes = self.stderr_bytes
        while left_bytes > 0:
            left_bytes -= os.write(2, self.piece)
        return super().run(request, sink, token)


class EndlessLineDownloader(LoudDownloader):
    """Writes 512 MiB without a line end."""

    stderr_bytes = LINE_BYTES
    piece = b"w" * _PIECE_BYTES


class ScriptRunner(DownloadEngine):
    """Runs a script with deno, as yt-dlp runs the scripts of sites. Downloads nothing.

    The script receives the URL, whose end names the file that it tries to write in /tmp. Its output
    becomes a line of the job's log.
    """

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        from yt_dlp.utils._jsruntime import DenoJsRuntime

        runtime = DenoJsRuntime().info
        assert runtime is not None, "deno does not start"
        sink.log(f"deno {runtime.version}")
        # With all of deno's permissions, only the sandbox limits the script.
        url = request.values["url"]
        file = Path("/tmp", url.rpartition("/")[2])
        script = SCRIPT.replace("ADDRESS", json.dumps(url)).replace("FILE", json.dumps(str(file)))
        done = subprocess.run(
            [runtime.path, "run", "--allow-all", "--ext=js", "--no-code-cache", "--no-prompt",
             "--no-remote", "--no-lock", "--no-config", "-"],
            input=script, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
        sink.log(done.stdout or done.stderr[:300])
        (Path(self._options["folder"]) / "nothing").touch()
        return Output({"files": ["nothing"]}, "1")
