"""`[upstreams.NAME]` of kind replicate: what it does without a word, and what is wrong."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from polymux.cli import main
from polymux.downloads.url_inputs import AddressedBackend, UrlFetcher
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.upstream_settings import UpstreamSettings, upstreams_of
from polymux.server.settings.settings import read_settings
from polymux.upstreams.replicate.backend import ReplicateUpstream

if TYPE_CHECKING:
    from pathlib import Path

BASE = 'kind = "replicate"\nbase_url = "https://api.replicate.example/v1"\n'
ALL = ("generate_image", "upscale_image", "transcribe", "generate_video", "generate_music")
SPEECH = "turian/insanely-fast-whisper-with-video"
ESRGAN = "nightmareai/real-esrgan"


def read(folder: Path, lines: str) -> UpstreamSettings:
    path = folder / "polymux.toml"
    path.write_text(f"[upstreams.x]\n{BASE}{lines}\n")
    return read_settings(path).upstreams["x"]


@pytest.mark.parametrize(
    ("lines", "does"),
    [
        ("", ALL),
        ("operations = ['transcribe']", ("transcribe",)),
        (f"models = {{ '{ESRGAN}' = 'me/enlarger:0123456789ab' }}", ("upscale_image",)),
        (f"models = ['{SPEECH}', '{ESRGAN}']", ("upscale_image", "transcribe")),
        (f"models = ['{SPEECH}', '{ESRGAN}']\noperations = ['transcribe']", ("transcribe",)),
    ],
)
def test_what_it_does(tmp_path: Path, lines: str, does: tuple[str, ...]) -> None:
    """As it is told, and as the backend has it."""
    one = read(tmp_path, lines)
    assert one.does == does
    [backend] = upstreams_of({"x": one}, FetchPolicy(), ())
    assert isinstance(backend, ReplicateUpstream)
    assert backend.operations == frozenset(does)


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ("operations = ['chat']", "'chat' is not supported by this kind"),
        (f"models = ['{ESRGAN}']\noperations = ['transcribe']", "models: none for transcr"),
        ("models = ['me/mine']", "models: 'me/mine' is no model selector; there are bytedance/"),
        (f"models = {{ '{ESRGAN}' = 'enlarger' }}", "models: 'enlarger' is no model of Replicate"),
        (f"models = {{ '{ESRGAN}' = 'me/e:latest' }}", "owner/name:version"),
    ],
)
def test_what_is_wrong(tmp_path: Path, lines: str, told: str) -> None:
    with pytest.raises(InvalidRequestError) as wrong:
        read(tmp_path, lines)
    assert told in str(wrong.value)


def test_the_doctor_tells_of_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "polymux.toml"
    path.write_text(f"[upstreams.x]\n{BASE}operations = ['transcribe']\n")
    main(["doctor", "--config", str(path)])
    told = capsys.readouterr().out
    assert "ok       the upstream x (replicate, without a key): transcribe" in told


def test_recordings_at_addresses(tmp_path: Path) -> None:
    """It takes them where there is who brings them, if it transcribes at all."""
    url_fetcher = UrlFetcher(FetchPolicy(), 1)
    for lines, kind in (("", AddressedBackend), (f"models = ['{ESRGAN}']", ReplicateUpstream)):
        [backend] = upstreams_of({"x": read(tmp_path, lines)}, FetchPolicy(), (), url_fetcher)
        assert type(backend) is kind
        assert backend.is_upstream
