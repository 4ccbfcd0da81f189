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
        "--long", action="store_true", help="also run the tests that take too long for every change"
    )
    parser.addoption("--times", type=int, default=1, help="number of runs of each test")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "long: left out unless --long is given")
    # Background jobs of a shell ignore Ctrl-C and so do their children. Tests that interrupt them
    # would wait forever.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    times = metafunc.config.getoption("times")
    if times > 1:
        metafunc.fixturenames.append("_time")
        metafunc.parametrize("_time", range(times))


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect the long tests unless --long is given. No test is ever skipped."""
    # Each of these costs its process many seconds at its first test. pytest-xdist gives the first
    # tests to one process, and moves only the last ones of a process to another.
    items.sort(key=lambda item: not any(map(item.path.is_relative_to, (RAY, DIFFUSION))))
    if config.getoption("long"):
        return
    long = [item for item in items if item.get_closest_marker("long")]
    config.hook.pytest_deselected(items=long)
    items[:] = [item for item in items if not item.get_closest_marker("long")]


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure immediately, because a time limit may end the run before its summary."""
    if report.failed and "PYTEST_XDIST_WORKER" not in os.environ:
        last = "\n".join(report.longreprtext.splitlines()[-15:])
        print(f"\nFAILED {report.nodeid}\n{last}", flush=True)


_loaded = 0


@pytest.fixture(autouse=True, scope="module")
def _quick_collections() -> None:
    """Freeze the loaded modules: with torch, a garbage collection over them takes 0.5 s."""
    global _loaded
    if len(sys.modules) > _loaded + 100:
        gc.collect()
        gc.freeze()
        _loaded = len(sys.modules)


@pytest.fixture(scope="session", autouse=True)
def _nothing_of_ones_own(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Hide the models, songs and settings of the user who runs the tests."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("POLYMUX_MODELS", str(tmp_path_factory.mktemp("models")))
        patched.setenv("POLYMUX_SONG_INDEX", str(tmp_path_factory.mktemp("index") / "none"))
        patched.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
        yield


@pytest.fixture(autouse=True)
def _keys_of_others() -> Iterator[None]:
    """Forget the keys of earlier tests: messages hide registered keys, even if plain words."""
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
    return ModelsFolder(tmp_path / "models")
