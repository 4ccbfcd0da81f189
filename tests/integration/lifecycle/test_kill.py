"""SIGKILL at any moment: what was acknowledged is there, and nothing else is left."""

from __future__ import annotations

import http.client
import io
import random
import socket
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

import pytest
from PIL import Image
from support.kill_rounds import JOBS, KillRounds, path_of, sound
from support.polymux_server import CONVERT, form
from support.served import until
from support.serving import ServedProgram


@pytest.mark.slow
def test_twenty_rounds_under_load(tmp_path: Path) -> None:
    """D05, M30; `scripts/lib/kill-rounds` runs more, and takes a seed."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    rounds = KillRounds(tmp_path, seed)
    try:
        rounds.run(20)
    finally:
        print(rounds.program.told[-5000:])
    assert rounds.ran > 20
    assert rounds.known.succeeded


def test_a_killed_server_in_the_middle_of_an_upload(program: ServedProgram) -> None:
    """M30: what had come is gone when the server is back."""
    program.start()
    body, headers = form(("file", ("a.wav", bytes(3_000_000))))
    lines = [f"POST {CONVERT} HTTP/1.1", f"Host: 127.0.0.1:{program.port}",
             f"Authorization: Bearer {program.key}", f"Content-Length: {len(body)}",
             *(f"{name}: {value}" for name, value in headers), "", ""]  # fmt: skip
    drafts = program.store / "drafts"
    with socket.create_connection(("127.0.0.1", program.port), 20) as connection:
        connection.sendall("\r\n".join(lines).encode() + body[:2_000_000])
        until(lambda: sum(one.stat().st_size for one in drafts.iterdir()) > 1_000_000)
        program.kill()
    assert any(drafts.iterdir())
    program.start()
    assert list(drafts.iterdir()) == []
    assert program.convert(sound(0.2, 1)).status == 200


def test_a_killed_server_in_the_middle_of_jobs(program: ServedProgram) -> None:
    """One at work, others that wait: all have failed as interrupted, and their keys are free."""
    program.start()
    data = sound(60, 1)
    jobs = {}
    for number in range(6):
        key = f"k{number}"
        headers = (("Prefer", "respond-async"), ("Idempotency-Key", key))
        answer = program.convert(data, *headers)
        assert answer.status == 202, answer.body
        jobs[key] = answer.json()["id"]
    until(lambda: program.metric("polymux_running", "media") > 0)
    family = program.family()
    began = time.monotonic()
    program.kill()
    until(lambda: not program.family(), 2)
    assert family, "no engine was at work"
    assert time.monotonic() - began < 2.5
    program.start()
    for key, job in jobs.items():
        found = program.request("GET", f"{JOBS}/{job}").json()
        if found["status"] == "succeeded":
            continue
        assert found["status"] == "failed"
        assert found["error"] == "the server was stopped while this ran; ask again"
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
    """A program that an engine runs: tesseract, over a page that takes it many seconds."""
    buffer = io.BytesIO()
    Image.effect_noise((1600, 1600), 120).save(buffer, "PNG")
    body, headers = form(("file", ("a.png", buffer.getvalue())))
    with ServedProgram(tmp_path, READING, whole=True) as program:
        program.start()
        with ThreadPoolExecutor(1) as pool:
            call = pool.submit(program.request, "POST", "/api/v1/image2text", body, headers)
            until(lambda: is_read(program.family()), 60)
            program.kill()
            with pytest.raises((ConnectionError, http.client.HTTPException)):
                call.result(30)
        until(lambda: not program.family(), 2)


def is_read(pids: list[int]) -> bool:
    """Whether a program reads the page itself, and not only which way it lies."""
    for pid in pids:
        with suppress(OSError):
            if Path(f"/proc/{pid}/cmdline").read_bytes().endswith(b"--psm\x003\0tsv\0"):
                return True
    return False


def test_links_outlive_the_server(program: ServedProgram) -> None:
    """The address of the server may change; what is behind it does not."""
    program.start()
    answer = program.convert(sound(0.3, 1))
    assert answer.status == 200, answer.body
    path = path_of(answer.json()["response"])
    data = program.request("GET", path).body
    program.kill()
    program.start()
    assert program.request("GET", path).body == data


def test_killed_while_it_starts_for_the_first_time(program: ServedProgram) -> None:
    """Whenever that is, the next start has a key that works."""
    for pause_s in (0.3, 0.5, 0.7, 0.9, 1.1):
        program.start(ready=False)
        time.sleep(pause_s)
        program.kill()
    program.start()
    assert program.request("GET", JOBS).status == 200
