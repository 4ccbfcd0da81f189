"""Commands with `--local`, which run the engines of this computer without a server."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from typing import TYPE_CHECKING
from unittest import mock

import polymux
import pytest
from polymux.runtime.build import backends_of
from polymux.runtime.settings import EngineSettings, StoreSettings
from polymux.server.settings.settings import ServerSettings
from support.chat_model import model_path
from support.commands import MAX_S, PROGRAM, call, environment
from support.weights import upscaler

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """Environment variables that install two models."""
    folder = tmp_path_factory.mktemp("models")
    variables = {"POLYMUX_MODELS": str(folder)}
    call("models", "add", "small", model_path(), cwd=folder, **variables)
    call("models", "add", "network", upscaler(), cwd=folder, **variables)
    return variables


@pytest.fixture
def page(tmp_path: Path) -> Path:
    from PIL import Image, ImageDraw, ImageFont

    # The engine enlarges the shorter side, so a narrow strip would become a very wide image.
    made = Image.new("RGB", (420, 420), "white")
    font = ImageFont.load_default(40)
    ImageDraw.Draw(made).text((20, 20), "POLYMUX 2026", fill="black", font=font)
    made.save(tmp_path / "page.png")
    return tmp_path / "page.png"


def test_text_chats_and_pictures(tmp_path: Path, page: Path, models: dict[str, str]) -> None:
    from PIL import Image

    read = call("read-text", page, "--local", cwd=tmp_path, **models)
    assert read.stdout.decode().strip() == "POLYMUX 2026"
    words = ("chat", "Name a colour.", "--local", "--max-completion-tokens", "5")
    whole = call(*words, "--json", "--model", "small", cwd=tmp_path, **models)
    assert json.loads(whole.stdout)["model"] == "small"
    picture = tmp_path / "picture.png"
    Image.new("RGB", (40, 20), "white").save(picture)
    # The default model is not installed.
    larger = ("upscale-image", picture, "--local", "--output-dir", "made")
    done = call(*larger, cwd=tmp_path, **models)
    (saved,) = done.stdout.decode().splitlines()
    assert saved == "made/picture-upscaled.png"
    with Image.open(tmp_path / saved) as larger_picture:
        assert larger_picture.size == (160, 80)


def test_local_is_a_default_of_the_configuration(tmp_path: Path, models: dict[str, str]) -> None:
    (tmp_path / "config.toml").write_text('base_url = "http://127.0.0.1:9"\nlocal = true\n')
    more = models | {"POLYMUX_CONFIG": str(tmp_path / "config.toml")}
    words = ("chat", "Name a colour.", "--max-completion-tokens", "5", "--json")
    assert json.loads(call(*words, cwd=tmp_path, **more).stdout)["model"] == "small"
    retries = ("--retries", "0")
    call(*words, *retries, "--no-local", cwd=tmp_path, code=7, **more)
    call(*words, *retries, "--server", "http://127.0.0.1:9", cwd=tmp_path, code=7, **more)
    url = {"POLYMUX_BASE_URL": "http://127.0.0.1:9"}
    call(*words, *retries, cwd=tmp_path, code=7, **more | url)
    (tmp_path / "config.toml").write_text("local = 1")
    assert b"local" in call(*words, cwd=tmp_path, code=4, **more).stderr


def test_engines_of_the_configuration(tmp_path: Path, models: dict[str, str]) -> None:
    """`--local`, `Local` and a server have the same settings of engines."""
    file = tmp_path / "config.toml"
    more = models | {"POLYMUX_CONFIG": str(file)}
    file.write_text('[engines.chat.options]\nmodel = "small"\naliases = ["mine"]\n')
    words = ("chat", "Name a colour.", "--local", "--max-completion-tokens", "5", "--json")
    assert json.loads(call(*words, cwd=tmp_path, **more).stdout)["model"] == "mine"
    with mock.patch.dict(os.environ, more):
        with polymux.Local() as local:
            assert local.chat("Name a colour.", max_completion_tokens=5).model == "mine"
        store = StoreSettings(tmp_path / "store")
        of_server = {one.name: one for one in backends_of(ServerSettings(store=store))}
        assert of_server["chat"].models == ("mine", "chat")
        assert {"media", "upscale"} <= of_server.keys()
        # The settings file of a server lists all of its engines.
        own = {"small": EngineSettings("chat", {"model": "small"})}
        named = ServerSettings(store=store, engines=own)
        assert "chat" not in {one.name for one in backends_of(named)}


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("remote = true", "remote"),
        ("engines = 5", "engines"),
        ("[engines.chat.options]\nmodels = 1", "engines.chat.options.models"),
        ("[engines.talk]\nthreads = 2", "talk"),
    ],
)
def test_settings_are_never_ignored(tmp_path: Path, text: str, key: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    more = {"POLYMUX_CONFIG": str(tmp_path / "config.toml")}
    for words in (("chat", "x", "--local"), ("doctor",), ("serve", "--port", "0")):
        state = {"XDG_STATE_HOME": str(tmp_path)}
        errors = call(*words, cwd=tmp_path, code=4, **more | state).stderr.decode()
        assert key in errors
        assert "config.toml" in errors
    with (
        mock.patch.dict(os.environ, more),
        polymux.Local() as local,
        pytest.raises(polymux.InvalidRequestError, match=re.escape(key)),
    ):
        local.chat("x")


def test_what_has_no_engine_here(tmp_path: Path, page: Path, models: dict[str, str]) -> None:
    words = ("generate-video", "waves", "--local", "--output-dir", "v")
    errors = call(*words, cwd=tmp_path, code=3, **models).stderr.decode()
    assert "generate_video" in errors
    assert "server" not in errors
    # The installed model has no prompt, so the default one is missing.
    words = ("upscale-image", page, "--prompt", "x", "--local", "--output-dir", "v")
    assert b"juggernaut" in call(*words, cwd=tmp_path, code=3, **models).stderr
    words = ("upscale-image", page, "--face-enhance", "--local", "--output-dir", "v")
    assert b"face_enhance" in call(*words, cwd=tmp_path, code=9, **models).stderr
    words = ("chat", "x", "--model", "other", "--local")
    errors = call(*words, cwd=tmp_path, code=2, **models).stderr.decode()
    assert "'small'" in errors


def test_without_pillow_it_says_what_to_install(
    tmp_path: Path, page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    errors = call("read-text", page, "--local", cwd=tmp_path, code=3).stderr.decode()
    assert "pip install 'polymux[" in errors
    done = call("doctor", "--json", cwd=tmp_path)
    engine = json.loads(done.stdout)["engines"]["tesseract"]
    assert (engine["ok"], engine["remedy"]) == (False, "pip install 'polymux[images]'")


def test_an_unreadable_file_is_one_line(tmp_path: Path) -> None:
    path = tmp_path / "talk.wav"
    path.write_bytes(b"RIFF")
    path.chmod(0)
    # Root can read every file, unless it gives up this capability.
    drop = ["setpriv", "--bounding-set=-dac_override,-dac_read_search"]
    done = subprocess.run(
        [*([] if os.geteuid() else drop), *PROGRAM, "transcribe", str(path), "--local"],
        capture_output=True, check=False, text=True, env=environment(tmp_path), timeout=MAX_S,
    )  # fmt: skip
    (line,) = done.stderr.splitlines()
    assert "talk.wav" in line
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("chat x --local --server http://127.0.0.1:9", "--server"),
        ("chat x --local --retries 1", "--retries"),
        ("upscale-image x.png --local --no-wait --output-dir f", "--no-wait"),
        ("upscale-image x.png --local", "--output-dir"),
    ],
)
def test_what_makes_no_sense_with_it(tmp_path: Path, words: str, expected: str) -> None:
    assert expected in call(*words.split(), cwd=tmp_path, code=2).stderr.decode()


@pytest.mark.parametrize(
    "words",
    ["free-chat x --local", "batch ocr a.png --output-dir out", "convert-to-mp3 a.wav"],
)
def test_options_that_need_a_server(words: str, tmp_path: Path) -> None:
    given = ["--ca-file a.pem", "--server-proxy http://127.0.0.1:1", "--retries 0"]
    if words.startswith("convert-to-mp3"):  # The other commands accept --timeout.
        given.append("--timeout 5")
    for option in given:
        done = call(*words.split(), *option.split(), cwd=tmp_path, code=2)
        assert option.split()[0].encode() in done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("read-text", "page.png"),
        ("chat", "Name a colour."),
    ],
)
def test_a_deadline(
    tmp_path: Path, page: Path, models: dict[str, str], words: tuple[str, ...]
) -> None:
    """The deadline is too short for any engine to start."""
    assert page.exists()
    done = call(*words, "--local", "--timeout", "0.02", cwd=tmp_path, code=8, **models)
    assert "0.02 s" in done.stderr.decode()
    assert not done.stdout
