"""Fixtures and options that all tests share."""

from __future__ import annotations

import gc
import os
import signal
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from polymux._util import redaction
from polymux.models.folder import ModelsFolder
from support.corpus import Corpus

if TYPE_CHECKING:
    from collections.abc import Iterator

_INTEGRATION = Path(__file__).parent / "integration"
RAY = _INTEGRATION / "ray"
DIFFUSION = _INTEGRATION / "engines/diffusion"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--long", action="store_true", help="also run what takes too long for every change"
    )
    parser.addoption("--times", type=int, default=1, help="how often each test is run")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left out unless --long is given")
    # A shell starts background jobs with Ctrl-C ignored, and children inherit that: the tests that
    # interrupt them would wait in vain.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("times")
    if times > 1:
        metafunc.fixturenames.append("_time")
        metafunc.parametrize("_time", range(times))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves the long tests out of the run, so that nothing that is run is ever skipped."""
    # Each of these costs its process many seconds at its first test. pytest-xdist gives the first
    # tests to one process, and moves only the last ones of a process to another.
    items.sort(key=lambda item: not item.path.is_relative_to(RAY))
    items.sort(key=lambda item: not item.path.is_relative_to(DIFFUSION))
    if config.getoption("long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Shows a failure at once: a run that a time limit ends has named its failures."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        last = "\n".join(report.longreprtext.splitlines()[-15:])
        print(f"\nFAILED {report.nodeid}\n{last}", flush=True)


_loaded = 0


@pytest.fixture(autouse=True, scope="module")
def _quick_collections() -> None:
    """No collection of garbage walks what is loaded by now: half a second, with torch."""
    global _loaded
    if len(sys.modules) > _loaded + 100:
        gc.collect()
        gc.freeze()
        _loaded = len(sys.modules)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_ones_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """No test finds the models or the songs of whoever runs it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("POLYMUX_MODELS", str(tmp_path_factory.mktemp("models")))
        patched.setenv("POLYMUX_CATALOGUE", str(tmp_path_factory.mktemp("catalogue") / "none"))
        yield


@pytest.fixture(autouse=True)
def _keys_of_others() -> Iterator[None]:
    """No test meets the keys of one before it: texts hide them, even such as are plain words."""
    before = dict(redaction._SECRETS)
    yield
    redaction._SECRETS.clear()
    redaction._SECRETS.update(before)


@pytest.fixture(scope="session")
def corpus() -> Corpus:
    """Real media files of every kind; fails with a package's name if a program is missing."""
    return Corpus()


@pytest.fixture
def folder(tmp_path: Path) -> ModelsFolder:
    """A folder of models that nobody else has."""
    return ModelsFolder(tmp_path / "models")
