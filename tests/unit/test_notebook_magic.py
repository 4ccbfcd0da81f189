from __future__ import annotations

import os
from itertools import count
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from polymux.notebook import load_ipython_extension
from servers.reference import ReferenceServer
from support.chat_model import model_path
from support.commands import call
from traitlets.config import Config

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

QUESTION = "What is a <b>keel</b>?"


@pytest.fixture
def server() -> Iterator[ReferenceServer]:
    with ReferenceServer() as running:
        yield running


@pytest.fixture
def shell(
    server: ReferenceServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> InteractiveShell:
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path))
    monkeypatch.setenv("POLYMUX_BASE_URL", server.url)
    monkeypatch.setenv("POLYMUX_API_KEY", server.token)
    made = InteractiveShell(config=Config({"HistoryManager": {"enabled": False}}))
    load_ipython_extension(made)
    return made


def test_it_asks_and_prints(
    shell: InteractiveShell, server: ReferenceServer, capsys: pytest.CaptureFixture[str]
) -> None:
    shell.run_cell_magic("polymux", '--model large --system "Be short."', f"{QUESTION}\n")
    assert capsys.readouterr().out == f"You said: {QUESTION}\n"
    (call,) = server.calls
    assert call.body.get("model") == "large"
    assert call.body.get("messages") == [
        {"role": "system", "content": "Be short."},
        {"role": "user", "content": QUESTION},
    ]


def test_a_notebook_shows_one_answer_that_grows(
    shell: InteractiveShell, server: ReferenceServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(shell, "kernel", object(), raising=False)
    monkeypatch.setattr("polymux.notebook.monotonic", count().__next__)

    def display(answer: Any, *, display_id: bool) -> SimpleNamespace:
        assert display_id
        seen.append(answer._repr_markdown_())
        return SimpleNamespace(update=lambda one: seen.append(one._repr_markdown_()))

    monkeypatch.setattr("IPython.display.display", display)
    shell.run_cell_magic("polymux", f"--server {server.url}", QUESTION)
    whole = "You said: What is a &#60;b>keel&#60;/b>?"
    assert (seen[0], seen[-1]) == ("", whole)
    assert len(seen) > 3
    assert all(whole.startswith(part) for part in seen[:-1] if "&" not in part)


def test_it_works_locally(
    shell: InteractiveShell,
    server: ReferenceServer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    call("models", "add", "small", model_path(), cwd=tmp_path, **os.environ)
    shell.run_cell_magic("polymux", "--local", "Name a colour.")
    first = capsys.readouterr().out
    assert first.strip()
    monkeypatch.delenv("POLYMUX_BASE_URL")
    (tmp_path / "config.toml").write_text("local = true")
    monkeypatch.setenv("POLYMUX_CONFIG", str(tmp_path / "config.toml"))
    shell.run_cell_magic("polymux", "--model small", "Name a colour.")
    assert capsys.readouterr().out.strip()
    assert server.calls == []
    shell.run_cell_magic("polymux", f"--server {server.url}", "Hello")
    assert len(server.calls) == 1


@pytest.mark.parametrize(
    ("line", "cell", "word"),
    [
        ("--key abcdefgh", "Hello", "--key"),
        ("--model", "Hello", "--model"),
        ("--local --server http://127.0.0.1:1", "Hello", "--local"),
        ('--system "half', "Hello", "No closing quotation"),
        ("", " \n", "question"),
    ],
)
def test_what_is_wrong_is_named(shell: InteractiveShell, line: str, cell: str, word: str) -> None:
    with pytest.raises(UsageError, match=word) as caught:
        shell.run_cell_magic("polymux", line, cell)
    assert "--server URL" in str(caught.value)


def test_a_failure_is_a_sentence(shell: InteractiveShell, server: ReferenceServer) -> None:
    server.fail(401, "no such key", times=None)
    with pytest.raises(UsageError, match="AuthenticationError") as caught:
        shell.run_cell_magic("polymux", "", "Hello")
    assert caught.value.__cause__ is None
    assert server.token not in str(caught.value)
