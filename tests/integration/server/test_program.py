"""`polymux serve` in a process of its own: started, stopped, killed, and what it leaves."""

from __future__ import annotations

import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import TYPE_CHECKING

import polymux
import pytest
from support import commands, programs, serving
from support.fetches import wait_until
from support.polymux_server import CONVERT, form

if TYPE_CHECKING:
    from pathlib import Path


def started(folder: Path, *arguments: str, **environment: str) -> subprocess.Popen[str]:
    own = {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "HOME": str(folder)}
    own |= environment
    own.pop("POLYMUX_API_KEY", None)
    return subprocess.Popen(
        [sys.executable, "-m", "polymux", "serve", "--port", "0", *arguments],
        stderr=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=own,
    )


def address_of(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if "serving on " in line:
            return line.split("serving on ")[1].split(";")[0]
    raise AssertionError(f"no address; status {process.wait()}")


@pytest.mark.parametrize("optimize", ["", "2"])
def test_the_program_from_start_to_stop(tmp_path: Path, optimize: str) -> None:
    """A key is made, found by the client's account, and everything works; SIGTERM is no failure.

    P09: without assertions, too.
    """
    process = started(tmp_path, PYTHONOPTIMIZE=optimize)
    try:
        url = address_of(process)
        key_path = tmp_path / "state" / "polymux" / "local-key"
        assert key_path.stat().st_mode & 0o777 == 0o600
        with polymux.Client(url, key_path.read_text().split()[0]) as client:
            wave = tone()
            made = client.convert_to_mp3(("a.wav", wave))
            assert made.read() == polymux.convert_to_mp3(wave).read()
            assert client.read_text(("page.png", page())).text.split() == ["Hello", "there"]
        # Other programs of the account find address and key by themselves.
        code = "import polymux; print(len(list(polymux.Client().predictions.list())))"
        own = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
        command = [sys.executable, "-c", code]
        assert subprocess.run(command, env=own, capture_output=True, check=True).stdout == b"1\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    finally:
        process.kill()
        process.communicate()


def page() -> bytes:
    import io

    from PIL import Image, ImageDraw, ImageFont

    picture = Image.new("RGB", (500, 160), "white")
    ImageDraw.Draw(picture).text((40, 50), "Hello there", "black", ImageFont.load_default(48))
    buffer = io.BytesIO()
    picture.save(buffer, "PNG")
    return buffer.getvalue()


def tone() -> bytes:
    import io
    import math
    import struct
    import wave

    buffer = io.BytesIO()
    with wave.open(buffer, "wb") as file:
        file.setparams((1, 2, 44100, 0, "NONE", ""))
        samples = (int(9000 * math.sin(n / 20)) for n in range(44100))
        file.writeframes(b"".join(struct.pack("<h", one) for one in samples))
    return buffer.getvalue()


CANARY = "canary-6b1f2d"
BAD_SETTINGS = [
    ("port = 70000", "port"),
    ("port = 'x'", "port"),
    ("nonsense = 1", "nonsense"),
    ("[limits]\nqueue = -1", "queue"),
    ("[limits]\nduration_s = nan", "duration_s"),
    ("[store]\nbytes = 'much'", "bytes"),
    (f"[upstreams.x]\nkind = 'wrong'\nbase_url = 'https://x.example'\nkey = '{CANARY}'", "x"),
    (f"[upstreams.x]\nkey = '{CANARY}'\nnonsense = '{CANARY}'", "x"),
    (f"key = {CANARY}", "polymux.toml"),
    ("\0", "polymux.toml"),
    ("[limits]\nkeep_alive_s = inf", "keep_alive_s"),
    ("shutdown_timeout_s = inf", "shutdown_timeout_s"),
    ("shutdown_timeout_s = 1e300", "shutdown_timeout_s"),
    ("[limits]\nbody_bytes_per_s = 1e-320", "body_bytes_per_s"),
    ("[limits]\nqueue = 9223372036854775808", "queue"),
    ("[limits]\nconnections_per_address = 0", "connections_per_address"),
    (f"[limits]\nqueue = {'9' * 5000}", "polymux.toml"),
    (f"a = {'[' * 5000}", "polymux.toml"),
    ("keys = '~nosuchuser/keys.json'", "keys"),
    ("[routes]\nchat = ['nothing']", "nothing"),
    ("[engines.media]\n[routes]\nchat = ['media']", "media"),
]


def refused(process: subprocess.Popen[str], words: str) -> None:
    """It ends with one line that tells why, and no secret."""
    told, line = process.communicate(timeout=60)
    assert process.returncode not in (0, None), line
    assert told == ""
    assert words in line
    assert "Traceback" not in line
    assert CANARY not in line
    (only,) = line.splitlines()
    assert only.startswith("polymux: "), line


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--host", "0.0.0.0"), "no keys"),
        (("--host", "256.1.1.1"), "256.1.1.1"),
        (("--tls-cert", "nothing.pem"), "together"),
        (("--config", "nothing.toml"), "nothing.toml"),
        (("--config", "/"), "/"),
        (("--port", "70000"), "70000"),
    ],
)
def test_the_program_that_cannot_start(
    tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    """A18, P06: one line, no traceback."""
    refused(started(tmp_path, *arguments), words)


@pytest.mark.parametrize("host", ["0.0.0.0", "::"])
def test_all_addresses_and_none_of_them_told(tmp_path: Path, host: str) -> None:
    """Links lead to this machine alone then, which a warning tells; alone in a namespace."""
    rights = () if os.getuid() == 0 else ("--user", "--map-root-user")
    alone = (programs.find("unshare"), *rights, "--net", "sh", "-c", 'ip link set lo up; exec "$@"')
    own = {**os.environ, "XDG_STATE_HOME": str(tmp_path / "state"), "HOME": str(tmp_path)}
    command = (sys.executable, "-m", "polymux")
    subprocess.run([*command, "keys", "add", "test"], env=own, check=True, capture_output=True)
    serve = (*alone, "sh", *command, "serve", "--port", "0", "--host", host)
    for options in ((), ("--public-url", "https://tools.example")):
        with subprocess.Popen(
            [*serve, *options], env=own, stderr=subprocess.PIPE, text=True
        ) as process:
            assert process.stderr is not None
            lines = []
            for line in process.stderr:
                lines.append(line)
                if "serving on " in line:
                    break
            process.terminate()
        told = [line for line in lines if "`public_url`" in line]
        assert len(told) == (0 if options else 1), lines
        assert all("WARNING" in line and lines[-1].split("serving on ")[1].split(";")[0] in line
                   for line in told)  # fmt: skip


@pytest.mark.parametrize("option", ["--nonsense", "--port=x", "--grace"])
def test_options_that_are_none(tmp_path: Path, option: str) -> None:
    """P06: named, behind how the command is used; 2, as of all commands that are used wrongly."""
    process = started(tmp_path, option)
    _, told = process.communicate(timeout=60)
    assert process.returncode == 2
    assert option.partition("=")[0] in told.splitlines()[-1]
    assert "Traceback" not in told


@pytest.mark.parametrize(("text", "words"), BAD_SETTINGS)
def test_settings_that_are_none(tmp_path: Path, text: str, words: str) -> None:
    """P06: what is wrong and where, and nothing of a key that stands beside it."""
    path = tmp_path / "polymux.toml"
    path.write_text(text)
    refused(started(tmp_path, "--config", str(path)), words)
    checked = commands.run("config", "check", path, cwd=tmp_path, code=None)
    assert checked.returncode not in (0, None)
    for told in (checked.stdout, checked.stderr):
        assert b"Traceback" not in told
        assert CANARY.encode() not in told
    assert words.encode() in checked.stderr


def test_settings_that_are_none_at_a_reload(tmp_path: Path) -> None:
    """P06: the server stays as it was, whatever is wrong, and says so."""
    with serving.ServedProgram(tmp_path).start() as program:
        key = program.key
        gone = f"keys = '{tmp_path / 'nothing.json'}'", "nothing.json"
        for number, (text, words) in enumerate([*BAD_SETTINGS, gone], 1):
            program.settings.write_text(text)
            program.signal(signal.SIGHUP)
            wait_until(lambda wanted=number: program.told.count("as it was") == wanted)
            assert words in program.log[-1], program.log[-1]
            assert program.request("GET", "/api/v1/operations").status == 200
        assert program.key == key
        assert "Traceback" not in program.told
        assert CANARY not in program.told
        program.settings.write_text("")
        program.signal(signal.SIGHUP)
        wait_until(lambda: "was read again" in program.told)


@pytest.mark.parametrize("how", ["folder", "garbage", "bytes", "forbidden"])
def test_a_file_of_keys_that_cannot_be_read(tmp_path: Path, how: str) -> None:
    """P06: nobody is let in by it, so nothing is begun."""
    path = tmp_path / "state" / "polymux" / "server" / "keys.json"
    path.parent.mkdir(parents=True)
    if how == "folder":
        path.mkdir()
    elif how == "forbidden":
        path.symlink_to("/proc/1/mem")  # Which root cannot read either.
    else:
        path.write_bytes(b"{" if how == "garbage" else b"\xff\xfe\0")
    refused(started(tmp_path), "keys")


def test_two_servers_on_one_store_or_port(tmp_path: Path) -> None:
    first = started(tmp_path)
    try:
        url = address_of(first)
        second = started(tmp_path)
        _, told = second.communicate(timeout=30)
        assert second.returncode not in (0, None)
        assert "in use by another server" in told
        port = url.rpartition(":")[2]
        third = started(tmp_path / "other", "--port", port)
        _, told = third.communicate(timeout=30)
        assert third.returncode not in (0, None)
        assert f"port {port}" in told
        assert "Traceback" not in told
    finally:
        first.kill()
        first.communicate()


def test_others_on_a_store_that_is_at_work(tmp_path: Path) -> None:
    """D07: they are refused one after the other, and nobody who is served notices."""
    first = started(tmp_path)
    try:
        url = address_of(first)
        key = (tmp_path / "state" / "polymux" / "local-key").read_text().split()[0]
        done: dict[str, int] = {}
        over = threading.Event()

        def work(number: int) -> None:
            with polymux.Client(url, key, retry=0) as client:
                while not over.is_set():
                    client.convert_to_mp3((f"{number}.wav", tone()))
                    for one in client.predictions.list():
                        done[one.id] = len(one.audio.read()) if one.audio else 0

        with ThreadPoolExecutor(3) as pool:
            working = [pool.submit(work, number) for number in range(3)]
            try:
                for _ in range(4):
                    other = started(tmp_path)
                    _, told = other.communicate(timeout=60)
                    assert other.returncode not in (0, None)
                    assert "in use by another server" in told
                wait_until(lambda: len(done) > 3)
            finally:
                over.set()
            for one in working:
                one.result()
        assert len(done) > 3
        with polymux.Client(url, key, retry=0) as client:
            for name in done:
                assert client.predictions.get(name).status == "succeeded"
    finally:
        first.kill()
        first.communicate()
    (catalogue,) = tmp_path.rglob("catalogue.db")
    with closing(sqlite3.connect(catalogue)) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]


def test_kill_and_start_again(tmp_path: Path) -> None:
    """D05 in small: what was answered is there, what was not is gone, and it starts again."""
    for _ in range(3):
        process = started(tmp_path)
        try:
            url = address_of(process)
            key = (tmp_path / "state" / "polymux" / "local-key").read_text().split()[0]
            with polymux.Client(url, key, retry=0) as client:
                known = {one.id: one for one in client.predictions.list()}
                for one in known.values():
                    assert one.status == "succeeded"
                    assert one.audio is not None
                    assert one.audio.read()[:2] == b"\xff\xfb"
                client.convert_to_mp3(("a.wav", tone()))
                connection = socket.create_connection(("127.0.0.1", int(url.rpartition(":")[2])))
                body, headers = form(("file", ("a.wav", tone() * 20)))
                lines = (
                    f"POST {CONVERT} HTTP/1.1\r\nHost: {url.removeprefix('http://')}\r\n"
                    f"Authorization: Bearer {key}\r\n{headers[0][0]}: {headers[0][1]}\r\n"
                    f"Content-Length: {len(body)}\r\n\r\n"
                )
                connection.sendall(lines.encode() + body[: len(body) // 2])
                time.sleep(0.1)
        finally:
            process.kill()
            process.communicate()
            connection.close()
    folder = tmp_path / "state" / "polymux" / "server"
    process = started(tmp_path)
    address_of(process)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=20)
    assert list((folder / "drafts").iterdir()) == []
    assert len([one for one in (folder / "media").rglob("*") if one.is_file()]) == 3
