"""`polymux serve` as a process: start, stop, kill, and remaining files. Case IDs: testing.md."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

import polymux
from polymux.server.auth.api_keys import KeyFile
from support import commands, programs, serve_command
from support.conversions import wav
from support.fetches import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

TONE = wav(1)
CANARY = "canary-6b1f2d"
SERVING = re.compile(r"polymux: [^:]* (https?://[^\s;]+)")


def environment(folder: Path, **more: str) -> dict[str, str]:
    own = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder), **more}
    own.pop("POLYMUX_API_KEY", None)
    return own


def started(folder: Path, *arguments: str, **more: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "polymux", "serve", "--port", "0", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment(folder, **more),
    )


@contextmanager
def serving_process(folder: Path, **more: str) -> Iterator[tuple[subprocess.Popen[str], str, str]]:
    """Run a server. Yields its process, URL and API key, and kills it at the end."""
    process = started(folder, **more)
    try:
        yield process, address_of(process), key_path(folder).read_text().split()[0]
    finally:
        process.kill()
        process.communicate()


def key_path(folder: Path) -> Path:
    return folder / "state" / "polymux" / "local-key"


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := SERVING.match(line):
            return found[1]
    raise AssertionError(f"no address; status {process.wait()}")


def test_the_program_from_start_to_stop(tmp_path: Path) -> None:
    """The account's clients find a created key. SIGTERM succeeds. Also without assertions (P09)."""
    with serving_process(tmp_path, PYTHONOPTIMIZE="2") as (process, url, key):
        assert key_path(tmp_path).stat().st_mode & 0o777 == 0o600
        with polymux.Client(url, key) as client:
            made = client.convert_to_mp3(("a.wav", TONE))
            assert made.read() == polymux.convert_to_mp3(TONE).read()
        # Clients of the account need no URL or key.
        code = "import polymux; print(len(list(polymux.Client().predictions.list())))"
        command = [sys.executable, "-c", code]
        own = environment(tmp_path)
        assert subprocess.run(command, env=own, capture_output=True, check=True).stdout == b"1\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


def test_the_account_has_a_key_beside_others(tmp_path: Path) -> None:
    file = KeyFile(tmp_path / "state" / "polymux" / "server" / "keys.json")
    file.add("alice")
    for _ in range(2):  # A restart adds no other key.
        with serving_process(tmp_path) as (process, url, key):
            with polymux.Client(url, key) as client:
                assert list(client.predictions.list()) == []
            process.send_signal(signal.SIGTERM)
            assert process.wait(30) == 0
        assert [one.name for one in file.keys()] == ["alice", "local"]  # noqa: SIM118


def check_refused(code: int, out: str, err: str, words: str) -> None:
    """Check that it exited with one line that gives the reason and no secret."""
    assert code != 0, words
    assert out == ""
    assert words in err
    assert CANARY not in err
    (only,) = err.splitlines()
    assert only.startswith("polymux: "), only


REFUSED = [
    (("--host", "0.0.0.0"), "polymux keys add"),
    (("--host", "256.1.1.1"), "256.1.1.1"),
    (("--tls-cert", "nothing.pem"), "--tls-key"),
    (("--config", "nothing.toml"), "nothing.toml"),
    (("--config", "/"), "/"),
    (("--port", "70000"), "70000"),
    (("--allow-origin", "https://a", "--allow-origin", "https://*.a"), "'https://*.a'"),
]


def test_the_program_that_cannot_start(tmp_path: Path) -> None:
    """Prints one line without a traceback (A18 and P06)."""
    for arguments, words in REFUSED:
        check_refused(*commands.serve(*arguments, cwd=tmp_path), words)


def test_all_addresses_without_a_public_url(tmp_path: Path) -> None:
    """Listening on all addresses without a public URL: links use the loopback address and a warning
    says so. Runs in a network namespace.
    """
    rights = () if os.getuid() == 0 else ("--user", "--map-root-user")
    alone = (programs.find("unshare"), *rights, "--net", "sh", "-c", 'ip link set lo up; exec "$@"')
    KeyFile(tmp_path / "state" / "polymux" / "server" / "keys.json").add("test")
    serve = (*alone, "sh", sys.executable, "-m", "polymux", "serve", "--port", "0")
    path = tmp_path / "polymux.toml"
    for text, warned in (("", True), ("public_url = 'https://tools.example'", False)):
        path.write_text(f"{text}\nhost = '0.0.0.0'")
        with subprocess.Popen(
            [*serve, "--config", path], env=environment(tmp_path), stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if found := SERVING.match(line):
                    break
            process.terminate()
        assert found
        warnings = [line for line in lines if " WARNING " in line and "public_url" in line]
        assert [found[1] in line for line in warnings] == [True] * warned


BAD_SETTINGS = [
    ("port = 70000", "port"),
    ("nonsense = 1", "nonsense"),
    ("[limits]\nqueue = -1", "queue"),
    ("[limits]\nduration_s = nan", "duration_s"),
    (f"[upstreams.x]\nkind = 'wrong'\nbase_url = 'https://x.example'\nkey = '{CANARY}'", "x"),
    (f"key = {CANARY}", "polymux.toml"),
    ("\0", "polymux.toml"),
    ("shutdown_timeout_s = 1e300", "shutdown_timeout_s"),
    (f"[limits]\nqueue = {'9' * 5000}", "polymux.toml"),
    (f"a = {'[' * 5000}", "polymux.toml"),
    ("keys = '~nosuchuser/keys.json'", "keys"),
    ("[engines.media]\n[routes]\nchat = ['media']", "media"),
]


def test_settings_that_are_none(tmp_path: Path) -> None:
    """The error has the problem and its place, but not the value of a key next to it (P06)."""
    path = tmp_path / "polymux.toml"
    for text, words in BAD_SETTINGS:
        path.write_text(text)
        check_refused(*commands.serve("--config", path, cwd=tmp_path), words)
        done = commands.call("config", "check", path, cwd=tmp_path, code=None)
        check_refused(done.returncode, done.stdout.decode(), done.stderr.decode(), words)


def test_settings_that_are_none_at_a_reload(tmp_path: Path) -> None:
    """The server keeps its old settings and logs the error (P06)."""
    with serve_command.ServeCommand(tmp_path).start() as program:
        key = program.key
        gone = f"keys = '{tmp_path / 'nothing.json'}'", "nothing.json"
        for number, (text, words) in enumerate([*BAD_SETTINGS, gone], 1):
            program.settings.write_text(text)
            program.signal(signal.SIGHUP)
            wait_until(lambda wanted=number: program.log_text.count(" ERROR ") == wanted)
            assert words in program.log[-1], program.log[-1]
        assert program.request("GET", "/api/v1/operations").status == 200
        assert program.key == key
        assert "Traceback" not in program.log_text
        assert CANARY not in program.log_text
        program.settings.write_text("")
        program.signal(signal.SIGHUP)
        wait_until(lambda: " INFO polymux.server: " in program.log_text)


def test_a_file_of_keys_that_cannot_be_read(tmp_path: Path) -> None:
    """Without keys the server could not authenticate clients, so it does not start (P06)."""
    files = {
        name: tmp_path / name / "keys.json" for name in ("folder", "other", "garbage", "bytes")
    }
    for path in files.values():
        path.parent.mkdir()
    files["folder"].mkdir()
    files["other"].symlink_to("/proc/1/mem")  # Even root cannot read this file.
    files["garbage"].write_bytes(b"{")
    files["bytes"].write_bytes(b"\xff\xfe\0")
    settings = tmp_path / "polymux.toml"
    for path in files.values():
        settings.write_text(f"keys = '{path}'")
        check_refused(*commands.serve("--config", settings, cwd=tmp_path), "keys")


def test_two_servers_on_one_store_or_port(tmp_path: Path) -> None:
    """The second server fails to start without affecting the clients of the first one (D07)."""
    with serving_process(tmp_path) as (_, url, key):
        done: dict[str, int] = {}
        over = threading.Event()

        def work(number: int) -> None:
            with polymux.Client(url, key, retry=0) as client:
                while not over.is_set():
                    client.convert_to_mp3((f"{number}.wav", TONE))
                    for one in client.predictions.list():
                        done[one.id] = len(one.audio.read()) if one.audio else 0

        with ThreadPoolExecutor(3) as pool:
            working = [pool.submit(work, number) for number in range(3)]
            try:
                store = tmp_path / "state" / "polymux" / "server"
                port = url.rpartition(":")[2]
                for words, message in (
                    (("--data-dir", store), str(store)),
                    (("--data-dir", tmp_path / "other", "--port", port), f"port {port}"),
                ):
                    check_refused(*commands.serve(*words, cwd=tmp_path), message)
                wait_until(lambda: len(done) > 3)
            finally:
                over.set()
            for one in working:
                one.result()
        with polymux.Client(url, key, retry=0) as client:
            for name in done:
                assert client.predictions.get(name).status == "succeeded"
    (database,) = (tmp_path / "state").rglob("catalogue.db")
    with closing(sqlite3.connect(database)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_a_terminal_gets_a_link_that_signs_in(tmp_path: Path) -> None:
    """Only a terminal shows the key. Otherwise, standard error may be stored as a log."""
    with commands.Terminal("serve", "--port", "0", cwd=tmp_path) as terminal:
        url = terminal.wait_for(r"serving on (http://\S+);")[1]
        key = terminal.wait_for(rf"{re.escape(url)}/page/#key=(\S+)")[1]
        with polymux.Client(url, key) as client:
            assert list(client.predictions.list()) == []
        terminal.press("\x03")
        assert terminal.end() == 0
    process = started(tmp_path)
    try:
        address_of(process)
        process.send_signal(signal.SIGTERM)
        _, rest = process.communicate(timeout=60)
    finally:
        process.kill()
    assert key_path(tmp_path).read_text().split()[0] not in rest
