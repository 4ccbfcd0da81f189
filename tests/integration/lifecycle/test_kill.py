"""SIGKILL at any moment: acknowledged data remains and nothing else. Case IDs: testing.md."""

from __future__ import annotations

import http.client
import io
import random
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from support.kill_rounds import JOBS, KillRounds, sound
from support.polymux_server import CONVERT, begun, form
from support.serve_command import ServeCommand
from support.server_process import until


@pytest.mark.slow
@pytest.mark.parametrize("count", [3, pytest.param(200, marks=pytest.mark.long)])
def test_rounds_under_load(tmp_path: Path, count: int) -> None:
    """Case D05."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    rounds = KillRounds(tmp_path, seed)
    try:
        rounds.run(count)
    finally:
        print(rounds.program.log_text[-5000:])
    assert rounds.known.succeeded


def test_a_killed_server_in_the_middle_of_an_upload(program: ServeCommand) -> None:
    """The partial upload is deleted when the server starts again (M30)."""
    program.start()
    drafts = program.store / "drafts"
    body, headers = form(("file", ("a.wav", bytes(3_000_000))))
    with begun(program.address, program.key, CONVERT, body, headers, 2_000_000):
        until(lambda: sum(one.stat().st_size for one in drafts.iterdir()) > 1_000_000)
        program.kill()
    assert any(drafts.iterdir())
    program.start()
    assert list(drafts.iterdir()) == []


def test_a_killed_server_in_the_middle_of_jobs(program: ServeCommand) -> None:
    """Running and waiting jobs fail as interrupted, and their Idempotency-Keys are free."""
    program.start()
    data = sound(60, 1)
    jobs = {}
    for key in ("k0", "k1", "k2"):
        answer = program.convert(data, ("Prefer", "respond-async"), ("Idempotency-Key", key))
        assert answer.status == 202, answer.body
        jobs[key] = answer.json()["id"]
    until(lambda: program.metric("polymux_running", "media") > 0)
    assert program.family(), "no engine was at work"
    program.kill()
    until(lambda: not program.family(), 30)
    program.start()
    for key, job in jobs.items():
        found = program.request("GET", f"{JOBS}/{job}").json()
        if found["status"] == "succeeded":
            continue
        assert found["status"] == "failed"
        assert found["error_code"] == "interrupted"
        again = program.convert(data, ("Prefer", "respond-async"), ("Idempotency-Key", key))
        assert again.status == 202
        assert again.json()["id"] != job
        program.request("DELETE", f"{JOBS}/{again.json()['id']}")


READING = """
[engines.ocr]
family = "tesseract"
threads = 1
"""


def test_a_killed_server_takes_what_its_engines_started_with_it(tmp_path: Path) -> None:
    """An engine's child program: tesseract, with a page that takes many seconds."""
    buffer = io.BytesIO()
    Image.effect_noise((1600, 1600), 120).save(buffer, "PNG")
    body, headers = form(("file", ("a.png", buffer.getvalue())))
    with ServeCommand(tmp_path, READING, whole=True) as program:
        program.start()
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(program.request, "POST", "/api/v1/image2text", body, headers)
            until(lambda: is_read(program.family()), 60)
            program.kill()
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                call.result(30)
        until(lambda: not program.family(), 30)


def is_read(pids: list[int]) -> bool:
    """Whether a program is reading the page."""
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/exe").readlink().name == "tesseract":
                return True
    return False


def test_killed_while_it_starts_for_the_first_time(program: ServeCommand) -> None:
    """At any moment of the startup. The next start has a valid key."""
    for pause_s in (0.4, 0.8):
        program.start(ready=False)
        time.sleep(pause_s)
        program.kill()
    program.start()
    assert program.request("GET", JOBS).status == 200
