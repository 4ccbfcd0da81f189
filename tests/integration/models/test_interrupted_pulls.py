"""`polymux models pull` interrupted by a signal or the network: what remains and who can use it."""

from __future__ import annotations

import signal
import subprocess
from typing import TYPE_CHECKING

import pytest
from polymux.errors import AnswerTooLargeError, ConnectionLostError
from polymux.fetch.fetcher import FetchPolicy
from polymux.models import download, registry
from support.commands import MAX_S, Shell
from support.http_server import Server
from support.models import Home, Registry, contents, file, sha256
from support.range_server import RangeServer
from support.repositories import COMMIT, NAME, described, hub, pipeline, safetensors
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from polymux.models.folder import ModelsFolder
    from polymux.models.registry import Model

DATA = b"GGUF" + bytes(range(241)) * 4000
HALF = len(DATA) // 2
WEIGHTS = "unet/diffusion_pytorch_model.safetensors"


class Broken(Home):
    """A registry with one model, whose download stops halfway."""

    def __init__(self, folder: Path, web: Server, there: RangeServer) -> None:
        made = Registry()
        made.model("tiny", "chat", "m.gguf", [file("m.gguf", ("u", "", DATA))])
        made.url("u", web.url("/m.gguf"), "m.gguf", DATA)
        super().__init__(folder / "home", made.write(folder / "registry.toml"))
        self.there = there
        self.pull = ["pull", "tiny", "--yes", "--allow-host", web.authority]

    def wait_for(self, count: int) -> None:
        """Wait until `count` bytes of the file are stored."""
        path = self.models / ".tiny.part" / "unfinished" / sha256(DATA)
        until(lambda: path.is_file() and path.stat().st_size == count, MAX_S)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Broken]:
    there = RangeServer(DATA, stops=[HALF], stalls=True)
    with Server(there) as web:
        yield Broken(tmp_path, web, there)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGKILL, -signal.SIGKILL)]
)
def test_the_end_within_a_file(home: Broken, number: int, code: int) -> None:
    with subprocess.Popen(
        [*home.words, *home.pull], cwd=home.folder, env=home.environment(),
        stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as process:  # fmt: skip
        home.wait_for(HALF)
        process.send_signal(number)
        assert process.wait(MAX_S) == code
    home.wait_for(HALF)
    (one,) = home.json("list")
    assert one["state"] == "begun"
    assert home.run(*home.pull)[0] == f"{home.models / 'tiny'}\n"
    assert [one for one, _ in home.there.asked] == ["", f"bytes={HALF}-"]
    assert home.there.sent == len(DATA)
    kept = contents(home.models)
    assert kept.keys() == {"tiny/m.gguf", "tiny/polymux-model.json"}
    assert kept["tiny/m.gguf"] == DATA


def test_ctrl_c_keeps_it_and_rm_removes_it(home: Broken) -> None:
    with Shell(*home.words, *home.pull, cwd=home.folder) as terminal:
        home.wait_for(HALF)
        terminal.press("\x03")
        assert terminal.end() == 130
    home.wait_for(HALF)
    # The next pull shows the stored bytes at once, without counting them in the speed.
    home.there.stops = [1]
    with Shell(*home.words, *home.pull, cwd=home.folder) as terminal:
        terminal.wait_for(r"50%.*482\.0 kB.*964\.0 kB.*m\.gguf")
        home.wait_for(HALF + 1)
        terminal.press("\x03")
        assert terminal.end() == 130
    home.run("rm", "tiny", "--yes")
    assert contents(home.models) == {}
    home.run(*home.pull)
    assert [one for one, _ in home.there.asked] == ["", f"bytes={HALF}-", ""]


def at_an_address(tmp_path: Path, url: str) -> Model:
    made = Registry()
    made.model("tiny", "chat", "m.gguf", [file("m.gguf", ("u", "", DATA))])
    made.url("u", url, "m.gguf", DATA)
    return registry.read(made.write(tmp_path / "registry.toml"))[0]


def test_the_length_of_the_registry_binds(tmp_path: Path, folder: ModelsFolder) -> None:
    """A file longer than the registry's length is rejected, also when a download is resumed."""
    there = RangeServer(DATA, stops=[HALF])
    with Server(there) as web:
        policy = FetchPolicy(allowed_hosts=(web.authority,))
        model = at_an_address(tmp_path, web.url("/m.gguf"))
        with pytest.raises(ConnectionLostError):
            download.pull(model, folder, policy=policy)
        there.data += b"?"
        with pytest.raises(AnswerTooLargeError):
            download.pull(model, folder, policy=policy)
        there.data = DATA
        download.pull(model, folder, policy=policy)
    assert [one for one, _ in there.asked] == ["", f"bytes={HALF}-", "", f"bytes={HALF}-"]
    assert (folder.path / "tiny" / "m.gguf").read_bytes() == DATA


def test_a_file_of_a_repository(
    tmp_path: Path, folder: ModelsFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every request is redirected to another host, which stores the file."""
    weights = safetensors(a=(300, 500))
    files = pipeline() | {WEIGHTS: weights}
    (tmp_path / "registry.toml").write_text(described())
    model = registry.read(tmp_path / "registry.toml")[0]
    there = RangeServer(weights, stops=[100_000])
    with hub({NAME: files}) as found:
        monkeypatch.setenv("POLYMUX_MODELS_URL", f"{found.url}/")
        found.stored[WEIGHTS] = there
        policy = FetchPolicy(allowed_hosts=(found.storage.removeprefix("http://"),))
        with pytest.raises(ConnectionLostError):
            download.pull(model, folder, policy=policy)
        found.asked.clear()
        made = download.pull(model, folder, policy=policy)
    assert WEIGHTS in found.asked
    assert there.asked == [("", ""), ("bytes=100000-", '"one"')]
    assert there.sent == len(weights)
    assert folder.damage(made) == []
    assert made.manifest.source == f"{NAME} at {COMMIT[:12]}"
