"""`polymux serve` in a process of its own: settings read again, lines of its log, TLS."""

from __future__ import annotations

import http.client
import json
import re
import signal
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING

import polymux
import pytest
from servers.certificates import Authority
from support import commands
from support.served import until
from support.serving import ServedProgram

if TYPE_CHECKING:
    from collections.abc import Iterator

READ_AGAIN = "the configuration was read again"
STAYED = "the configuration stays as it was"
OPERATIONS = "/api/v1/operations"
PAGE = ("Origin", "https://site.example")
OTHER_PAGE = ("Origin", "https://other.example")
NAMED = ("Host", "tools.example")


@pytest.fixture
def program(tmp_path: Path) -> Iterator[ServedProgram]:
    """A server that runs; its connections may rest for a while."""
    with ServedProgram(tmp_path, "[limits]\nkeep_alive_s = 120\n") as running:
        yield running.start()


def read_again(program: ServedProgram, settings: str, told: str = READ_AGAIN) -> None:
    """Has the server read settings, and waits until it has told what it makes of them."""
    before = program.told.count(told)
    program.settings.write_text(settings)
    program.signal(signal.SIGHUP)
    until(lambda: program.told.count(told) > before, 60)


def test_what_needs_a_new_start_is_told(program: ServedProgram) -> None:
    """Queue, engines, routes and what may be fetched stay; the command line's port is nobody's
    change."""
    plain = program.settings.read_text()
    read_again(program, plain)
    assert "starts anew" not in program.told
    told = (
        "what has changed in routes, fetch, shutdown_timeout_s, limits.queue, limits.pixels, "
        "limits.header_s is taken when the server starts anew"
    )
    changed = plain.replace(
        "keep_alive_s = 120", "keep_alive_s = 120\nqueue = 5\npixels = 9\nheader_s = 5"
    )
    changed = re.sub("(?m)^shutdown_timeout_s = .*", "shutdown_timeout_s = 7", changed)
    fetch = '[fetch]\nallowed_hosts = ["files.example"]\n'
    read_again(program, f"{changed}\n{fetch}[routes]\nfree_chat = []\n", told)


def test_sighup_changes_who_may_ask(program: ServedProgram) -> None:
    """Hosts and origins, to and fro; the process and its open connections are the same."""
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
        # Where something is wrong with it, all stays.
        read_again(program, f"nonsense = 1\n{plain}", STAYED)
        assert "nonsense is not known" in program.told
        assert statuses() == [200, 200, 403, 200]
        read_again(program, f'allowed_origins = ["{OTHER_PAGE[1]}"]\n{plain}')
        assert statuses() == [200, 403, 200, 421]
        open_one.request("GET", OPERATIONS, headers=own | dict([OTHER_PAGE]))
        assert open_one.getresponse().read()
        assert open_one.sock is socket
    assert program.pid == pid
    assert program.stop() == 0


def test_a_reload_before_it_serves(tmp_path: Path) -> None:
    """It does not end what is being started, and is not lost: others may have changed the file."""
    program = ServedProgram(tmp_path)
    program.start(ready=False)
    with program:
        handled = f"/proc/{program.process.pid}/status"  # type: ignore[union-attr]
        until(lambda: int(_caught(handled), 16) >> (signal.SIGHUP - 1) & 1, 60)
        program.signal(signal.SIGHUP)
        until(lambda: "read again" in program.told, 60)
        until(lambda: program.url, 60)
        assert program.request("GET", OPERATIONS).status == 200


def _caught(path: str) -> str:
    """The signals that a process handles, as proc(5) has them."""
    (line,) = (one for one in Path(path).read_text().splitlines() if one.startswith("SigCgt"))
    return line.split()[1]


def test_each_line_has_the_id_that_its_answer_has(program: ServedProgram) -> None:
    """Once each, with the status and the key's id; never the key."""
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
    until(lambda: all(f"id={one}" in program.told for one in ids), 60)
    assert program.stop() == 0
    for (method, answer, path), name in zip(asked, ids, strict=True):
        (line,) = (one for one in program.log if one.endswith(f"id={name}"))
        told = rf".* INFO polymux\.access: {method} {path} {answer.status} [\d.]+ ms key=(\S+) id="
        found = re.match(told, line)
        assert found, line
        knows = answer.status in (200, 415)
        assert re.fullmatch(r"[0-9a-f]{8}", found[1]) if knows else found[1] == "-"
        if answer.status != 200:
            assert answer.json()["request_id"] == name
    assert program.key not in program.told


def test_a_log_of_json(tmp_path: Path) -> None:
    """An object on each line: of requests their parts, of failures where they happened."""
    with ServedProgram(tmp_path) as program:
        program.start(arguments=("--log-format", "json"))
        answer = program.request("GET", OPERATIONS)
        odd = program.request("GET", "/now%0A%22here")
        ids = [one.headers["x-request-id"] for one in (answer, odd)]
        until(lambda: all(one in program.told for one in ids), 60)
        assert program.stop() == 0
        lines = [json.loads(one) for one in program.log if one.startswith("{")]
        assert len(lines) >= 2
        for line in lines:
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["time"])
            assert line["level"] in ("info", "warning")
        first, second = ([one for one in lines if one.get("request_id") == name] for name in ids)
        (asked,), (nowhere,) = first, second
        assert (asked["method"], asked["path"], asked["status"]) == ("GET", OPERATIONS, 200)
        assert re.fullmatch(r"[0-9a-f]{8}", asked["key"])
        assert asked["duration_ms"] >= 0
        assert (nowhere["status"], nowhere["level"]) == (404, "info")
        assert program.key not in program.told


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


def test_tls_by_options(tmp_path: Path, authority: Authority) -> None:
    """Its address, and the links that it gives, are those of TLS; without it nobody is answered."""
    made = commands.run("keys", "add", "website", "--store", tmp_path / "s", cwd=tmp_path)
    key = made.stdout.decode().strip()
    good = authority.certificate()
    with ServedProgram(tmp_path) as program:
        words = ("--tls-cert", good.chain, "--tls-key", good.key, "--store", tmp_path / "s")
        program.start(arguments=[str(one) for one in words])
        assert program.url.startswith("https://127.0.0.1:")
        with polymux.Client(program.url, key, verify=authority.ca, retry=0) as client:
            assert list(client.predictions.list()) == []
        plain = http.client.HTTPConnection("127.0.0.1", program.port, timeout=60)
        with closing(plain):
            plain.request("GET", "/healthz")
            with pytest.raises((http.client.HTTPException, OSError)):
                plain.getresponse()
        assert program.stop() == 0


def test_tls_by_options_that_do_not_fit(tmp_path: Path, authority: Authority) -> None:
    """One line, no traceback, and no server without TLS instead."""
    good, other = authority.certificate(), authority.certificate("wrong_name")
    (tmp_path / "no.pem").write_text("nothing")
    together, wrong = "--tls-cert and --tls-key must be used together", "the certificate or its key"
    cases = [
        (("--tls-cert", good.chain), together),
        (("--tls-key", good.key), together),
        (("--tls-cert", good.chain, "--tls-key", other.key), wrong),
        (("--tls-cert", tmp_path / "no.pem", "--tls-key", good.key), wrong),
        (("--tls-cert", tmp_path / "none.pem", "--tls-key", good.key), wrong),
    ]
    for words, told in cases:
        code, _, err = commands.serve("--store", tmp_path / "s", *words, cwd=tmp_path)
        assert code == 2
        (line,) = err.splitlines()
        assert told in line
