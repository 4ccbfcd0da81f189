"""`polymux serve` in a separate process: reloads, log lines and TLS."""

from __future__ import annotations

import http.client
import json
import re
import signal
import ssl
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest
from servers.certificates import Authority
from support import commands
from support.serve_command import ServeCommand
from support.server_process import until

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_AGAIN = " INFO polymux.server: "
STAYED = " ERROR polymux.server: "
OPERATIONS = "/api/v1/operations"
PREDICTIONS = "/api/v1/predictions"
PAGE = ("Origin", "https://site.example")
OTHER_PAGE = ("Origin", "https://other.example")
NAMED = ("Host", "tools.example")


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServeCommand]:
    """A running server with a long idle timeout."""
    folder = tmp_path_factory.mktemp("program")
    with ServeCommand(folder, "[limits]\nkeep_alive_s = 120\n") as running:
        yield running.start()
        assert running.stop() == 0


def read_again(program: ServeCommand, settings: str, message: str = READ_AGAIN) -> None:
    """Reload the settings and wait until the server logs the result."""
    before = program.log_text.count(message)
    program.settings.write_text(settings)
    program.signal(signal.SIGHUP)
    until(lambda: program.log_text.count(message) > before, 60)


def test_sighup_changes_who_may_ask(program: ServeCommand) -> None:
    """Hosts and origins change and change back. The process and its open connections remain."""
    plain, pid = program.settings.read_text(), program.pid

    def statuses() -> list[int]:
        asked = [(), (PAGE,), (OTHER_PAGE,), (NAMED,)]
        return [program.request("GET", OPERATIONS, headers=one).status for one in asked]

    with closing(http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)) as open_one:
        own = {"Authorization": f"Bearer {program.key}"}
        open_one.request("GET", OPERATIONS, headers=own)
        assert open_one.getresponse().read()
        socket = open_one.sock
        assert statuses() == [200, 403, 403, 421]
        hosts = 'allowed_hosts = ["tools.example", "127.0.0.1"]\n'
        read_again(program, f'allowed_origins = ["{PAGE[1]}"]\n{hosts}{plain}')
        assert statuses() == [200, 200, 403, 200]
        answer = program.request("GET", OPERATIONS, headers=[PAGE])
        assert answer.headers["access-control-allow-origin"] == PAGE[1]
        # If the settings are invalid, the old ones stay in effect.
        read_again(program, f"nonsense = 1\n{plain}", STAYED)
        assert "nonsense" in program.log_text
        assert statuses() == [200, 200, 403, 200]
        read_again(program, f'allowed_origins = ["{OTHER_PAGE[1]}"]\n{plain}')
        assert statuses() == [200, 403, 200, 421]
        open_one.request("GET", OPERATIONS, headers=own | dict([OTHER_PAGE]))
        assert open_one.getresponse().read()
        assert open_one.sock is socket
    assert program.pid == pid
    read_again(program, plain)
    assert statuses() == [200, 403, 403, 421]


def test_a_reload_before_it_serves(tmp_path: Path) -> None:
    """SIGHUP during startup does not end the server and is not lost: the file may have changed."""
    program = ServeCommand(tmp_path)
    program.start(ready=False)
    with program:
        handled = f"/proc/{program.process.pid}/status"  # type: ignore[union-attr]
        until(lambda: int(_caught(handled), 16) >> (signal.SIGHUP - 1) & 1, 60)
        program.signal(signal.SIGHUP)
        until(lambda: READ_AGAIN in program.log_text, 60)
        until(lambda: program.url, 60)
        assert program.request("GET", OPERATIONS).status == 200


def _caught(path: str) -> str:
    """The mask of signals that a process handles (SigCgt in proc(5))."""
    (line,) = (one for one in Path(path).read_text().splitlines() if one.startswith("SigCgt"))
    return line.split()[1]


def test_each_line_has_the_id_that_its_answer_has(program: ServeCommand) -> None:
    """One line per request with the status and the key's ID, but never the key."""
    mine = [("X-Request-ID", "mine-1")]
    asked = [
        ("GET", program.request("GET", OPERATIONS), OPERATIONS),
        ("GET", program.request("GET", OPERATIONS, headers=mine), OPERATIONS),
        ("GET", program.request("GET", OPERATIONS, key="pmx_wrong"), OPERATIONS),
        ("GET", program.request("GET", "/nowhere"), "/nowhere"),
        ("DELETE", program.request("DELETE", OPERATIONS), OPERATIONS),
        ("POST", program.request("POST", "/api/v1/convert2mp3", b"{"), "/api/v1/convert2mp3"),
    ]
    assert [answer.status for _, answer, _ in asked] == [200, 200, 401, 404, 405, 415]
    assert asked[1][1].headers["x-request-id"] == "mine-1"
    ids = [answer.headers["x-request-id"] for _, answer, _ in asked]
    assert len(set(ids)) == len(ids)
    until(lambda: all(f"id={one}" in program.log_text for one in ids), 60)
    for (method, answer, path), name in zip(asked, ids, strict=True):
        (line,) = (one for one in program.log if one.endswith(f"id={name}"))
        regex = rf".* INFO polymux\.access: {method} {path} {answer.status} [\d.]+ ms key=(\S+) id="
        found = re.match(regex, line)
        assert found, line
        knows = answer.status in (200, 415)
        assert re.fullmatch(r"[0-9a-f]{8}", found[1]) if knows else found[1] == "-"
        if answer.status != 200:
            assert answer.json()["request_id"] == name
    assert program.key not in program.log_text


def test_tls_and_a_log_of_json(tmp_path: Path) -> None:
    """The URL and links use https, and every log line is a JSON object.

    Plain HTTP gets no response. Log lines have request fields, and failures have their location.
    """
    made = commands.call("keys", "add", "website", "--data-dir", tmp_path / "s", cwd=tmp_path)
    key = made.stdout.decode().strip()
    authority = Authority(tmp_path)
    good = authority.certificate()
    with ServeCommand(tmp_path) as program:
        words = ("--tls-cert", good.chain, "--tls-key", good.key, "--data-dir", tmp_path / "s")
        program.start(arguments=["--log-format", "json", *(str(one) for one in words)])
        assert program.url.startswith("https://127.0.0.1:")
        with polymux.Client(program.url, key, verify=authority.ca, retry=0) as client:
            assert list(client.predictions.list()) == []
        plain = http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)
        with closing(plain):
            plain.request("GET", "/healthz")
            with pytest.raises((http.client.HTTPException, OSError)):
                plain.getresponse()
        trusting = ssl.create_default_context(cafile=str(authority.ca))
        odd = http.client.HTTPSConnection("127.0.0.1", program.port, timeout=60, context=trusting)
        with closing(odd):
            odd.request("GET", "/now%0A%22here", headers={"Authorization": f"Bearer {key}"})
            name = odd.getresponse().headers["x-request-id"]
        until(lambda: name in program.log_text, 60)
        assert program.stop() == 0
        lines = [json.loads(one) for one in program.log if one.startswith("{")]
        for line in lines:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
            assert line["level"] in ("info", "warning")
        (asked,) = (one for one in lines if one.get("path") == PREDICTIONS)
        (nowhere,) = (one for one in lines if one.get("request_id") == name)
        assert (asked["method"], asked["status"]) == ("GET", 200)
        assert re.fullmatch(r"[0-9a-f]{8}", asked["key"])
        assert asked["duration_ms"] >= 0
        assert (nowhere["status"], nowhere["level"]) == (404, "info")
        assert key not in program.log_text
