from __future__ import annotations

import gzip
import json
import re
from typing import TYPE_CHECKING

import pytest
from polymux.server.routes.webui import FOLDER, POLICY, page_files
from support.hosted_server import HostedServer
from support.polymux_server import PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Slow networks load the first view within seconds. Other files are loaded when they are needed.
_MAX_FIRST_VIEW_BYTES, _MAX_BYTES = 100_000, 250_000
TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
    ".webmanifest": "application/manifest+json",
}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PolymuxServer]:
    folder = tmp_path_factory.mktemp("server")
    with PolymuxServer(folder / "s", lambda: [Scripted()]) as running:
        yield running


def test_every_file_is_served_and_named_by_another() -> None:
    texts = {path.name: path.read_text("utf-8") for path in FOLDER.iterdir() if path.is_file()}
    assert texts.keys() == page_files().keys()
    for name in texts.keys() - {"index.html"}:
        others = [text for other, text in texts.items() if other != name]
        assert any(re.search(rf"[\"/]{re.escape(name)}\"", text) for text in others), name


@pytest.mark.parametrize("name", sorted(page_files()))
def test_a_file_runs_under_the_policy_and_asks_nobody_else(name: str) -> None:
    text = (FOLDER / name).read_text("utf-8")
    assert "innerHTML" not in text
    assert not re.search(r"\beval\(|new Function|document\.write|insertAdjacentHTML", text)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\son\w+=\"|\sstyle=", text)
    # Behind a reverse proxy with a path prefix, absolute paths would leave the prefix.
    assert not re.search(r"(?:href|src|action): ?\"/|(?:href|src|action)=\"/|url\(", text)
    assert not re.search(r"(?:fetch|ask|open|send|URL|address)\([\"'`]/", text)
    elsewhere = set(re.findall(r"https?://[\w.-]+", text)) - {"http://www.w3.org"}
    assert not elsewhere
    imports = re.findall(r"^import [^;]* from \"([^\"]+)\";$", text, re.MULTILINE)
    assert {one.removeprefix("./") for one in imports} <= page_files().keys()


def test_nobody_needs_a_key_for_it(server: PolymuxServer) -> None:
    for name, file in page_files().items():
        for method in ("GET", "HEAD"):
            answer = server.ask(method, f"/page/{name}", key=None)
            assert answer.status == 200
            assert answer.body == (file.data if method == "GET" else b"")
            kind = TYPES[name[name.rindex(".") :]]
            assert answer.headers["content-type"].startswith(kind)
            assert answer.headers["content-security-policy"] == POLICY
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cache-control"] == "no-cache"
    assert server.ask("GET", "/page/", key=None).body == page_files()["index.html"].data


def test_browsers_get_it_compressed(server: PolymuxServer) -> None:
    accepted = ("accept-encoding", "br, gzip;q=0.8")
    for name, file in page_files().items():
        path = f"/page/{name}"
        answer = server.ask("GET", path, headers=[accepted], key=None)
        assert answer.headers["content-encoding"] == "gzip"
        assert answer.headers["vary"] == "accept-encoding"
        assert gzip.decompress(answer.body) == file.data
        known = ("if-none-match", answer.headers["etag"])
        assert server.ask("GET", path, headers=[accepted, known], key=None).status == 304
        # The plain form is another entity.
        assert server.ask("GET", path, headers=[known], key=None).body == file.data
        # A list, and a tag that a proxy has weakened (RFC 9110, 13.1.2).
        weak = ("if-none-match", f'"other", W/{answer.headers["etag"]}')
        assert server.ask("GET", path, headers=[accepted, weak], key=None).status == 304
    refused = [("accept-encoding", "gzip; q=0, identity")]
    assert "content-encoding" not in server.ask("GET", "/page/", headers=refused, key=None).headers


def test_the_first_view_is_small() -> None:
    first: set[str] = set()
    found = ["index.html"]
    while found:
        name = found.pop()
        first.add(name)
        text = page_files()[name].data.decode()
        pattern = (
            r"(?:href|src)=\"([\w.-]+)\"" if name == "index.html" else r" from \"\./([\w.-]+)\""
        )
        found += {one for one in re.findall(pattern, text) if one not in first}
    assert {"app.js", "texts-en.js", "base.css"} <= first
    assert "texts-de.js" not in first
    sizes = {name: len(file.compressed) for name, file in page_files().items()}
    assert sum(sizes[name] for name in first) <= _MAX_FIRST_VIEW_BYTES
    assert sum(sizes.values()) <= _MAX_BYTES


def test_the_page_names_the_modules_of_the_first_view() -> None:
    """The browser requests them at once. Other views load their modules later."""
    page = page_files()["index.html"].data.decode()
    named = re.findall(r'<link rel="modulepreload" href="([^"]+)">', page)
    assert {"app.js", "dom.js", "playground.js"} <= set(named) <= page_files().keys()
    assert not {"admin.js", "songs.js", "joblist.js"} & set(named)
    for name in named:
        text = page_files()[name].data.decode()
        static = re.findall(r'^import [^;]*"\./([\w.-]+)";$', text, re.MULTILINE)
        assert set(static) <= set(named), name


def test_the_manifest_names_files_of_the_page() -> None:
    manifest = json.loads(page_files()["manifest.webmanifest"].data)
    assert manifest["start_url"] == manifest["scope"] == "./"
    assert {one["src"] for one in manifest["icons"]} <= page_files().keys()


def test_the_policy_is_strict() -> None:
    rules = dict(one.strip().split(" ", 1) for one in POLICY.split(";"))
    assert rules["default-src"] == rules["form-action"] == "'none'"
    assert rules["frame-ancestors"] == rules["base-uri"] == "'none'"
    assert rules["script-src"] == rules["style-src"] == rules["connect-src"] == "'self'"
    assert "unsafe" not in POLICY


@pytest.mark.parametrize("path", ["/", "/page"])
def test_the_way_to_it(server: PolymuxServer, path: str) -> None:
    answer = server.ask("GET", path, key=None)
    assert (answer.status, answer.headers["location"]) == (307, "page/")
    assert server.ask("POST", path, key=None).status == 405


@pytest.mark.parametrize(
    "name", ["nothing.js", "app.py", "..%2fserver%2fapp.py", "%61pp.js", "../server/app.py"]
)
def test_what_is_no_file_of_it(server: PolymuxServer, name: str) -> None:
    answer = server.ask("GET", f"/page/{name}", key=None)
    assert answer.status == 404
    assert answer.json()["code"] == "not_found"


def test_beneath_a_prefix_it_is_the_same_and_the_root_is_not_ours(tmp_path: Path) -> None:
    with HostedServer(tmp_path / "s", lambda: [Scripted()], prefix="/tools") as server:
        assert server.ask("GET", "/tools/page/", key=None).body == page_files()["index.html"].data
        assert server.ask("GET", "/tools/page", key=None).headers["location"] == "page/"
        for path in ("/tools/page/nothing.js", "/", "/tools/"):
            assert server.ask("GET", path, key=None).status == 404
