"""The public names, and what importing them costs."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
from pathlib import Path

import polymux
import pytest
from polymux import aio, errors

PACKAGE = Path(polymux.__file__).parent

OPERATIONS = ("convert_many", "convert_to_mp3", "decode_audio", "decode_chat_stream", "probe")

FORBIDDEN = (
    "asyncio",
    "dataclasses",
    "importlib.metadata",
    "numpy",
    "polymux._native._core",
    "polymux._native._media",
    "polymux.aio",
    "pydantic",
    "ssl",
)
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
    """All modules after a statement in a new process, those it added, and our native ones."""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", LOADED.format(statement=statement)],
        capture_output=True, text=True, check=True, timeout=60,
    )  # fmt: skip
    everything, new, native = json.loads(done.stdout)
    return set(everything), new, native


def test_all_is_sorted_and_every_name_is_there() -> None:
    assert sorted(polymux.__all__) == polymux.__all__
    assert len(set(polymux.__all__)) == len(polymux.__all__)
    for name in polymux.__all__:
        assert getattr(polymux, name) is not None
    assert set(polymux.__all__) <= set(dir(polymux))


def test_public_names_are_exactly_these() -> None:
    """A name that appears or goes away is a decision, not an accident."""
    exceptions = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, Exception) and not name.startswith("_")
    }
    functions = {
        "batch", "convert_many", "convert_to_mp3", "decode_audio", "decode_chat_stream", "probe",
    }  # fmt: skip
    values = {
        "AnswerMessage", "AsyncChatStream", "AsyncClient", "AsyncLocal", "BatchItem",
        "BatchProgress", "BatchReport", "Catalogue",
        "CatalogueSong", "Chapter", "ChatChunk",
        "ChatCompletion",
        "ChatStream", "Choice", "Client", "ConversionOutcome", "ConversionReport",
        "ConversionWarning", "Cover", "Limits", "Local", "Match",
        "MediaFile", "MediaInfo", "OcrText", "PcmAudio", "Prediction", "Problem", "Progress",
        "Retry",
        "Song", "SongList", "StreamInfo", "TextResponse", "Timeout", "ToolCall", "ToolFunction",
        "TranscriptChunk", "Usage",
    }  # fmt: skip
    assert set(polymux.__all__) == exceptions | functions | values | {
        "__version__",
        "aio",
        "contract",
        "notebook",
    }


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


def test_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="convert_to_wav"):
        polymux.convert_to_wav  # type: ignore[attr-defined]  # noqa: B018


def test_import_loads_next_to_nothing() -> None:
    everything, new, native = loaded_by("import polymux")
    assert [name for name in FORBIDDEN if name in everything] == []
    assert native == []
    assert [name for name in new if name.startswith("polymux")] == ["polymux"]


@pytest.mark.parametrize(
    "statement",
    [
        "from polymux import PolymuxError, convert_to_mp3, MediaFile, Limits",
        "import polymux.cli; polymux.cli.parser().format_help()",
    ],
)
def test_names_and_help_load_nothing_heavy(statement: str) -> None:
    everything, _, native = loaded_by(statement)
    heavy = set(FORBIDDEN) - {"dataclasses"}
    assert sorted(heavy & everything) == []
    assert native == []


def test_sync_and_async_twins_take_the_same_arguments() -> None:
    for name in ("convert_many", "convert_to_mp3", "decode_audio", "probe"):
        ours = inspect.signature(getattr(polymux, name)).parameters
        twins = inspect.signature(getattr(aio, name)).parameters
        assert [*ours.values()] == [*twins.values()], name


def documented(module_path: Path) -> list[str]:
    """Public functions, classes and methods of a module that lack a docstring section."""
    lacking = []
    for node in ast.walk(ast.parse(module_path.read_text())):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        text = ast.get_docstring(node) or ""
        if node.name in OPERATIONS:
            lacking += [
                f"{module_path.name}:{node.name}: {section}"
                for section in ("Args:", "Returns:", "Raises:", "Example:")
                if section not in text
            ]
    return lacking


def test_every_operation_documents_arguments_results_errors_and_an_example() -> None:
    for name in ("media/conversion.py", "client/chat_stream.py", "media/probe.py", "aio.py"):
        assert documented(PACKAGE / name) == []


@pytest.mark.parametrize("name", OPERATIONS)
def test_every_argument_is_documented(name: str) -> None:
    for module in (polymux, aio):
        function = getattr(module, name)
        text = inspect.getdoc(function) or ""
        for parameter in inspect.signature(function).parameters:
            assert f"{parameter}:" in text, f"{module.__name__}.{name}: {parameter}"
