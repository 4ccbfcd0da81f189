"""schemathesis against a server: requests that match its OpenAPI document, and others."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from support.supervised_engine import TESTS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from support.server_process import ServerProcess

#: Server error statuses that the API documents, beside which 5xx is a defect.
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
    server: ServerProcess,
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
    """Run schemathesis; return its output, and fail if it finds a defect.

    Args:
        server: The server to test.
        folder: The folder for its settings.
        examples: Random requests per path and method of generation.
        seed: A seed for other requests than the default ones.
        key: Replaces the server's key; None for none.
        only: The only allowed statuses.
        never: Texts that no answer may contain, besides the server's key and folder.
        every: Also send requests that differ from earlier ones only in a value.
        arguments: Extra command-line arguments.
        max_s: The time limit in seconds.
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
