"""What deploy/ holds: a proxy, a unit, a container file, settings; and backups of a store."""

from __future__ import annotations

import json
import os
import re
import shutil
import socket
import ssl
import subprocess
import sys
import tomllib
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import kubernetes_validate
import polymux
import pytest
import yaml
from polymux.service.store import Store
from servers.certificates import Authority
from support import programs
from support.commands import call
from support.native_build import ROOT
from support.polymux_server import PolymuxServer
from support.server_process import ServerProcess, until
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DEPLOY = ROOT / "deploy"
WORD = {"choices": [{"index": 0, "delta": {"content": "word"}, "finish_reason": None}]}


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def as_here(text: str, server: PolymuxServer, certificate: Any, ports: tuple[int, int]) -> str:
    """The proxy's file with the addresses, the name and the certificate of this test."""
    text = re.sub(r"\n *listen \[::\][^;]*;", "", text)
    text = text.replace("listen 80;", f"listen 127.0.0.1:{ports[0]};")
    text = text.replace("listen 443 ", f"listen 127.0.0.1:{ports[1]} ")
    text = text.replace("127.0.0.1:8000", f"127.0.0.1:{server.state.settings.port}")
    text = text.replace("/etc/ssl/tools.example/fullchain.pem", os.fspath(certificate.chain))
    text = text.replace("/etc/ssl/tools.example/privkey.pem", os.fspath(certificate.key))
    return text.replace("tools.example", "localhost")


class Proxy:
    """nginx with deploy/nginx.conf, in front of a server whose every step the test decides."""

    def __init__(self, folder: Path) -> None:
        self.authority = Authority(folder)
        self.backend: Scripted
        self.ports = (free_port(), free_port())
        self.folder = folder

    def make(self) -> list[Scripted]:
        self.backend = Scripted(max_concurrency=4)
        return [self.backend]

    @contextmanager
    def running(self) -> Iterator[Proxy]:
        program = programs.find("nginx")
        given = {"public_url": "https://localhost", "allowed_hosts": ("localhost",)}
        with PolymuxServer(self.folder / "store", self.make, **given) as self.server:
            site = as_here(
                (DEPLOY / "nginx.conf").read_text(),
                self.server,
                self.authority.certificate(),
                self.ports,
            )
            user = "user root;\n" if os.geteuid() == 0 else ""
            (self.folder / "nginx.conf").write_text(
                f"{user}daemon off;\npid {self.folder}/pid;\nerror_log stderr;\nevents {{}}\n"
                f"http {{\naccess_log off;\nclient_body_temp_path {self.folder}/bodies;\n"
                f"proxy_temp_path {self.folder}/answers;\n{site}}}\n"
            )
            command = [program, "-p", self.folder, "-e", "stderr", "-c", self.folder / "nginx.conf"]
            checked = subprocess.run([*command, "-t"], capture_output=True, text=True, check=False)
            assert checked.returncode == 0, checked.stderr
            assert "[warn]" not in checked.stderr
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                try:
                    until(lambda: process.poll() is not None or self.listens(), 20)
                    yield self
                finally:
                    process.terminate()
                    process.wait(20)

    def listens(self) -> bool:
        with socket.socket() as one:
            return one.connect_ex(("127.0.0.1", self.ports[1])) == 0

    def client(self) -> polymux.Client:
        return polymux.Client(
            f"https://localhost:{self.ports[1]}",
            self.server.key,
            verify=os.fspath(self.authority.ca),
            retry=0,
            timeout=60,
        )

    def open(self) -> ssl.SSLSocket:
        context = ssl.create_default_context(cafile=os.fspath(self.authority.ca))
        plain = socket.create_connection(("127.0.0.1", self.ports[1]), 20)
        return context.wrap_socket(plain, server_hostname="localhost")

    def on_loop(self, what: Any) -> None:
        self.server.loop.call_soon_threadsafe(what)


@pytest.fixture(scope="module")
def proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Proxy]:
    with Proxy(tmp_path_factory.mktemp("proxy")).running() as made:
        yield made


def test_streams_come_piece_by_piece(proxy: Proxy) -> None:
    """The first piece is here while the server has not made the end; who leaves ends the work."""
    proxy.backend.chunks = [WORD]
    for leaves in (True, False):
        proxy.backend.ended.clear()
        proxy.on_loop(proxy.backend.gate.clear)
        try:
            with proxy.client() as client, client.chat("Hello", stream=True) as stream:
                assert next(stream).content == "word"
                assert proxy.backend.ended == []
                if not leaves:
                    proxy.on_loop(proxy.backend.gate.set)
                    assert [chunk.content for chunk in stream] == []
                    assert stream.finished
            until(lambda: proxy.backend.ended, 20)
        finally:
            proxy.on_loop(proxy.backend.gate.set)


def test_a_body_larger_than_nginx_takes_by_default(proxy: Proxy) -> None:
    with proxy.client() as client:
        made = client.convert_to_mp3(bytes(3 << 20))
    assert made.url is not None
    assert made.url.startswith("https://localhost/media/")


def test_http_leads_to_https_and_other_names_nowhere(proxy: Proxy) -> None:
    with socket.create_connection(("127.0.0.1", proxy.ports[0]), 20) as connection:
        connection.sendall(b"GET /a?b HTTP/1.1\r\nHost: localhost\r\n\r\n")
        answer = connection.recv(4096)
    assert answer.startswith(b"HTTP/1.1 301 ")
    assert b"Location: https://localhost/a?b\r\n" in answer
    with proxy.open() as connection:
        connection.sendall(b"GET /healthz HTTP/1.1\r\nHost: other.example\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 421 ")


def test_the_unit_is_understood_and_takes_rights_away(tmp_path: Path) -> None:
    """systemd reads it without a word; only the program's place is another here."""
    text = (DEPLOY / "polymux.service").read_text()
    unit = tmp_path / "polymux.service"
    unit.write_text(text.replace("/opt/polymux/bin/polymux", shutil.which("true") or ""))
    program = programs.find("systemd-analyze")
    done = subprocess.run(
        [program, "verify", unit], capture_output=True, text=True, check=False, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")
    scored = subprocess.run(
        [program, "security", "--offline=true", "--threshold=30", "--no-pager", unit],
        capture_output=True, text=True, check=False, timeout=60,
    )  # fmt: skip
    assert scored.returncode == 0, scored.stdout
    assert "exposure level for polymux.service: 2.2 OK" in scored.stdout


def test_settings_of_the_page_are_those_of_the_file(tmp_path: Path) -> None:
    text = (DEPLOY / "polymux.toml").read_text()
    shown = (ROOT / "docs/deploy/systemd.md").read_text()
    assert re.sub(r"^#.*\n", "", text, flags=re.MULTILINE) in shown
    call("config", "check", DEPLOY / "polymux.toml", cwd=tmp_path)


def instructions(text: str) -> list[tuple[str, str]]:
    """Name and rest of each, lines that go on joined."""
    lines = [line for line in text.splitlines() if not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    return [
        (name, rest)
        for name, _, rest in (line.partition(" ") for line in joined.split("\n"))
        if name
    ]


@pytest.mark.parametrize("name", ["Containerfile", "Containerfile.cuda"])
def test_a_container_file(name: str) -> None:
    """It is not built here: scripts/check-container does that."""
    steps = instructions((DEPLOY / name).read_text())
    # A build chooses the base image, with its architecture and digest.
    assert steps[0][0] == "ARG"
    assert steps[0][1].startswith("BASE=")
    named = dict(steps)
    assert named["USER"].isdigit()
    assert int(named["USER"]) > 0
    for step, rest in steps:
        if step == "FROM":
            assert re.match(r"\$\{BASE\}( AS \w+)?$", rest), rest
        if step == "COPY" and not rest.startswith(("--from=", "dist/")):
            assert all((ROOT / one).exists() for one in rest.split()[:-1]), rest
        if "apt-get install" in rest:
            assert {"-y", "--no-install-recommends", "update"} <= {*rest.split()}
            assert "rm -rf /var/lib/apt/lists/*" in rest
        for command in re.findall(r"pip install [^&]*", rest):
            assert "--no-cache-dir" in command
            assert "--require-hashes" in command or "--no-index" in command


def test_the_command_of_the_container() -> None:
    steps = dict(instructions((DEPLOY / "Containerfile").read_text()))
    assert json.loads(steps["CMD"])[:2] == ["serve", "--config"]
    # Not by a shell, which would get the signals.
    assert isinstance(json.loads(steps["ENTRYPOINT"]), list)
    assert isinstance(json.loads(steps["HEALTHCHECK"].partition("CMD ")[2]), list)


def test_the_kubernetes_manifests(tmp_path: Path) -> None:
    """The settings are valid, and the patch for a GPU gives a valid Deployment."""
    documents = [*yaml.safe_load_all((DEPLOY / "kubernetes.yaml").read_text())]
    by_kind = {one["kind"]: one for one in documents}
    settings = tmp_path / "polymux.toml"
    settings.write_text(by_kind["ConfigMap"]["data"]["polymux.toml"])
    call("config", "check", settings, cwd=tmp_path)

    # Kubernetes otherwise changes the modes of the key file.
    pods = [*documents, *yaml.safe_load_all((DEPLOY / "kubernetes-key.yaml").read_text())]
    contexts = [
        one["spec"]["template"]["spec"]["securityContext"]
        for one in pods
        if "template" in one.get("spec", {})
    ]
    assert [one["fsGroupChangePolicy"] for one in contexts] == ["OnRootMismatch"] * 2

    deployment = by_kind["Deployment"]
    pod = deployment["spec"]["template"]["spec"]
    (container,) = pod["containers"]
    grace_s = tomllib.loads(settings.read_text())["shutdown_timeout_s"]
    assert pod["terminationGracePeriodSeconds"] > grace_s
    assert {one["name"] for one in container["volumeMounts"]} == {
        one["name"] for one in pod["volumes"]
    }
    patch = yaml.safe_load((DEPLOY / "kubernetes-gpu.yaml").read_text())["spec"]["template"]["spec"]
    (changes,) = patch.pop("containers")
    pod |= patch
    assert changes["name"] == container["name"]
    for name, amounts in changes.pop("resources").items():
        container["resources"][name] |= amounts
    container |= changes
    kubernetes_validate.validate(deployment, "1.37", strict=True)


def test_the_health_check_of_the_container(tmp_path: Path) -> None:
    """With the settings of the image, whose only allowed host is that of the proxy."""
    steps = dict(instructions((DEPLOY / "Containerfile").read_text()))
    _, option, code = json.loads(steps["HEALTHCHECK"].partition("CMD ")[2])
    hosts = tomllib.loads((DEPLOY / "polymux.toml").read_text())["allowed_hosts"]

    def check(port: int, path: str = "/healthz") -> int:
        words = code.replace("8000", str(port)).replace("/healthz", path)
        command = [sys.executable, option, words]
        return subprocess.run(command, check=False, capture_output=True).returncode

    with PolymuxServer(tmp_path / "s", lambda: [Scripted()], allowed_hosts=tuple(hosts)) as server:
        port = server.state.settings.port
        assert check(port) == 0
        assert check(port, "/refused-with-421") == 1
    assert check(port) == 1


def test_a_copy_of_a_store_at_work_is_whole(tmp_path: Path) -> None:
    """As docs/deploy/backup-and-upgrade.md says: the database by SQLite, then the files."""
    page = (ROOT / "docs/deploy/backup-and-upgrade.md").read_text()
    (code,) = re.findall(r"```python\n(.*?)store = ", page, re.DOTALL)
    names: dict[str, Any] = {}
    exec(code, names)
    live, copy = tmp_path / "live", tmp_path / "copy"
    sound = tmp_path / "a.wav"
    programs.ffmpeg("-f", "lavfi", "-i", "sine=duration=1", sound)
    with ServerProcess(live) as server, polymux.Client(server.url, server.key) as client:
        first = client.convert_to_mp3(sound)
        (job,) = client.predictions.list()
        copy.mkdir(mode=0o700)
        names["copy_database"](live / "store/catalogue.db", copy / "catalogue.db")
        client.convert_to_mp3(sound)
        for name in ("keys.json", "link-secrets"):
            shutil.copy2(live / "store" / name, copy / name)
        shutil.copytree(live / "store/media", copy / "media")
        data = first.read()
    store = Store(copy)
    try:
        store.sweep()
        (file,) = store.media.of_job(job.id)
        assert store.media.path_of(file).read_bytes() == data
        # What was made behind the copy of the database belongs to nobody, and is gone.
        assert len([one for one in (copy / "media").rglob("*") if one.is_file()]) == 1
    finally:
        store.close()
