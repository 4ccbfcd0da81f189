"""The tour's server: its models, settings and process, and a web site."""

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
from demo_media import ROOT, Media
from polymux.models.folder import ModelsFolder, packaged_models
from polymux.models.selection import available
from support.video_site import Site

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.http_server import Server

#: Family to a small model that is downloaded if the family has no model.
LIGHT_MODELS = {
    "chat": "smollm2-135m-instruct",
    "speech": "whisper-base",
    "upscale": "realesr-animevideov3-x2",
}
#: Folder of the tour that Python searches for packages.
_SITE = "site"
_READY_WITHIN_S = 60
_STOPS_WITHIN_S = 30
# The site returns its video for every search.
_SETTINGS = """[store]
folder = {store}

[songs]
index_dir = {index_dir}

[fetch]
allowed_hosts = [{site}]

[download]
music_search = {search}

[summaries]
words = 40
"""


class DemoError(Exception):
    """A requirement of the tour is missing, or a result is wrong."""


class DemoServer:
    """A running polymux server.

    Attributes:
        url: Its URL, also that of the web UI.
        key_file: The file with its key for this account.
        song_index: The folder of its song index.
        site: The web site from which it may download videos.
    """

    def __init__(self, folder: Path, site: "Server", models: Path) -> None:
        self.site = site
        self.song_index = folder / "songs"
        self.key_file = folder / "state/polymux/local-key"
        self._log = folder / "server.log"
        settings = folder / "polymux.toml"
        # JSON strings are valid TOML strings.
        values = {
            "store": str(folder / "store"),
            "index_dir": str(self.song_index),
            "site": site.authority,
            "search": site.url("/find/{query}"),
        }
        settings.write_text(
            _SETTINGS.format(**{name: json.dumps(one) for name, one in values.items()})
        )
        _link_small_models(folder)
        words = [sys.executable, "-m", "polymux", "serve", "--config", str(settings), "--port", "0"]
        # In a separate session, Ctrl-C does not reach the server: this program stops it at the end.
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                words,
                stdout=log,
                stderr=log,
                env=_environment(folder, models),
                start_new_session=True,
            )
        try:
            self.url = self._address()
        except BaseException:
            self.stop()
            raise

    def _address(self) -> str:
        until = time.monotonic() + _READY_WITHIN_S
        while time.monotonic() < until and self._process.poll() is None:
            for word in self._log.read_text().replace(";", " ").split():
                if word.startswith("http://127.0.0.1:"):
                    return word
            time.sleep(0.05)
        raise DemoError(f"the server did not start:\n{self._log.read_text()}")

    def client(self) -> polymux.Client:
        key = self.key_file.read_text("ascii").split()[0]
        return polymux.Client(self.url, key, timeout=600)

    def wait(self) -> None:
        """Wait until the server ends."""
        self._process.wait()

    def stop(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(_STOPS_WITHIN_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


def models_folder(folder: Path) -> Path:
    """The folder of the tour's models: ``POLYMUX_MODELS``, or a folder of the tour."""
    named = os.environ.get("POLYMUX_MODELS")
    return Path(named).absolute() if named else folder / "models"


def fetch_models(models: Path) -> list[str]:
    """Download small models for the families without a model; return their names."""
    there = available(ModelsFolder(models))
    missing = [name for family, name in LIGHT_MODELS.items() if family not in there]
    if missing:
        command = [sys.executable, "-m", "polymux", "models", "pull", "--yes", *missing]
        pulled = subprocess.run(command, env=_environment(ROOT, models), check=False)
        if pulled.returncode != 0:
            raise DemoError(
                f"cannot download models: 'polymux models pull' returned {pulled.returncode}"
            )
    return missing


def _link_small_models(folder: Path) -> None:
    """Provide the small models of this repository, unless their distribution is installed."""
    link = folder / _SITE / "polymux_mini_models"
    if packaged_models() is None and not link.exists():
        link.parent.mkdir(parents=True, exist_ok=True)
        link.symlink_to(ROOT / "models")


def _environment(folder: Path, models: Path) -> dict[str, str]:
    """The environment without the user's polymux settings; state is kept in `folder`."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("POLYMUX_")}
    places = [str(folder / _SITE), *filter(None, [kept.get("PYTHONPATH")])]
    own = {"POLYMUX_MODELS": str(models), "XDG_STATE_HOME": str(folder / "state")}
    return kept | own | {"PYTHONPATH": os.pathsep.join(places)}


@contextmanager
def served(folder: Path, media: Media, models: Path) -> "Iterator[DemoServer]":
    """A server and a site with the tour's video. Both stop at the end of the block."""
    site = Site(media.site)
    site.found = media.video.name
    with site.server() as running:
        server = DemoServer(folder, running, models)
        try:
            yield server
        finally:
            server.stop()
