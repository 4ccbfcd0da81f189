from __future__ import annotations

import json
import re
import subprocess
from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from polymux.cli.serve import run_config_check
from polymux.engines.registry import ENGINES
from polymux.errors import InvalidRequestError
from polymux.runtime.build import backends_of
from polymux.runtime.settings import EngineSettings, StoreSettings, missing_files
from polymux.server.app import create_app
from polymux.server.settings.settings import ServerSettings, read_settings


def written(folder: Path, text: str) -> Path:
    path = folder / "polymux.toml"
    path.write_text(text)
    return path


def test_a_file_that_begins_with_the_mark_of_its_order(tmp_path: Path) -> None:
    """Windows editors write a byte order mark."""
    assert read_settings(written(tmp_path, "\ufeffport = 1234\r\n")).port == 1234


COMPAT_PATHS = {"openai": "/v1/models", "replicate": "/replicate/v1/predictions"}


@pytest.mark.parametrize("api", COMPAT_PATHS)
@pytest.mark.parametrize(
    ("text", "there"),
    [
        ("", True),
        ("[compat]\n%s = false\n", False),
        ("host = '0.0.0.0'\n", False),
        ("public_url = 'https://tools.example'\n", False),
        ("public_url = 'https://tools.example'\n[compat]\n%s = true\n", True),
    ],
)
def test_compatible_apis(tmp_path: Path, api: str, text: str, there: bool) -> None:
    """By default these APIs are on only for a local server without `public_url`."""
    settings = read_settings(written(tmp_path, text.replace("%s", api)))
    settings = replace(settings, store=StoreSettings(tmp_path / "s"))
    assert getattr(settings, f"{api}_compat") is there
    paths = {route.path for route in create_app(settings).routes}  # type: ignore[attr-defined]
    assert (COMPAT_PATHS[api] in paths) is there


OPTIONS = [
    ("chat", "contxt = 256", r"contxt\b.*\bcontext\b"),
    ("speech", "beam = 0", r"beam=0\b.*\b1\b"),
    ("rapidocr", "language = 'deu'", "language"),
    ("diffusion", "models = 'a'", "models='a'"),
]


@pytest.mark.parametrize(("family", "line", "pattern"), OPTIONS)
def test_options_of_engines_that_are_none(
    tmp_path: Path, family: str, line: str, pattern: str
) -> None:
    text = f"[engines.own]\nfamily = '{family}'\n[engines.own.options]\n{line}\n"
    with pytest.raises(InvalidRequestError, match=rf"engines\.own\.options\.{pattern}"):
        read_settings(written(tmp_path, text))


def test_options_of_engines(tmp_path: Path) -> None:
    """The documented options, and any option for a custom engine."""
    text = """
    [engines.chat.options]
    model = "~/models/assistant.gguf"
    aliases = ["assistant"]
    context = 4096
    gpu_layers = -1
    device = "auto"
    [engines.diffusion.options]
    tiny_vae = false
    models = { "picture:A" = "sd-turbo" }
    loras = { more = "/models/more.safetensors" }
    [engines.mine]
    family = "own.module:Engine"
    operations = ["chat"]
    [engines.mine.options]
    contxt = 256
    """
    engines = read_settings(written(tmp_path, text)).engines
    assert engines is not None
    assert engines["mine"].options == {"contxt": 256}


@pytest.mark.parametrize(
    ("host", "everywhere"),
    [
        ("0.0.0.0", True), ("0", True), ("0x0", True), ("", True), ("::", True), ("0:0::0", True),
        ("::ffff:0.0.0.0", True), ("127.0.0.1", False), ("127.1", False), ("::1", False),
        ("localhost", False), ("0.example", False), ("b\u00fccher.example", False),
    ],
)  # fmt: skip
def test_listening_everywhere(host: str, *, everywhere: bool) -> None:
    settings = ServerSettings(host=host)
    assert settings.listens_everywhere is everywhere
    if everywhere:
        assert settings.base_url in ("http://127.0.0.1:8000", "http://[::1]:8000")


@pytest.mark.parametrize(
    "host", ["", " ", "http://tools.example", "tools.example/", "a b", "a:b", "*", "a:", "\u00fc"]
)
def test_allowed_hosts_that_are_none(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidRequestError, match="allowed_hosts"):
        read_settings(written(tmp_path, f'allowed_hosts = ["tools.example", "{host}"]\n'))


def test_allowed_hosts(tmp_path: Path) -> None:
    text = 'allowed_hosts = ["Tools.example", "a:8443", "127.0.0.1", "[::1]", "[::1]:8000"]\n'
    hosts = read_settings(written(tmp_path, text)).allowed_hosts
    assert hosts == ("tools.example", "a:8443", "127.0.0.1", "[::1]", "[::1]:8000")


@pytest.mark.parametrize(
    "origin",
    [
        "https://*.site.example", "https://", "https://site.example/", "https://u@site.example",
        "https://site.example:99999", "null", "*", "site.example", "https://b\u00fccher.example",
        "https://[::g]", "http://127.1", "https://site..example", "file:///page.html", "",
    ],
)  # fmt: skip
def test_origins_that_no_browser_sends(tmp_path: Path, origin: str) -> None:
    text = f'allowed_origins = ["https://site.example", "{origin}"]\n'
    with pytest.raises(InvalidRequestError, match="allowed_origins"):
        read_settings(written(tmp_path, text))
    with pytest.raises(InvalidRequestError, match="allowed_origins"):
        ServerSettings(allowed_origins=(origin,))


def test_origins_are_kept_as_browsers_send_them(tmp_path: Path) -> None:
    given = [
        "https://Site.Example", "HTTPS://site.example:443", "http://a:80", "http://a:443",
        "http://127.0.0.1:8080", "http://[::0:1]:3000", "https://xn--bcher-kva.example",
        "tauri://localhost", "Some-Extension://abcdefgh", "app://site:99",
    ]  # fmt: skip
    kept = (
        "https://site.example", "http://a", "http://a:443",
        "http://127.0.0.1:8080", "http://[::1]:3000", "https://xn--bcher-kva.example",
        "tauri://localhost", "some-extension://abcdefgh", "app://site:99",
    )  # fmt: skip
    text = f"allowed_origins = {json.dumps(given)}\n"
    assert read_settings(written(tmp_path, text)).allowed_origins == kept
    assert ServerSettings(allowed_origins=tuple(given)).allowed_origins == kept


def test_files_of_tls_that_are_not_there(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    text = f'tls_cert = "{cert}"\ntls_key = "{key}"\n'
    cert.mkdir()
    with pytest.raises(InvalidRequestError) as refused:
        read_settings(written(tmp_path, text))
    for name, path in {"tls_cert": cert, "tls_key": key}.items():
        assert all(one in str(refused.value) for one in (name, str(path)))
    cert.rmdir()
    for path in (cert, key):
        path.write_text("no certificate")
    with pytest.raises(InvalidRequestError, match="PEM"):
        read_settings(written(tmp_path, text))
    command = "openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=x"
    made = [*command.split(), "-keyout", str(key), "-out", str(cert)]
    subprocess.run(made, check=True, capture_output=True)
    read_settings(written(tmp_path, text))
    monkeypatch.setattr("os.access", lambda path, _: path != key)
    with pytest.raises(InvalidRequestError, match="tls_key"):
        read_settings(written(tmp_path, text))


@pytest.mark.parametrize("host", ["127.0.0.999", "127.0.0.0.1", "", "a b", "-x", "tools/a", "::g"])
def test_hosts_that_nothing_can_listen_on(tmp_path: Path, host: str) -> None:
    with pytest.raises(InvalidRequestError, match="host="):
        read_settings(written(tmp_path, f'host = "{host}"\n'))


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "::1", "localhost", "0", "0x7f000001", "127.1", "fe80::1%eth0", "a_b.lan"]
)
def test_hosts_that_something_may_listen_on(tmp_path: Path, host: str) -> None:
    assert read_settings(written(tmp_path, f'host = "{host}"\n')).host == host


@pytest.mark.parametrize("name", ["event_bytes", "pixels", "json_bytes"])
def test_limits_that_let_nothing_through(tmp_path: Path, name: str) -> None:
    with pytest.raises(InvalidRequestError, match=rf"limits\.{name}=0"):
        read_settings(written(tmp_path, f"[limits]\n{name} = 0\n"))


def test_the_check_looks_for_models(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A server starts without its models and reports them missing when a request needs them."""
    text = "".join(
        f'[engines.{name}]\nfamily = "{name}"\n'
        f'[engines.{name}.options]\nmodel = "{tmp_path}/{name}"\n'
        for name in ("chat", "speech", "upscale")
    )
    settings = read_settings(written(tmp_path, text))
    missing = missing_files(settings.engines or {})
    assert [one.partition("=")[0] for one in missing] == [
        "engines.chat.options.model", "engines.speech.options.model",
        "engines.upscale.options.model",
    ]  # fmt: skip
    path = str(written(tmp_path, text))
    assert run_config_check(Namespace(file=path, quiet=False)) == 0
    assert capsys.readouterr().err.count("options.model") == 3
    assert run_config_check(Namespace(file=path, quiet=True)) == 0
    assert capsys.readouterr() == ("", "")
    for name in ("chat", "speech", "upscale.bin"):
        (tmp_path / name).touch()
    assert missing_files(settings.engines or {}) == []


def test_the_documentation_names_all_options() -> None:
    page = (Path(__file__).parents[3] / "docs/reference/models.md").read_text()
    section = page.partition("## Engine options\n")[2].partition("\n## ")[0]
    diffusion = section.partition("### diffusion\n")[2].partition("\n### ")[0]
    for family in ENGINES:
        (row,) = re.findall(rf"^\| `{family}` \| (.+) \|$", section, re.MULTILINE)
        names = re.findall(r"`(\w+)`", row)
        if family == "diffusion":
            tables = re.findall(r"^\[engines\.diffusion\.options\.(\w+)\]", diffusion, re.MULTILINE)
            head = diffusion.partition("[engines.diffusion.options.models]")[0]
            first = re.findall(r"^\| (`.*?) \|", diffusion, re.MULTILINE)
            names = [*tables, *re.findall(r"^(\w+) = ", head, re.MULTILINE)]
            names += re.findall(r"`(\w+)`", " ".join(first))
            assert set(names) == set(ENGINES[family].options)
        else:
            assert names == list(ENGINES[family].options)


OWN = '[engines.mine]\nfamily = "mine.engines:MyEngine"\n'


def test_an_engine_named_by_module_and_class(tmp_path: Path) -> None:
    text = f'{OWN}operations = ["chat", "generate_image"]\nmax_concurrency = 3\n'
    backend, *_ = backends_of(read_settings(written(tmp_path, text)))
    assert (backend.name, backend.max_concurrency) == ("mine", 3)
    assert backend.operations == {"chat", "generate_image"}
    for more, words in (
        ("", "operations"),
        ('operations = ["juggle"]\n', "'juggle'"),
    ):
        with pytest.raises(InvalidRequestError, match=words):
            read_settings(written(tmp_path, OWN + more))


@pytest.mark.parametrize(("options", "tokens"), [({"context": 1234}, 1234), ({}, 4096)])
def test_a_chat_engine_reads_as_much_as_its_context(
    tmp_path: Path, options: dict[str, Any], tokens: int
) -> None:
    model = tmp_path / "small.gguf"
    model.write_bytes(b"GGUF")
    engines = {"chat": EngineSettings("chat", {"model": str(model), **options})}
    settings = ServerSettings(store=StoreSettings(tmp_path / "s"), engines=engines)
    made = {one.name: one for one in backends_of(settings)}
    assert made["chat"].window_tokens() == tokens
    assert {one.window_tokens() for name, one in made.items() if name != "chat"} <= {None}


def test_settings_of_songs(tmp_path: Path) -> None:
    text = (
        f"[songs]\nindex_dir = '{tmp_path}/music'\nempty_when_unknown = true\n"
        "min_confidence = 0.9\n"
        "[song_recognition]\nproviders = ['shazam']\n[limits]\nsong_bytes = 5\n"
    )
    settings = read_settings(written(tmp_path, text))
    assert settings.songs.index_dir == tmp_path / "music"
    assert settings.songs.empty_when_unknown is True
    assert settings.songs.min_confidence == 0.9
    assert settings.song_recognition.providers == ("shazam",)
    assert settings.limits.song_bytes == 5
