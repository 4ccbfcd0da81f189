"""schemathesis against a server: requests that keep its OpenAPI document, and that do not."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from support.supervised import TESTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.served import ServedProcess

#: Statuses of a server's own that the interface has for what is asked, beside those of defects.
_ALLOWED = '["2xx", "3xx", "4xx", "501", "503", "507"]'
_SETTINGS = """
hooks = "support.schema_hooks"
continue-on-failure = true
request-timeout = 30.0

{dice}
[generation]
deterministic = {same}
max-examples = {examples}
database = "none"

[output.sanitization]
enabled = false

[checks.not_a_server_error]
expected-statuses = {allowed}
"""
_KEY = """
[auth.openapi.key]
bearer = "${POLYMUX_FUZZED_KEY}"
"""


def run(
    server: ServedProcess,
    folder: Path,
    *,
    examples: int = 5,
    seed: int | None = None,
    key: str | None = "",
    only: Sequence[int] = (),
    never: str = "",
    every: bool = True,
    arguments: Sequence[str] = (),
    max_s: float = 300,
) -> str:
    """Asks it everything; gives what schemathesis says, which has found nothing.

    Args:
        server: Whom.
        folder: Where settings are written.
        examples: How many random requests for each address and way of making them.
        seed: For other requests than those of every run.
        key: Instead of the server's own; None for none.
        only: The only statuses that may come.
        never: What no answer may hold, beside the server's key and folder.
        every: Also what differs from a request before it in the value alone, not in its kind.
        arguments: More for the command line.
        max_s: It is ended after that.
    """
    settings = folder / "schemathesis.toml"
    dice = "" if seed is None else f"seed = {seed}\n"
    same = "true" if seed is None else "false"
    text = _SETTINGS.format(examples=examples, allowed=_ALLOWED, dice=dice, same=same)
    settings.write_text(text if key is None else text + _KEY)
    secrets = [server.key, os.fspath(server.folder), never]
    environment = {
        **os.environ,
        "PYTHONPATH": os.fspath(TESTS),
        "POLYMUX_FUZZED_KEY": key or server.key,
        "POLYMUX_HYPOTHESIS": os.fspath(TESTS.parent / ".hypothesis"),
        "POLYMUX_NEVER_TOLD": "\n".join(secrets),
        "POLYMUX_ONLY_STATUSES": " ".join(str(one) for one in only),
        "POLYMUX_EVERY_REQUEST": "1" if every else "",
    }
    command = [sys.executable, "-m", "schemathesis.cli", "--config-file", os.fspath(settings)]
    command += ["run", f"{server.url}/openapi.json", "--no-color", *arguments]
    done = subprocess.run(
        command,
        cwd=folder,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=max_s,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout
