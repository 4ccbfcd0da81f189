"""`polymux.Local`: the same methods without a server."""

from __future__ import annotations

import asyncio
import os
import re
import sqlite3
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import polymux
import pytest
from polymux import contract
from polymux.engines.media.engine import MediaEngine
from polymux.local.home import _media
from polymux.runtime.settings import EngineSettings
from support.batch_kills import noise
from support.hostile_check import PATIENCE
from support.long_sound import write_long_wave
from support.programs import find
from support.services import Scripted

MESSAGES = [{"role": "user", "content": "Hi"}]
PICTURE = ("a.png", b"\x89PNG\r\n\x1a\n")
SOUND = ("a.wav", b"RIFF")
#: Operations that need a model or another service, with an argument for each.
ASKED: dict[str, Any] = {
    "chat": "Hi", "free_chat": "Hi", "search_music": "waves", "generate_image": "waves",
    "upscale_image": PICTURE, "transcribe": SOUND, "generate_video": "waves",
    "generate_music": "waves", "identify_song": SOUND,
    "summarize_video": "http://videos.example/1", "read_text": PICTURE,
}  # fmt: skip
#: Operations that need only the extras installed for the tests.
ALWAYS = {"convert_to_mp3", "download_video", "download_music"}


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "noise.wav"
    path.write_bytes(noise(1, 1.0))
    return path


def scripted(**changes: Any) -> Scripted:
    made = Scripted(max_concurrency=4)
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def failure() -> polymux.NoBackendError:
    made = polymux.NoBackendError("nothing")
    made.status = 501
    return made


def pieces(*texts: str) -> list[dict[str, Any]]:
    return [{"choices": [{"index": 0, "delta": {"content": text}}]} for text in texts]


def test_a_conversion_equals_the_plain_call(tmp_path: Path, source: Path) -> None:
    plain = polymux.convert_to_mp3(source, bitrate="64k").read()
    data = source.read_bytes()
    with polymux.Local() as local, source.open("rb") as file:
        made = local.convert_to_mp3(source, bitrate="64k")
        assert (made.read(), made.content_type) == (plain, "audio/mpeg")
        kept = made.save(tmp_path / "kept.mp3")
        given: list[Any] = [data, file, ("a.wav", data), iter([data[:1000], data[1000:]])]
        for one in given:
            assert local.convert_to_mp3(one, bitrate="64k").read() == plain
        with ThreadPoolExecutor(8) as pool:
            calls = [pool.submit(local.convert_to_mp3, source, bitrate="64k") for _ in range(8)]
            assert {call.result().read() for call in calls} == {plain}
    assert not made.path.parent.exists()
    assert kept.read_bytes() == plain


def test_errors_are_those_of_a_client(tmp_path: Path, source: Path) -> None:
    text = tmp_path / "text.wav"
    text.write_bytes(b"this is no audio, just text" * 100)
    with polymux.Local() as local:
        with pytest.raises(polymux.InputNotFoundError):
            local.convert_to_mp3(tmp_path / "nothing.wav")
        with pytest.raises(polymux.InvalidRequestError, match="bitrate"):
            local.convert_to_mp3(source, bitrate="x")
        with pytest.raises(polymux.UnsupportedMediaError) as unsupported:
            local.convert_to_mp3(text.read_bytes())
        # The input has no path, so the message must not show the path of the temporary
        # copy.
        assert "/drafts/" not in str(unsupported.value)
        assert unsupported.value.input_name in ("", "file")
        with pytest.raises(polymux.UnsupportedMediaError, match=str(text)):
            local.convert_to_mp3(text)
        with pytest.raises(polymux.NoBackendError, match="polymux doctor"):
            local.generate_video("waves")
        with pytest.raises(polymux.BadRequestError) as refused:
            local.convert_to_mp3(url="http://127.0.0.1:9/a.wav")
        assert refused.value.code == "url_refused"


def test_errors_of_a_file_are_those_of_the_plain_call(tmp_path: Path) -> None:
    silent = tmp_path / "silent.mkv"
    lavfi = ["-v", "error", "-f", "lavfi", "-i", "testsrc=d=0.2", "-c:v", "mjpeg"]
    subprocess.run([find("ffmpeg"), *lavfi, silent], check=True)
    with polymux.Local() as local:
        # The last one can be opened, but not read.
        for bad in (silent, tmp_path, Path("/proc/self/mem")):
            with pytest.raises(polymux.PolymuxError) as plain:
                polymux.convert_to_mp3(bad)
            with pytest.raises(polymux.PolymuxError) as raised:
                local.convert_to_mp3(bad)
            assert raised.type is plain.type
            assert raised.value.code == plain.value.code


@pytest.mark.parametrize(
    ("name", "stream"), [*((one, False) for one in ASKED), ("chat", True), ("free_chat", True)]
)
def test_what_has_no_backend_says_how_to_get_one(tmp_path: Path, name: str, stream: bool) -> None:
    assert {one.name for one in contract.operations()} == {*ASKED, *ALWAYS}
    with polymux.Local(tmp_path / "s", engines={}) as local:
        with pytest.raises(polymux.NoBackendError) as refused:
            list(getattr(local, name)(ASKED[name], **({"stream": True} if stream else {})))
        message = str(refused.value)
        assert (refused.value.status, refused.value.code) == (501, "no_backend")
        assert "polymux doctor" in message or "polymux models" in message, message
        assert not re.search(r"\. [a-z]", message), message
        assert "retry-after" not in refused.value.headers
    assert list((tmp_path / "s" / "drafts").iterdir()) == []


def test_chats_and_streams() -> None:
    with polymux.Local(backends=[scripted(chunks=pieces("H\u00e9", "llo"))]) as local:
        stream = local.chat(MESSAGES, stream=True)
        assert "".join(stream.texts()) == "H\u00e9llo"
        with local.chat("Hi", stream=True) as stream:
            assert next(stream).content == "H\u00e9"
        assert local.read_text(b"x").text == "read"
    with polymux.Local(backends=[scripted(failure=failure())]) as local:
        stream = local.chat(MESSAGES, stream=True)
        with pytest.raises(polymux.NoBackendError):
            list(stream)


def test_a_job_in_progress(tmp_path: Path, source: Path) -> None:
    """The final progress event arrives exactly once for every outcome."""
    seen: list[Any] = []
    long = tmp_path / "long.wav"
    long.write_bytes(noise(1, 40.0))
    with polymux.Local() as local:
        local.convert_to_mp3(long, on_progress=seen.append)
        *before, last = seen
        assert {one.status for one in before} <= {"starting", "processing"}
        assert (last.status, last.extra["progress"]) == ("succeeded", 1.0)
        assert last.output.startswith("file:///")
        job = local.request("convert2mp3", {"file": source}, wait=False)
        assert job.status in ("starting", "processing", "succeeded")
    seen.clear()
    with polymux.Local(backends=[scripted()]) as local:
        local.convert_to_mp3(source, on_progress=seen.append)
    assert [one.status for one in seen if one.finished] == ["succeeded"]
    seen.clear()
    with (
        polymux.Local(backends=[scripted(failure=failure())]) as local,
        pytest.raises(polymux.NoBackendError),
    ):
        local.convert_to_mp3(source, on_progress=seen.append)
    assert [(one.status, one.error) for one in seen if one.finished] == [("failed", "nothing")]


def test_a_deadline_ends_the_work(source: Path) -> None:
    backend = scripted(gate=asyncio.Event())
    with polymux.Local(backends=[backend]) as local:
        with pytest.raises(polymux.RequestTimeoutError):
            local.convert_to_mp3(source, timeout=PATIENCE)
        for _ in range(500):
            if backend.ended:
                break
            time.sleep(0.02)
        assert backend.ended == ["cancelled"]


def test_a_deadline_ends_a_stream() -> None:
    """It applies while the model or the reader pauses. Received text remains available."""
    backend = scripted(gate=asyncio.Event(), chunks=pieces("Hello"))
    with polymux.Local(backends=[backend]) as local:
        for pause_s in (0.0, 1.3 * PATIENCE):
            # Long enough for the first chunk on a busy machine.
            stream = local.chat(MESSAGES, stream=True, timeout=PATIENCE)
            assert next(stream).content == "Hello"
            time.sleep(pause_s)
            with pytest.raises(polymux.RequestTimeoutError) as caught:
                next(stream)
            assert (caught.value.limit, stream.text) == ("total", "Hello")
        assert backend.ended == ["closed"] * 2


def test_closing_and_using_again(source: Path) -> None:
    local = polymux.Local()
    local.close()
    assert local.convert_to_mp3(source).read()[:1] == b"\xff"
    local.close()
    local.close()


class _Sweeping(Scripted):
    """A backend that can run the store's sweep."""

    def bind(self, service: Any) -> None:
        self.store = service.store

    def sweep(self) -> Any:
        return asyncio.run(self.store.run(self.store.sweep))


@pytest.mark.parametrize("kept", [True, False])
def test_results_in_a_folder_of_the_user_s_have_no_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kept: bool
) -> None:
    """Results in a user's folder never expire. Results in Local's temporary folder expire."""
    backend = _Sweeping()
    with polymux.Local(tmp_path / "kept" if kept else None, backends=[backend]) as local:
        made = local.convert_to_mp3(b"x")
        ten_years_on = time.time() + 3650 * 86400
        for one in (backend.store.jobs, backend.store.media):
            monkeypatch.setattr(one, "_clock", lambda: ten_years_on)
        assert (backend.sweep() == 0) == kept
        assert made.path.exists() == kept
    assert made.path.exists() == kept


def test_results_of_an_earlier_release_have_no_end(tmp_path: Path) -> None:
    """Stored expiry times are ignored. Files of a server in the same folder keep theirs."""
    folder = tmp_path / "kept"
    with polymux.Local(folder, backends=[Scripted()]) as local:
        first, second = (local.convert_to_mp3(b"x") for _ in range(2))
    with closing(sqlite3.connect(folder / "catalogue.db")) as database:
        database.execute("UPDATE files SET created_at = 1, expires_at = 604801")
        query = "UPDATE files SET owner = 'key' WHERE name = ?"
        database.execute(query, (second.path.name,))
        database.execute("UPDATE jobs SET created_at = 1, completed_at = 2")
        database.commit()
    backend = _Sweeping()
    with polymux.Local(folder, backends=[backend]) as local:
        local.read_text(b"x")
        backend.sweep()
        assert first.path.exists()
        assert not second.path.exists()
        with closing(sqlite3.connect(folder / "catalogue.db")) as database:
            assert database.execute("SELECT count(*) FROM jobs").fetchone() == (2,)
    assert first.read() == b"ID3 and frames"


def test_async(source: Path) -> None:
    long = write_long_wave(source.parent / "long.wav", 300)

    async def main() -> None:
        async with polymux.AsyncLocal() as local:
            made = await asyncio.gather(*(local.convert_to_mp3(source) for _ in range(4)))
            assert len({one.read() for one in made}) == 1
            task = asyncio.create_task(local.convert_to_mp3(long))
            await asyncio.sleep(0.1)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    asyncio.run(main())


def test_media_are_opened_as_its_settings_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, with the limits, threads and directories of a server's engine."""
    path = tmp_path / "three.wav"
    path.write_bytes(noise(1, 3.0))
    threads: list[int] = []
    convert = MediaEngine._convert

    def watched(self: MediaEngine, *given: Any) -> Any:
        threads.append(self.threads)
        return convert(self, *given)

    monkeypatch.setattr(MediaEngine, "_convert", watched)
    limits = {"limits": {"duration_s": 2.0}}
    strict = EngineSettings("media", limits, max_concurrency=3, threads=1)
    with polymux.Local(engines={"m": strict}) as local, pytest.raises(polymux.LimitExceededError):
        local.convert_to_mp3(path)
    assert _media({"m": strict}).max_concurrency == 3
    with polymux.Local(engines={}) as local:
        local.convert_to_mp3(path)
    assert threads == [1, os.cpu_count()]
