"""Every notebook runs from its first cell to its last, and is kept without what it showed."""

from __future__ import annotations

import copy
import warnings
from typing import TYPE_CHECKING

import nbformat
import pytest
from support.native_build import ROOT

if TYPE_CHECKING:
    from pathlib import Path

    from nbformat import NotebookNode

NOTEBOOKS = sorted((ROOT / "notebooks").glob("**/*.ipynb"))
QUICKSTART = ROOT / "notebooks/quickstart.ipynb"
CELL_TIMEOUT_S = 120


def read(path: Path) -> NotebookNode:
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    return notebook


def leftovers(notebook: NotebookNode) -> list[str]:
    """What an earlier run has left in a notebook."""
    found = []
    for number, cell in enumerate(notebook.cells):
        if cell.get("outputs"):
            found.append(f"cell {number} has outputs")
        if cell.get("execution_count") is not None:
            found.append(f"cell {number} has a number")
        if cell.metadata:
            found.append(f"cell {number} has metadata")
    return found


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> NotebookNode:
    """The quickstart after its run; what it raises fails the test."""
    with warnings.catch_warnings(), pytest.MonkeyPatch.context() as environment:
        # Nothing of the user's counts, and nothing is written there.
        for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR"):
            environment.setenv(name, str(tmp_path_factory.mktemp(name)))
        # Its packages warn of each other; what the notebook itself says is looked at below.
        warnings.simplefilter("ignore")
        from nbclient import NotebookClient

        notebook = copy.deepcopy(read(QUICKSTART))
        resources = {"metadata": {"path": str(QUICKSTART.parent)}}
        NotebookClient(notebook, timeout=CELL_TIMEOUT_S, resources=resources).execute()
    return notebook


def outputs(notebook: NotebookNode, code: str) -> list[NotebookNode]:
    """Outputs of the one cell that holds this code."""
    (cell,) = [one for one in notebook.cells if code in one.source and one.cell_type == "code"]
    found: list[NotebookNode] = cell.outputs
    return found


def printed(notebook: NotebookNode, code: str) -> str:
    """What that cell printed; it comes in one output or in many."""
    return "".join(one.text for one in outputs(notebook, code) if one.output_type == "stream")


def test_it_runs_and_shows_what_it_made(done: NotebookNode) -> None:
    """A picture and a player with their bytes in the page, and text of the streams."""
    every = [one for cell in done.cells for one in cell.get("outputs", [])]
    assert not [one for one in every if one.output_type == "error" or one.get("name") == "stderr"]
    (picture,) = outputs(done, "job.images[0]")
    assert '<img src="data:image/png;base64,iVBORw0KGgo' in picture.data["text/html"]
    player = outputs(done, "music.audio")[-1]
    assert '<audio controls src="data:audio/wav;base64,UklGR' in player.data["text/html"]
    assert printed(done, "stream.texts()") == "You said: Count from one to ten, please.\n"
    assert "What is a keel?" in outputs(done, "asyncio.gather")[-1].data["text/plain"]
    assert "1001" in printed(done, "width=1001")
    assert printed(done, "retry=0") == "429 rate_limited slower, please\n"


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.name)
def test_it_is_kept_cleared(path: Path) -> None:
    assert leftovers(read(path)) == []


def test_there_are_notebooks_and_what_they_leave_is_found(done: NotebookNode) -> None:
    assert QUICKSTART in NOTEBOOKS
    assert len(leftovers(done)) >= 16
