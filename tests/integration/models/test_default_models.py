"""Real models, added to servers and `Local` without any settings."""

from __future__ import annotations

import io
import os
import shutil
import struct
import subprocess
import wave
from typing import TYPE_CHECKING

import polymux
import pytest
from PIL import Image
from polymux.models import import_local
from polymux.models.folder import ModelsFolder
from polymux.runtime.settings import EngineSettings
from support import programs, weights
from support.chat_model import model_path
from support.commands import call
from support.serve_command import ServeCommand

if TYPE_CHECKING:
    from pathlib import Path

UPSCALER = "nightmareai/real-esrgan"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModelsFolder:
    made = ModelsFolder(tmp_path / "models")
    monkeypatch.setenv("POLYMUX_MODELS", str(made.path))
    # Library threads that busy-wait for each other are slow on a busy machine.
    monkeypatch.setattr(os, "cpu_count", lambda: 1)
    return made


def picture() -> bytes:
    buffer = io.BytesIO()
    Image.new("RGB", (40, 30), "red").save(buffer, "PNG")
    return buffer.getvalue()


def test_a_server_without_settings_answers_chats(tmp_path: Path) -> None:
    call("models", "add", "smollm2", model_path(), cwd=tmp_path)
    # Uses one processor, because busy-waiting threads would slow each other down.
    one = str(min(os.sched_getaffinity(0)))
    before = (programs.find("taskset"), "--cpu-list", one)
    server = ServeCommand(tmp_path, whole=True).start(before=before)
    try:
        with polymux.Client(server.url, server.key) as client:
            answer = client.chat("Name three colours.", max_completion_tokens=8)
            assert answer.text
            assert answer.model == "smollm2"
            assert client.chat("Hi", model="smollm2", max_completion_tokens=2).text
            with pytest.raises(polymux.NoBackendError, match="polymux models pull whisper-base"):
                client.transcribe(("talk.wav", b"RIFF"))
    finally:
        assert server.process is not None
        server.process.terminate()
        assert server.process.wait(30) == 0, server.log_text


def test_local_without_settings(folder: ModelsFolder, tmp_path: Path) -> None:
    """A model in the folder, and one that was added by path, work without a pull."""
    weights.whisper(folder.path)
    import_local.add("twice", weights.upscaler(), folder)
    talk = tmp_path / "talk.wav"
    words = "One, two, three, four, five, six, seven."
    subprocess.run(["espeak-ng", "-s", "120", "-w", str(talk), words], check=True)
    with polymux.Local() as local:
        heard = local.transcribe(talk, language="en").text.lower()
        assert "six" in heard or "6" in heard, heard
        made = local.upscale_image(picture(), model=UPSCALER, scale=2).images[0].read()
        assert Image.open(io.BytesIO(made)).size == (80, 60)
        with pytest.raises(polymux.NoBackendError, match="models pull smollm2-135m-instruct"):
            local.chat("Hi")


def test_an_engine_is_given_a_name(folder: ModelsFolder, tmp_path: Path) -> None:
    """Includes a network whose file name gives the wrong scale factor."""
    for suffix in (".param", ".bin"):
        shutil.copy(weights.upscaler().with_suffix(suffix), tmp_path / f"net-x8{suffix}")
    import_local.add("twice", tmp_path / "net-x8.param", folder, copy=True)
    engines = {"up": EngineSettings("upscale", {"model": "twice"})}
    with polymux.Local(engines=engines) as local:
        made = local.upscale_image(picture(), model=UPSCALER, scale=2)
        assert Image.open(io.BytesIO(made.images[0].read())).size == (80, 60)
        assert made.version == folder.get("twice").manifest.files[1].sha256
    engines = {"up": EngineSettings("upscale", {"model": "thrice"}), "chat": EngineSettings("chat")}
    with polymux.Local(engines=engines) as local:
        with pytest.raises(polymux.NoBackendError, match="thrice") as refused:
            local.upscale_image(picture(), model=UPSCALER)
        assert refused.value.status == 501
        with pytest.raises(polymux.NoBackendError, match="models pull"):
            local.chat("Hi")


def test_a_file_that_is_no_model_stops_nothing_else(folder: ModelsFolder, tmp_path: Path) -> None:
    """A GGUF file in the folder that declares zero attention heads."""

    def text(words: bytes) -> bytes:
        return struct.pack("<Q", len(words)) + words

    names = (b"attention.head_count", b"attention.head_count_kv", b"block_count")
    facts = text(b"general.architecture") + struct.pack("<I", 8) + text(b"llama")
    facts += b"".join(text(b"llama." + one) + struct.pack("<II", 4, 0) for one in names)
    facts += text(b"llama.embedding_length") + struct.pack("<II", 4, 64)
    folder.path.mkdir()
    head = struct.pack("<4sIQQ", b"GGUF", 3, 0, 2 + len(names))
    (folder.path / "odd.gguf").write_bytes(head + facts)
    sound = tmp_path / "silence.wav"
    with wave.open(str(sound), "wb") as file:
        file.setparams((1, 2, 16000, 0, "NONE", ""))
        file.writeframes(bytes(32000))
    with polymux.Local() as local:
        assert local.convert_to_mp3(sound).read()
