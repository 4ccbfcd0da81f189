"""The process for untrusted files: crashes, hangs, memory, disconnects. Case IDs: testing.md."""

from __future__ import annotations

import os
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from polymux.engines.process.supervisor import EngineBackend, Supervision
from polymux.runtime.build import media_confinement
from polymux.runtime.settings import StoreSettings
from polymux.server.settings.settings import ServerSettings
from support import programs
from support.faulty_engine import FAMILY
from support.hostile_flac import silence
from support.kill_rounds import JOBS, sound
from support.polymux_server import CONVERT, PolymuxServer, form
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.serve_command import ServeCommand

LIMIT_BYTES = 2 << 30


@pytest.fixture
def server(tmp_path: Path) -> Iterator[PolymuxServer]:
    """The test engine in place of the media engine, in the same sandbox."""
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"))
    confinement = media_confinement(settings)
    confinement["limits"]["AS"] = LIMIT_BYTES
    how = Supervision(
        threads=1, cancel_timeout_s=0.5, silence_s=2.5, stalled_s=3.0, confinement=confinement
    )

    def make() -> list[EngineBackend]:
        return [EngineBackend("media", FAMILY, ["convert_to_mp3"], supervision=how)]

    with PolymuxServer(tmp_path / "s", make) as running:
        yield running


def convert(server: PolymuxServer, name: str) -> Any:
    body, headers = form(("file", (name, b"RIFF")))
    return server.ask("POST", CONVERT, body, headers)


def check_well(server: PolymuxServer) -> None:
    """Check that the next file is converted and that nothing of the previous one remains."""
    answer = convert(server, "file 1000")
    assert answer.status == 200, answer.body
    path = answer.json()["response"].removeprefix(server.url)
    assert server.ask("GET", path, key=None).body == b"x" * 1000
    folder = server.settings.store.folder
    assert list((folder / "drafts").iterdir()) == []
    place = server.state.service.places["media"]
    assert (place.running, place.waiting) == (0, 0)


@pytest.mark.parametrize(
    ("fault", "status", "code"),
    [
        ("crash", 500, "engine_failed"),
        ("deaf 60", 500, "engine_failed"),
        (f"grow {4 << 30}", 503, "overloaded"),
        ("file 30000000000", 507, "storage_full"),
    ],
)
def test_faults_of_the_process(server: PolymuxServer, fault: str, status: int, code: str) -> None:
    """One request fails and the server is not affected (V27)."""
    answer = convert(server, fault)
    assert (answer.status, answer.json()["code"]) == (status, code), answer.body
    check_well(server)


@pytest.fixture(scope="module")
def hours() -> bytes:
    """A small file that takes seconds to convert."""
    return silence(3.9)


def media_process(program: ServeCommand) -> int:
    """The server's real media process."""
    for pid in program.family():
        if b"\0media\0" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    return 0


def convert_hours(program: ServeCommand, data: bytes, *headers: tuple[str, str]) -> Any:
    body, own = form(("file", ("a.flac", data)))
    return program.request("POST", CONVERT, body, [*own, *headers], timeout_s=120)


def test_the_real_process_killed_in_mid_conversion(program: ServeCommand, hours: bytes) -> None:
    """The first kill is retried. After the second one the request fails (V27)."""
    program.start()
    with ThreadPoolExecutor(1) as pool:
        call = pool.submit(convert_hours, program, hours)
        drafts, killed = program.store / "drafts", set()
        for _ in range(2):
            until(lambda: program.metric("polymux_running", "media") == 1, 30)
            until(lambda: media_process(program) not in (0, *killed), 30)
            until(lambda: is_growing(drafts), 30)
            killed.add(pid := media_process(program))
            os.kill(pid, signal.SIGKILL)
        answer = call.result(60)
    assert (answer.status, answer.json()["code"]) == (500, "engine_failed"), answer.body
    assert program.convert(sound(0.2, 1)).status == 200
    assert program.readiness()["backends"]["media"]["state"] == "ready"
    assert list((program.store / "drafts").iterdir()) == []
    assert media_process(program) not in killed


def is_growing(drafts: Path) -> bool:
    """Whether an MP3 is being written. It has a temporary name until it is complete."""
    return any(one.name.startswith(".") for one in drafts.iterdir())


@pytest.mark.parametrize("how", ["killed", "cancelled"])
def test_a_client_that_leaves_a_real_conversion(
    program: ServeCommand, hours: bytes, tmp_path: Path, how: str
) -> None:
    """It stops, nothing of it remains, and the same process handles the next one (V28)."""
    program.start()
    assert program.convert(sound(0.1, 1)).status == 200
    pid = media_process(program)
    drafts, media = program.store / "drafts", program.store / "media"
    files = len(list(media.glob("*/*")))
    source = tmp_path / "a.flac"
    source.write_bytes(hours)
    if how == "cancelled":
        job = convert_hours(program, hours, ("Prefer", "respond-async")).json()["id"]
    else:
        curl = subprocess.Popen(
            [programs.find("curl"), "--silent", "--form", f"file=@{source}", "--header",
             f"Authorization: Bearer {program.key}", f"{program.url}{CONVERT}"],
            stdout=subprocess.DEVNULL,
        )  # fmt: skip
    until(lambda: is_growing(drafts), 30)
    if how == "cancelled":
        answer = program.request("POST", f"{JOBS}/{job}/cancel")
        assert answer.json()["status"] == "canceled"
    else:
        curl.kill()
        curl.wait()
    until(lambda: program.metric("polymux_running", "media") == 0)
    until(lambda: not any(drafts.iterdir()))
    newest, *_ = program.request("GET", JOBS).json()["results"]
    assert (newest["status"], newest.get("output")) == ("canceled", None)
    assert len(list(media.glob("*/*"))) == files
    assert program.convert(sound(0.1, 2)).status == 200
    assert media_process(program) == pid
    assert len(list(media.glob("*/*"))) == files + 1
