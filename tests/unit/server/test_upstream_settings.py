from __future__ import annotations

import re
from dataclasses import fields
from pathlib import Path

import pytest
from polymux.errors import InvalidRequestError
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.build import backends_of
from polymux.runtime.settings import StoreSettings
from polymux.runtime.upstream_settings import UpstreamSettings, upstreams_of
from polymux.server.settings.settings import ServerSettings, read_settings
from polymux.upstreams.replicate.backend import ReplicateUpstream

CANARY = "gsk-canary-0123456789"
BASE = 'kind = "replicate"\nbase_url = "https://api.replicate.example/v1"\n'
ALL = ("generate_image", "upscale_image", "transcribe", "generate_video", "generate_music")
ESRGAN = "nightmareai/real-esrgan"
WHISPER = "turian/insanely-fast-whisper-with-video"
GROQ = 'kind = "openai"\nbase_url = "https://api.example/openai/v1"\n'
SPEECH = '"turian/insanely-fast-whisper-with-video" = "whisper"'


def read(folder: Path, text: str) -> ServerSettings:
    path = folder / "polymux.toml"
    path.write_text(text)
    return read_settings(path)


def test_everything_that_can_be_configured(tmp_path: Path) -> None:
    text = f"""
[upstreams.groq]
{GROQ}key_file = "~/groq.key"
operations = ["chat", "transcribe"]
models = {{ fast = "llama", {SPEECH} }}
max_concurrency = 4
connect_s = 2
first_byte_s = 10
idle_s = 5.5
total_s = 60
event_bytes = 65536
certificates = "ca.pem"
max_tokens = true
response_format = false
transcript_format = "json"
image_fields = ["seed"]

[upstreams.attic]
kind = "polymux"
base_url = "http://attic.example:8000/"
key_environment = "ATTIC_KEY"
models = ["one", "two"]
"""
    found = read(tmp_path, text).upstreams
    groq, attic = found["groq"], found["attic"]
    assert groq.models == {"fast": "llama", "turian/insanely-fast-whisper-with-video": "whisper"}
    assert (groq.max_concurrency, groq.idle_s, groq.max_tokens) == (4, 5.5, True)
    assert (groq.event_bytes, attic.event_bytes) == (65536, 1 << 20)
    assert (groq.response_format, groq.image_fields) == (False, ("seed",))
    assert (groq.transcript_format, attic.transcript_format) == ("json", "verbose_json")
    assert groq.key_file is not None
    assert "~" not in str(groq.key_file)
    assert attic.base_url == "http://attic.example:8000/"
    assert attic.models == {"one": "one", "two": "two"}


def test_what_the_documentation_names_can_be_configured() -> None:
    """The documented table and the settings class have the same names."""
    text = (Path(__file__).parents[3] / "docs/integrations/upstreams.md").read_text()
    table = text.partition("| setting | meaning | default |")[2].partition("\n\n")[0]
    cells = [line.split("|")[1] for line in table.splitlines() if line.startswith("| `")]
    documented = {name for cell in cells for name in re.findall("`([a-z_]+)`", cell)}
    assert documented == {one.name for one in fields(UpstreamSettings)}


@pytest.mark.parametrize(
    ("lines", "pattern"),
    [
        (f'{GROQ}key = "{CANARY}"', r"upstreams\.x\.key\b"),
        (f'{GROQ}api_key = "{CANARY}"', "key_environment"),
        (f'{GROQ}key_environment = "{CANARY}"', "key_environment"),
        (f"{GROQ}event_bytes = 0", "event_bytes=0.*1024.*1073741824"),
        (f'{GROQ}{CANARY} = "x"', CANARY),
        (f'kind = "openai"\nbase_url = "https://me:{CANARY}@api.example"', "base_url"),
        ('kind = "openai"', "base_url"),
        ('kind = "telnet"\nbase_url = "http://a.example"', "openai, polymux"),
        ('kind = "openai"\nbase_url = "ftp://a.example"', "base_url"),
        (f"{GROQ}operations = ['convert_to_mp3']", "'convert_to_mp3'"),
        (f"{GROQ}operations = ['transcribe']", "models.*transcribe"),
        (f"{GROQ}models = {{ {SPEECH}, 'bytedance/sdxl-lightning-4step' = 'x' }}\n"
         "operations = ['chat']", "models.*chat"),
        (f"{GROQ}models = 'one'", "models='one'"),
        (f"{GROQ}transcript_format = 'text'", "verbose_json, json"),
        (f"{GROQ}key_file = 'a'\nkey_environment = 'B'", "key_file.*key_environment"),
        (f"{BASE}operations = ['chat']", "'chat'"),
        (f"{BASE}models = ['{ESRGAN}']\noperations = ['transcribe']", "models.*transcribe"),
        (f"{BASE}models = ['me/mine']", "'me/mine'.*bytedance/"),
        (f"{BASE}models = {{ '{ESRGAN}' = 'enlarger' }}", "'enlarger'"),
        (f"{BASE}models = {{ '{ESRGAN}' = 'me/e:latest' }}", "owner/name:version"),
    ],
)  # fmt: skip
def test_what_is_wrong(tmp_path: Path, lines: str, pattern: str) -> None:
    with pytest.raises(InvalidRequestError, match=pattern) as wrong:
        read(tmp_path, f"[upstreams.x]\n{lines}\n")
    assert CANARY not in str(wrong.value) or pattern == CANARY


def test_upstreams_that_are_no_tables(tmp_path: Path) -> None:
    with pytest.raises(InvalidRequestError, match=r"upstreams\.x\b"):
        read(tmp_path, "[upstreams]\nx = 1\n")
    with pytest.raises(InvalidRequestError, match="upstreams"):
        read(tmp_path, "upstreams = 1\n")


def made(folder: Path, **upstreams: UpstreamSettings) -> list[str]:
    settings = ServerSettings(store=StoreSettings(folder), engines={}, upstreams=upstreams)
    return [one.name for one in backends_of(settings) if one.name in upstreams]


def test_keys_are_read_from_where_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "key"
    path.write_text(f"{CANARY}\n")
    file = UpstreamSettings("openai", "http://a.example", key_file=path)
    variable = UpstreamSettings("openai", "http://a.example", key_environment="GROQ_KEY")
    monkeypatch.setenv("GROQ_KEY", CANARY)
    assert file.key("x") == variable.key("x") == CANARY
    assert UpstreamSettings("openai", "http://a.example").key("x") is None
    assert made(tmp_path, b=file, a=variable) == ["b", "a"]


@pytest.mark.parametrize(
    "content", [None, b"\n", f"{CANARY} two".encode(), CANARY.encode("utf-16")]
)
def test_keys_that_are_none(tmp_path: Path, content: bytes | None) -> None:
    path = tmp_path / "key"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidRequestError, match=r"upstreams\.groq\.key_file") as wrong:
        made(tmp_path, groq=UpstreamSettings("openai", "http://a.example", key_file=path))
    assert CANARY not in str(wrong.value)
    with pytest.raises(InvalidRequestError, match=r"upstreams\.x\.key_environment"):
        made(tmp_path, x=UpstreamSettings("openai", "http://a.example", key_environment="NO_KEY"))


def test_names_are_those_of_nobody_else(tmp_path: Path) -> None:
    from polymux.runtime.settings import EngineSettings

    upstreams = {"media": UpstreamSettings("openai", "http://a.example")}
    settings = ServerSettings(
        store=StoreSettings(tmp_path), engines={"media": EngineSettings("media")},
        upstreams=upstreams,
    )  # fmt: skip
    with pytest.raises(InvalidRequestError, match=r"upstreams\.media"):
        backends_of(settings)


def read_one(folder: Path, lines: str) -> UpstreamSettings:
    return read(folder, f"[upstreams.x]\n{BASE}{lines}\n").upstreams["x"]


@pytest.mark.parametrize(
    ("lines", "does"),
    [
        ("", ALL),
        ("operations = ['transcribe']", ("transcribe",)),
        (f"models = {{ '{ESRGAN}' = 'me/enlarger:0123456789ab' }}", ("upscale_image",)),
        (f"models = ['{WHISPER}', '{ESRGAN}']", ("upscale_image", "transcribe")),
        (f"models = ['{WHISPER}', '{ESRGAN}']\noperations = ['transcribe']", ("transcribe",)),
    ],
)
def test_what_it_does(tmp_path: Path, lines: str, does: tuple[str, ...]) -> None:
    one = read_one(tmp_path, lines)
    assert one.does == does
    [backend] = upstreams_of({"x": one}, FetchPolicy(), ())
    assert isinstance(backend, ReplicateUpstream)
    assert backend.operations == frozenset(does)
