"""Every notebook runs from its first cell to its last, offline, and is kept cleared."""

from __future__ import annotations

import copy
import os
import re
import tempfile
import warnings
from typing import TYPE_CHECKING, Any

import nbformat
import pytest
from support import chat_model, notebook_pages, programs, weights
from support.commands import call
from support.native_build import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from nbformat import NotebookNode

    Runs = Callable[[str], NotebookNode]

NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/*.ipynb"))
NAMES = {"quickstart", "local", "pipeline", "songs", "administration"}
CELL_TIMEOUT_S = 240
#: Models of speech, text and pictures, two servers and two hours of sound.
SLOW = {"quickstart", "local", "pipeline", "administration"}
PATHS = [
    pytest.param(path, id=path.stem, marks=pytest.mark.long if path.stem in SLOW else ())
    for path in NOTEBOOKS
]
#: Folders of the user: nothing there counts, and nothing is written there.
FOLDERS = ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR",
           "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME")  # fmt: skip
WIDGETS = "application/vnd.jupyter.widget-state+json"
#: Set by `scripts/notebooks` to update the pages.
WANTED = "POLYMUX_NOTEBOOK_PAGES" in os.environ
ADDRESS = re.compile(r"https?://([^/\s:\"'<>]+)")


def read(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def leftovers(notebook: NotebookNode) -> list[str]:
    """What an earlier run has left in a notebook."""
    found = [f"the notebook has {name}" for name in notebook.metadata if name == "widgets"]
    for number, cell in enumerate(notebook.cells):
        if cell.get("outputs"):
            found.append(f"cell {number} has outputs")
        if cell.get("execution_count") is not None:
            found.append(f"cell {number} has a number")
        if cell.metadata:
            found.append(f"cell {number} has metadata")
    return found


def alone() -> list[str]:
    """What begins a command whose network is a loopback of its own."""
    rights = () if os.getuid() == 0 else ("--user", "--map-root-user")
    script = 'ip link set lo up && exec "$@"'
    return [programs.find("unshare"), *rights, "--net", "sh", "-c", script, "sh"]


def executed(path: Path, sockets: str) -> NotebookNode:
    """A notebook after its run in a network that is this machine's loopback and nothing else.

    What a cell raises fails the test. The kernel is spoken to over Unix sockets.
    """
    with warnings.catch_warnings():
        # Its packages warn of each other; what the notebook itself says is looked at below.
        warnings.simplefilter("ignore")
        from jupyter_client.manager import AsyncKernelManager
        from nbclient import NotebookClient

        class Alone(AsyncKernelManager):
            def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
                return [*alone(), *super().format_kernel_cmd(extra_arguments)]

        notebook = copy.deepcopy(read(path))
        resources = {"metadata": {"path": str(path.parent)}}
        client = NotebookClient(
            notebook, kernel_manager_class=Alone, timeout=CELL_TIMEOUT_S, resources=resources
        )
        client.km = client.create_kernel_manager()
        client.km.transport, client.km.ip = "ipc", f"{sockets}/{path.stem}"
        client.execute()
    return notebook


def add_models(folder: Path) -> None:
    """Install the models that the notebooks ask for, from packages of the tests."""
    paths = {
        "smollm2-135m-instruct": chat_model.model_path(),
        "whisper-base": weights.whisper(folder),
        "realesr-animevideov3-x2": weights.upscaler(),
    }
    for name, path in paths.items():
        call("models", "add", name, path, cwd=folder, POLYMUX_MODELS=os.environ["POLYMUX_MODELS"])


def add_small_models(site: Path, environment: pytest.MonkeyPatch) -> None:
    """Provide the small models as their package does."""
    (site / "polymux_mini_models").symlink_to(ROOT / "models")
    environment.setenv("PYTHONPATH", str(site))


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    """Notebooks by name after their run, each run once."""
    ran: dict[str, NotebookNode] = {}
    with pytest.MonkeyPatch.context() as environment, tempfile.TemporaryDirectory() as sockets:
        for name in FOLDERS:
            environment.setenv(name, str(tmp_path_factory.mktemp(name)))
        for name in [name for name in os.environ if name.startswith("POLYMUX_")]:
            environment.delenv(name)
        environment.setenv("POLYMUX_MODELS", str(tmp_path_factory.mktemp("models")))

        def run(name: str) -> NotebookNode:
            if name in SLOW and not any(one in SLOW for one in ran):
                add_models(tmp_path_factory.mktemp("packages"))
            if name not in ran:
                with pytest.MonkeyPatch.context() as further:
                    if name == "local":
                        add_small_models(tmp_path_factory.mktemp("site"), further)
                    ran[name] = executed(ROOT / f"notebooks/{name}.ipynb", sockets)
            return ran[name]

        yield run


def outputs(notebook: NotebookNode, code: str) -> list[NotebookNode]:
    """Outputs of the one cell that holds this code."""
    (cell,) = [one for one in notebook.cells if code in one.source and one.cell_type == "code"]
    found: list[NotebookNode] = cell.outputs
    return found


def printed(notebook: NotebookNode, code: str) -> str:
    """What that cell printed; it comes in one output or in many."""
    return "".join(one.text for one in outputs(notebook, code) if one.output_type == "stream")


def shown(notebook: NotebookNode, code: str, kind: str = "text/html") -> str:
    """What that cell's last output is, in this form."""
    found: str = outputs(notebook, code)[-1].data[kind]
    return found


def bars(notebook: NotebookNode) -> list[dict[str, Any]]:
    """The bars as they stood at the end."""
    states = notebook.metadata.get("widgets", {}).get(WIDGETS, {}).get("state", {})
    return [one.state for one in states.values() if one.model_name == "FloatProgressModel"]


@pytest.mark.parametrize("path", PATHS)
def test_it_runs(path: Path, done: Runs) -> None:
    """Offline, without a complaint, a key, or an address of anybody; all bars have ended well."""
    notebook = done(path.stem)
    every = [one for cell in notebook.cells for one in cell.get("outputs", [])]
    assert not [one for one in every if one.output_type == "error" or one.get("name") == "stderr"]
    for one in every:
        text = one.get("text", "") + "".join(map(str, one.get("data", {}).values()))
        assert "pmx_" not in text
        assert set(ADDRESS.findall(text)) <= {"127.0.0.1"}
    for bar in bars(notebook):
        assert bar["bar_style"] in ("success", "")
        assert bar["bar_style"] == "" or bar["value"] == 1.0
    # Its page in the documentation has its cells word for word, and outputs of the same kinds.
    now = notebook_pages.page_of(notebook, path.stem)
    kept = notebook_pages.page_path(path.stem)
    if WANTED:
        kept.write_text(now, encoding="utf-8")
    page = kept.read_text(encoding="utf-8")
    remedy = f"run scripts/notebooks to update {kept.name}"
    assert notebook_pages.skeleton(page) == notebook_pages.skeleton(now), remedy
    assert notebook_pages.places(page) == []
    assert "pmx_" not in page
    assert set(ADDRESS.findall(page)) <= {"127.0.0.1"}
    assert "[text]" in notebook_pages.skeleton(page)
    assert len(page) < 1_000_000


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_is_kept_cleared(path: Path) -> None:
    assert leftovers(read(path)) == []


def test_there_are_notebooks_and_what_they_leave_is_found(done: Runs) -> None:
    assert {path.stem for path in NOTEBOOKS} == NAMES
    assert {path.stem for path in notebook_pages.PAGES.iterdir()} == NAMES
    assert len(leftovers(done("songs"))) >= 16


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_uses_nothing_of_the_tests(path: Path) -> None:
    code = "\n".join(cell.source for cell in read(path).cells)
    assert "../tests" not in code
    assert "sys.path" not in code


@pytest.mark.long
def test_it_runs_and_shows_what_it_made(done: Runs) -> None:
    """A picture and a player with their bytes in the page, and text of the models."""
    notebook = done("quickstart")
    assert '<img src="data:image/png;base64,iVBORw0KGgo' in shown(notebook, "client.upscale_image")
    assert '<audio controls src="data:audio/mpeg;base64,' in shown(notebook, "client.read_text")
    assert "Bring the green book" in printed(notebook, "client.read_text")
    assert "engine arrives on Monday" in shown(notebook, "client.transcribe", "text/plain")
    for code in ("print(answer.text)", "stream.texts()"):
        assert printed(notebook, code).strip()
    assert len(shown(notebook, "asyncio.gather", "text/plain")) > 50
    assert printed(notebook, "NoBackendError") == "501 no_backend\n"
    assert printed(notebook, "server.terminate()") == "0\n"


@pytest.mark.long
def test_work_without_a_server(done: Runs) -> None:
    notebook = done("local")
    assert "<audio controls src=" in shown(notebook, "local.convert_to_mp3")
    assert "Ferry leaves at seven\nBring the green book" in shown(notebook, "read_text")
    assert 'src="data:image/png;base64,iVBORw0KGgo' in shown(notebook, "job = local.upscale_image")
    text = printed(notebook, "stream=True").strip()
    assert text in shown(notebook, "stream=True", "text/markdown")
    assert "leaves at seven" in shown(notebook, "local.transcribe")
    assert 'src="data:image/png;base64,iVBORw0KGgo' in shown(notebook, "local.generate_image")
    assert "polymux models pull juggernaut-reborn" in printed(notebook, "NoBackendError")
    assert len(bars(notebook)) == 2


@pytest.mark.long
def test_recordings_become_a_table(done: Runs) -> None:
    notebook = done("pipeline")
    assert shown(notebook, "transcripts = ").count("unsupported_media") == 1
    rows = printed(notebook, "write_csv").strip().splitlines()
    assert [row.split(",")[0] for row in rows] == ["note", "boat", "dinner", "monday"]
    assert "new engine arrives on Monday morning" in rows[-1]
    assert [bar["bar_style"] for bar in bars(notebook)] == ["success", "success"]


def test_songs_are_recognized(done: Runs) -> None:
    notebook = done("songs")
    assert "North Wind - Mast" in shown(notebook, "index.identify(snippet)")
    assert printed(notebook, "index.identify(stranger)") == "None\n"
    assert "North Wind - Mast" in shown(notebook, "nort wnd")
    assert "North Wind - Mast" in shown(notebook, "polymux.Local")


@pytest.mark.long
def test_a_server_is_run(done: Runs) -> None:
    notebook = done("administration")
    assert re.search(r"guest\b.*convert_to_mp3", printed(notebook, '"keys", "list"'))
    output = printed(notebook, "RateLimitError")
    assert output.startswith("403 forbidden\nconverted\nconverted\n429 rate_limited ")
    assert "401 unauthorized" in printed(notebook, '"keys", "rm"')
    assert "canceled" in shown(notebook, "predictions.cancel")
    assert "'first'" in printed(notebook, "newest job on the first server:")
    assert printed(notebook, "terminate()") == "0\n0\n"
