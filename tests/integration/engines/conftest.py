"""Fixtures: the test engine for child processes, synthesized speech and a chat model."""

from __future__ import annotations

import subprocess
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux.runtime.settings import EngineSettings
from support.chat_model import model_path
from support.polymux_server import PolymuxServer
from support.supervised_engine import TESTS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path


@pytest.fixture(autouse=True)
def _tests_for_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make the tests' engine importable in the supervisor's child processes."""
    monkeypatch.setenv("PYTHONPATH", str(TESTS))


@pytest.fixture(scope="session")
def spoken(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Path]:
    """Synthesize a text with a speech program and return the WAV file."""

    def say(words: str, *options: str) -> Path:
        path = tmp_path_factory.mktemp("talk") / "talk.wav"
        subprocess.run(["espeak-ng", "-s", "140", *options, "-w", str(path), words], check=True)
        return path

    return say


@pytest.fixture(scope="session")
def chat_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    """The small model as ``chat``, two at once. Its short context ends long answers."""
    options = {"model": str(model_path()), "context": 160}
    engines = {"chat": EngineSettings("chat", options, max_concurrency=2, threads=1)}
    with PolymuxServer(tmp_path_factory.mktemp("chat") / "s", engines=engines) as running:
        yield running


@pytest.fixture(scope="session")
def chat_client(chat_server: PolymuxServer) -> Iterator[polymux.Client]:
    with polymux.Client(chat_server.url, chat_server.key) as made:
        yield made
