from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import jedi
import polymux
import pytest
from polymux import aio, errors
from polymux.media.options import EncodingOptions

if TYPE_CHECKING:
    from collections.abc import Callable

PACKAGE = Path(polymux.__file__).parent
TWINS = ("convert_many", "convert_to_mp3", "decode_audio", "probe")
#: Public names except exceptions. Adding or removing one needs a decision.
NAMES = """
__version__ aio batch contract convert_many convert_to_mp3 decode_audio decode_chat_stream notebook
probe AnswerMessage AsyncChatStream AsyncClient AsyncLocal BatchItem BatchProgress BatchReport
Chapter ChatChunk ChatCompletion ChatStream Choice Client ConversionOutcome ConversionReport
ConversionWarning Cover IndexedSong Limits Local Match MediaFile MediaInfo OcrText PcmAudio
Prediction Problem Progress Retry Song SongIndex SongList StreamInfo TextResponse Timeout ToolCall
ToolFunction TranscriptChunk Usage
"""
HEAVY = {
    "asyncio", "importlib.metadata", "numpy", "polymux._native._core", "polymux._native._media",
    "polymux.aio", "pydantic", "ssl",
}  # fmt: skip
LOADED = """
import json, sys
before = set(sys.modules)
{statement}
new = sorted(set(sys.modules) - before)
native = [name for name in new
          if name.startswith("polymux")
          and str(getattr(sys.modules[name], "__file__", "")).endswith((".so", ".pyd"))]
print(json.dumps([sorted(sys.modules), new, native]))
"""


def loaded_by(statement: str) -> tuple[set[str], list[str], list[str]]:
    """All modules after `statement` in a new process, the new ones, and the native ones."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADED.format(statement=statement)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    everything, new, native = json.loads(done.stdout)
    return set(everything), new, native


def test_public_names_are_exactly_these() -> None:
    exceptions = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and not name.startswith("_")
    }
    assert polymux.__all__ == sorted(exceptions | set(NAMES.split()))
    assert all(getattr(polymux, name) is not None for name in polymux.__all__)
    assert set(polymux.__all__) <= set(dir(polymux))
    with pytest.raises(AttributeError, match="convert_to_wav"):
        polymux.convert_to_wav  # type: ignore[attr-defined]  # noqa: B018


def test_type_checkers_see_the_same_names() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text())
    block = next(node for node in tree.body if isinstance(node, ast.If))
    seen = {
        alias.asname or alias.name
        for node in block.body
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("polymux")
        for alias in node.names
    }
    assert seen == set(polymux.__all__)


@pytest.mark.parametrize(
    ("code", "name"),
    [
        ("polymux.Cli", "Client"),
        ("polymux.NoAu", "NoAudioError"),
        ("polymux.convert_to_mp3('a').repo", "report"),
        ("polymux.Client().cha", "chat"),
        ("polymux.Client().chat('a').conte", "content"),
        ("polymux.Local().transcribe('a').chun", "chunks"),
        ("polymux.Client(timeo", "timeout="),
    ],
)
def test_editors_complete_names(tmp_path: Path, code: str, name: str) -> None:
    # Without the venv, whose importer of the editable package Jedi does not support.
    interpreter = getattr(sys, "_base_executable", sys.executable)
    project = jedi.Project(
        tmp_path, added_sys_path=[str(PACKAGE.parent)], environment_path=interpreter
    )
    script = jedi.Script(f"import polymux\n{code}", path=tmp_path / "x.py", project=project)
    assert name in {found.name for found in script.complete(2)}


def test_import_loads_next_to_nothing() -> None:
    everything, new, native = loaded_by("import polymux")
    assert (HEAVY | {"dataclasses"}) & everything == set()
    assert native == []
    ours = ["polymux", "polymux._util", "polymux._util.imports"]
    assert [name for name in new if name.startswith("polymux")] == ours


def test_names_load_nothing_heavy() -> None:
    statement = "from polymux import PolymuxError, convert_to_mp3, MediaFile, Limits"
    everything, _, native = loaded_by(statement)
    assert HEAVY & everything == set()
    assert native == []


def test_a_server_loads_no_sdk_before_it_is_wanted() -> None:
    everything, _, _ = loaded_by(
        "import polymux.mcp, polymux.server.app; polymux.server.create_app();"
        "assert polymux.mcp.is_installed()"
    )
    assert {"mcp", "mcp_types"} & everything == set()


def test_sync_and_async_twins_take_the_same_arguments() -> None:
    for name in TWINS:
        assert taken(getattr(polymux, name)) == taken(getattr(aio, name)), name


def taken(function: Callable[..., object]) -> tuple[list[inspect.Parameter], set[str]]:
    """The parameters, and the encoding options among them or in `**options`."""
    parameters = inspect.signature(function).parameters
    options = set(EncodingOptions.__annotations__)
    if "options" in parameters:
        assert parameters["options"].annotation == "Unpack[EncodingOptions]"
        given = options
    else:
        given = options & set(parameters)
    others = [one for name, one in parameters.items() if name not in options | {"options"}]
    return others, given


@pytest.mark.parametrize("name", [*TWINS, "decode_chat_stream"])
def test_every_operation_documents_its_arguments(name: str) -> None:
    function = getattr(polymux, name)
    text = inspect.getdoc(function) or ""
    parameters = [f"{one}:" for one in inspect.signature(function).parameters]
    for words in (*parameters, "Args:", "Returns:", "Raises:", "Example:"):
        assert words in text, f"polymux.{name}: {words}"
    twin = inspect.getdoc(getattr(aio, name)) or ""
    assert f"`polymux.{name}`" in twin
    assert "Example:" in twin
