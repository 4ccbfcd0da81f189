"""Rules for the package's own sources: no evaluation, no pickles, no unsafe key comparison."""

from __future__ import annotations

import ast
import re
import tomllib
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2] / "python" / "polymux"
#: Modules whose files can contain programs.
UNSAFE = {"pickle", "cPickle", "dill", "shelve", "marshal", "joblib", "yaml", "xml", "dbm"}
#: Only the core speaks HTTP, with SSRF protection; a second client would bypass it.
CLIENTS = {
    "requests", "httpx", "httpx2", "httpcore", "httpcore2", "aiohttp", "urllib3", "ftplib",
    "telnetlib", "smtplib", "urllib.request", "http.client",
}  # fmt: skip
#: This file may import yt-dlp's HTTP clients, only to limit their redirects.
SETS_REDIRECTS = "downloads/ytdlp.py"
OF_YT_DLP = {"urllib.request", "requests", "requests.sessions"}
#: Files that start programs, never through a shell.
STARTERS = {
    "cli/doctor.py", "cli/record.py", "engines/process/sandbox.py", "engines/process/process.py",
    "engines/ocr/tesseract.py", "models/recommend.py", "models/torch_device.py",
    "models/torch_pickle.py", "models/wheels.py",
}  # fmt: skip
#: Files that create sockets or connections, and the names they use for it.
CONNECTORS = {
    # The clients, to the given server.
    "client/connection.py": {"core.Session"},
    # Untrusted URLs, after validation.
    "fetch/fetcher.py": {"core.fetch", "core.resolve_destination"},
    # Downloads by yt-dlp: validated URLs, and the proxy from the settings.
    "downloads/engine.py": {"urlopen", "YoutubeDL"},
    "downloads/ytdlp.py": {"extract_info", "urlopen"},
    "downloads/upstream_proxy.py": {"open_connection"},
    "downloads/proxy.py": {"open_connection"},
    # Duplicates the listening socket of the chat library in order to close it.
    "engines/chat/engine.py": {"socket.socket"},
    # Between local processes: socket pairs, and the Unix socket for engines' network access.
    "engines/process/child.py": {"socket.socket"},
    "engines/process/egress.py": {"open_unix_connection", "socket.socket"},
    "engines/process/process.py": {"create_connection", "socket.socket", "socket.socketpair"},
    # Machines of the operator's Ray cluster.
    "ray/cluster.py": {"ray.init"},
    "ray/batch_executor.py": {"connect"},
    "ray/deployment.py": {"connect"},
    # Databases, which are files.
    "batches/database.py": {"connect"},
    "batches/manifest.py": {"connect"},
    "service/database.py": {"connect"},
    # Listening sockets.
    "server/run.py": {"socket.getaddrinfo", "socket.socket"},
    "server/http/front.py": {"socket.socket"},
    # Webhooks, after validation, and upstreams and song catalogs from the settings.
    "server/compat/replicate/webhooks.py": {"core.Session"},
    "upstreams/client.py": {"core.Session"},
    "upstreams/song_search/source.py": {"core.Session"},
}
#: Ends of dotted names that open a connection: those above and others.
CONNECTING = set().union(*CONNECTORS.values()) | {
    "create_unix_connection", "create_datagram_endpoint", "sock_connect", "sock_sendto", "connect",
    "connect_ex", "sendto", "sendmsg", "gethostbyname", "create_subprocess_shell", "_core.Session",
    "_core.fetch", "PoolManager", "HTTPConnection", "HTTPSConnection",
}  # fmt: skip
#: Not network connections.
DATABASES = {"sqlite3.connect"}


class Source:
    """Facts about one source file.

    The syntax tree is not kept, because garbage collections would traverse it.
    """

    def __init__(self, text: str) -> None:
        self.calls: list[tuple[str, list[str | None]]] = []
        self.imports: set[str] = set()
        self.attributes: set[str] = set()
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Attribute):
                self.attributes.add(dotted(node))
            elif isinstance(node, ast.Call):
                self.calls.append((dotted(node.func), [one.arg for one in node.keywords]))
            elif isinstance(node, ast.Import):
                self.imports.update(one.name for one in node.names)
            elif isinstance(node, ast.ImportFrom) and node.module is not None and not node.level:
                self.imports.add(node.module)
                self.imports.update(f"{node.module}.{one.name}" for one in node.names)


@cache
def sources() -> dict[str, Source]:
    found = {
        one.relative_to(ROOT).as_posix(): Source(one.read_text()) for one in ROOT.rglob("*.py")
    }
    assert len(found) > 100
    return found


def calls() -> Iterator[tuple[str, str, list[str | None]]]:
    """File, function and keywords of every call."""
    return ((name, *one) for name, source in sources().items() for one in source.calls)


def imports() -> Iterator[tuple[str, str]]:
    """File and module of every import."""
    return ((name, one) for name, source in sources().items() for one in source.imports)


def dotted(node: ast.expr) -> str:
    """A dotted name, without the parts that are not names."""
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def connecting(source: Source) -> set[str]:
    """The names in a source that open a connection."""
    # "connect" is also a timeout's name, so it counts only if called.
    called = {one for one, _ in source.calls}
    named = {one for one in source.attributes if one in called or not one.endswith(".connect")}
    ends = {f".{one}" for one in (named | source.imports) - DATABASES}
    found = {way for way in CONNECTING for one in ends if one.endswith(f".{way}")}
    # Beside core.Session, the type name _core.Session opens nothing.
    return found - ({"_core.Session"} if "core.Session" in found else set())


def test_the_clients_of_yt_dlp_get_a_limit_and_ask_nothing() -> None:
    used = sources()[SETS_REDIRECTS].attributes
    found = {one for one in used if one.startswith(("urllib.request.", "sessions.", "requests."))}
    assert found == {
        "urllib.request.HTTPRedirectHandler",
        "urllib.request.HTTPRedirectHandler.max_redirections",
        "sessions.DEFAULT_REDIRECT_LIMIT",
    }


@pytest.mark.parametrize("forbidden", [UNSAFE, CLIENTS])
def test_what_is_never_imported(forbidden: set[str]) -> None:
    """Files must not run code, and network access has one way out."""
    for name, module in imports():
        parts = module.split(".")
        if name != SETS_REDIRECTS or module not in OF_YT_DLP:
            assert not forbidden & {".".join(parts[:n]) for n in (1, 2)}, (name, module)


def test_no_text_is_run() -> None:
    """No evaluation, no template engine, no shell."""
    for name, module in imports():
        assert module not in ("jinja2", "mako", "string.Template"), name
    for name, function, keywords in calls():
        assert function not in ("eval", "exec", "os.system", "os.popen", "__import__"), name
        assert "shell" not in keywords, (name, function)


def test_programs_are_started_in_few_places() -> None:
    """Each start passes a list of arguments."""
    starting = ("subprocess.", "asyncio.create_subprocess", "os.exec", "os.spawn", "os.posix_spawn")
    found = {name for name, function, _ in calls() if function.startswith(starting)}
    assert found == STARTERS


def test_connections_are_begun_in_few_places() -> None:
    """This covers calls, references and imports, under any name."""
    found = {name: connecting(source) for name, source in sources().items()}
    assert {name: ways for name, ways in found.items() if ways} == CONNECTORS


def test_keys_are_compared_in_one_place() -> None:
    """Links and the proxy compare in constant time; the core compares API keys."""
    found = {name for name, function, _ in calls() if function.endswith("compare_digest")}
    assert found == {"service/signed_urls.py", "downloads/proxy.py"}


def test_nothing_is_decided_by_a_url_that_a_framework_puts_together() -> None:
    """Routing uses the received path. The Host header is only compared with the allowed hosts."""
    for name, source in sources().items():
        assert not name.startswith("server/") or "request.url" not in source.attributes, name


@pytest.mark.parametrize(
    ("text", "way"),
    [
        ("core.Session(x)", "core.Session"),
        ("from polymux._native._core import Session as S", "_core.Session"),
        ("begin = asyncio.open_connection", "open_connection"),
        ("from asyncio import open_connection as begin", "open_connection"),
        ("import socket as s\nfrom socket import socket", "socket.socket"),
        ("self._socket.connect(place)", "connect"),
        ("database = sqlite3.connect(path)", None),
        ("client.reconnect()", None),
    ],
)
def test_ways_to_connect_are_found(text: str, way: str | None) -> None:
    assert connecting(Source(text)) == ({way} if way else set())


def pins(path: Path) -> dict[str, str]:
    """Packages and versions of a file of requirements, with the names as packages spell them."""
    lines = re.findall(r"^([\w.-]+)(?:\[[^]]*\])?==([\w.+!]+)", path.read_text(), re.MULTILINE)
    return {re.sub(r"[-_.]+", "-", name).lower(): version for name, version in lines}


def test_hashes_are_those_of_the_requirements() -> None:
    """Otherwise run scripts/lib/hash-requirements."""
    folder = ROOT.parents[1] / "requirements"
    installed = pins(folder / "test-hashes.txt")
    for name in ("build", "test", "lint", "weights"):
        wanted = pins(folder / f"{name}.txt")
        wanted.pop("torch", None)  # Its builds for CPUs and for CUDA differ.
        assert wanted
        assert wanted.items() <= installed.items()
    settings = tomllib.loads((ROOT.parents[1] / "pyproject.toml").read_text())["project"]
    container = (ROOT.parents[1] / "deploy" / "Containerfile").read_text()
    (extras,) = re.findall(r"^ARG EXTRAS=(\S+)$", container, re.MULTILINE)
    needed = {
        re.match(r"[\w-]+", one)[0].lower()  # type: ignore[index]
        for extra in extras.split(",")
        for one in settings["optional-dependencies"][extra]
    }
    assert needed <= pins(folder / "container-hashes.txt").keys()
