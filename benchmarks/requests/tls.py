"""A server whose certificate is signed by a test CA, which is added to the system's CA
certificates."""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from benchmarks.measure import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
#: The system's CA certificates on Debian and its derivatives.
SYSTEM = Path("/etc/ssl/certs/ca-certificates.crt")
EXTENSIONS = "subjectAltName=IP:127.0.0.1\nbasicConstraints=critical,CA:FALSE\n"


def _openssl(folder: Path, *arguments: str) -> None:
    subprocess.run(["openssl", *arguments], cwd=folder, check=True, capture_output=True)


def certificates(folder: Path) -> Path:
    """Write ``server.pem``, ``server.key`` and the CA bundle, and return the bundle's path."""
    _openssl(folder, "req", "-x509", *KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
             "-subj", "/CN=polymux benchmark authority",
             "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
    (folder / "server.ext").write_text(EXTENSIONS)
    _openssl(folder, "req", "-new", *KEY, "-keyout", "server.key", "-out", "server.csr",
             "-subj", "/CN=localhost")  # fmt: skip
    _openssl(folder, "x509", "-req", "-in", "server.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
             "-CAcreateserial", "-out", "server.pem", "-days", "2",
             "-extfile", "server.ext")  # fmt: skip
    bundle = folder / "bundle.pem"
    bundle.write_text(f"{SYSTEM.read_text()}\n{(folder / 'ca.pem').read_text()}")
    return bundle


@contextmanager
def tls_server() -> Iterator[tuple[str, str]]:
    """Run a server that closes each connection after one answer; yields its URL and the CA
    bundle."""
    with TemporaryDirectory() as folder:
        bundle = certificates(Path(folder))
        command = [sys.executable, "-m", "benchmarks.servers.tls_server", folder]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT
        ) as process:
            assert process.stdout is not None
            try:
                yield f"https://127.0.0.1:{int(process.stdout.readline())}", str(bundle)
            finally:
                process.kill()
