"""Real proxies in front of a test server: HTTP/2 over TLS by independent implementations.

Example:

    with MisbehavingServer() as server:
        server.script(steps.answer())
        with nghttpx(server.port, authority.certificate(), folder) as proxy:
            ...  # HTTP/2 to proxy.url, with proxy.ca as the trusted authority
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import ssl
import subprocess
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support.programs import PACKAGES, ProgramError, environment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from servers.certificates import Certificate

START_TIMEOUT_S = 10
STOP_TIMEOUT_S = 5
_TRIES = 3
#: A killed test run must not leave a proxy running.
_DIES_WITH_US = ("setpriv", "--pdeathsig", "KILL")


@dataclass(frozen=True)
class Proxy:
    """A running proxy; `pid` is its process."""

    url: str
    port: int
    ca: Path
    pid: int


@contextlib.contextmanager
def nghttpx(upstream: int, certificate: Certificate, folder: Path) -> Iterator[Proxy]:
    """nghttpx, from HTTP/2 and HTTP/1.1 (ALPN) to HTTP/1.1 at the port `upstream`."""
    settings = folder / "nghttpx.conf"
    settings.write_text("")
    options = [
        f"--conf={settings}", f"--backend=127.0.0.1,{upstream}", "--single-process",
        "--errorlog-file=/dev/stderr", "--accesslog-file=", "--no-ocsp",
        "--backend-read-timeout=600s",
    ]  # fmt: skip
    files = [str(certificate.key), str(certificate.chain)]

    def command(port: int) -> list[str]:
        return [_path("nghttpx"), *options, f"--frontend=127.0.0.1,{port}", *files]

    with _running(command, certificate, folder / "nghttpx.log") as proxy:
        yield proxy


@contextlib.contextmanager
def nginx(
    upstream: int, certificate: Certificate, folder: Path, *, requests: int
) -> Iterator[Proxy]:
    """nginx with HTTP/2, which closes each connection after that number of requests."""
    settings = folder / "nginx.conf"

    def command(port: int) -> list[str]:
        settings.write_text(f"""
daemon off; master_process off; error_log stderr; pid {folder}/nginx.pid;
events {{}}
http {{
    access_log off; keepalive_requests {requests};
    client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi; uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    server {{
        listen 127.0.0.1:{port} ssl http2;
        ssl_certificate {certificate.chain}; ssl_certificate_key {certificate.key};
        location / {{ proxy_pass http://127.0.0.1:{upstream}; proxy_buffering off; }}
    }}
}}
""")
        return [_path("nginx"), "-e", "stderr", "-c", str(settings)]

    with _running(command, certificate, folder / "nginx.log") as proxy:
        yield proxy


def _path(program: str) -> str:
    path = shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin:/sbin")
    if path is None:
        raise ProgramError(f"{program} is not installed: sudo apt-get install {PACKAGES[program]}")
    return path


@contextlib.contextmanager
def _running(
    command: Callable[[int], list[str]], certificate: Certificate, log: Path
) -> Iterator[Proxy]:
    for _ in range(_TRIES):  # Another process may have taken the free port.
        port = _free_port()
        with log.open("wb") as output:
            child = subprocess.Popen(
                [*_DIES_WITH_US, *command(port)], stdin=subprocess.DEVNULL, stdout=output,
                stderr=output, start_new_session=True, env=environment(),
            )  # fmt: skip
        try:
            if _answers(child, port):
                yield Proxy(f"https://127.0.0.1:{port}", port, certificate.ca, child.pid)
                return
        finally:
            _end(child)
    raise ProgramError(f"{child.args!r} does not start:\n{log.read_text()[-2000:]}")


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def _answers(child: subprocess.Popen[bytes], port: int) -> bool:
    """Whether it completes a TLS handshake; it listens before it reads its certificate."""
    trusting = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    trusting.check_hostname, trusting.verify_mode = False, ssl.CERT_NONE
    end = time.monotonic() + START_TIMEOUT_S
    while child.poll() is None and time.monotonic() < end:
        with (
            contextlib.suppress(OSError),
            socket.create_connection(("127.0.0.1", port), 1) as plain,
            trusting.wrap_socket(plain),
        ):
            return True
        time.sleep(0.02)
    return False


def _end(child: subprocess.Popen[bytes]) -> None:
    """Stop it gracefully if possible, otherwise kill it."""
    for signal_number in (signal.SIGTERM, signal.SIGKILL):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child.pid, signal_number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            child.wait(STOP_TIMEOUT_S)
            break
