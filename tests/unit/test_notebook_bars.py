from __future__ import annotations

import gc
import sys
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux.batches.results import BatchProgress
from polymux.notebook import progress
from polymux.songs.results import AddProgress

if TYPE_CHECKING:
    from collections.abc import Iterator


def job(status: str) -> polymux.Prediction:
    logs = b'"loading\\n\\nstep 3 of 4\\u001b\\n"'
    body = b'{"status": "%s", "logs": %s, "progress": 0.75}' % (status.encode(), logs)
    return polymux.Prediction.decode(body)


HALF = (polymux.Progress(30.0, 60.0, 5, 1.0),)
REPORTS: dict[str, tuple[tuple[Any, ...], float | None, str]] = {
    "conversion": (HALF, 0.5, "0:30 1:00"),
    "endless conversion": ((polymux.Progress(30.0, None, 5, 1.0),), None, "0:30"),
    "upload": ((500, 1000), 0.5, "500 B 1.0 kB"),
    "upload of a pipe": ((500, None), None, "500 B"),
    "model": (("model.bin", 500, 1000), 0.5, "500 B 1.0 kB"),
    "job": ((job("processing"),), 0.75, "processing step 3 of 4\x1b"),
    "job that is done": ((job("succeeded"),), 1.0, "succeeded step 3 of 4\x1b"),
    "songs": ((AddProgress(None, "added", None, 3, 4, 1.0, 1.0),), 0.75, "3 4"),  # type: ignore[arg-type]
    "batch": ((BatchProgress(2, 1, 4, False, 0, 0, 3, 0, 1.0, 0.0, False),), 0.75, "3 4"),
    "empty batch": ((BatchProgress(0, 0, 0, True, 0, 0, 0, 0, 1.0, 0.0, False),), None, "0"),
}


@pytest.mark.parametrize("name", REPORTS)
def test_it_takes_what_calls_tell(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, fraction, values = REPORTS[name]
    bar = progress("working")
    bar(*arguments)
    assert bar.fraction == fraction
    assert {*values.split(" ")} <= {*bar.note.split(" ")}
    bar.close()
    shown = capsys.readouterr().err
    assert shown.startswith("\rworking")
    assert shown.endswith("\n")
    assert bar.note.replace("\x1b", r"\x1b") in shown
    assert "\x1b" not in shown


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("IPython.get_ipython", lambda: SimpleNamespace(kernel=object()))


@pytest.fixture
def widgets(notebook: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """The tqdm bars made so far."""
    import ipywidgets
    import tqdm.notebook

    made: list[Any] = []

    class Seen(tqdm.notebook.tqdm):  # type: ignore[misc]
        def __init__(self, *args: Any, **options: Any) -> None:
            super().__init__(*args, **options | {"display": False, "mininterval": 0})
            made.append(self)

    monkeypatch.setattr(tqdm.notebook, "tqdm", Seen)
    monkeypatch.setattr(tqdm.notebook.tqdm, "monitor_interval", 0)
    yield made
    assert all(one.disable for one in made)
    # The remaining widgets would refer to destroyed bars.
    made.clear()
    ipywidgets.Widget.close_all()
    gc.collect()


def test_a_notebook_has_a_widget(widgets: list[Any], capsys: pytest.CaptureFixture[str]) -> None:
    import IPython  # noqa: F401 - a notebook has loaded it

    with progress("converting") as bar:
        bar(*HALF)
        bar(500, None)
        assert widgets[0].n == 0.5
    failed = progress("failing")
    failed(job("failed"))
    unknown = progress("left")
    unknown(500, 1000)
    unknown.close()
    assert widgets[2].n == 0.5
    inner = [one.container.children[1] for one in widgets]
    assert inner[0].value == 1.0
    assert [one.bar_style for one in inner] == ["success", "danger", ""]
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("missing", ["ipywidgets", "tqdm.notebook"])
def test_a_notebook_without_widgets_has_a_line(
    notebook: None,
    missing: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setitem(sys.modules, missing, None)
    progress("plain").close()
    assert capsys.readouterr().err.startswith("\rplain")
