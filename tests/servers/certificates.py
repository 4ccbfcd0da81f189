"""Certificates, made on demand by a test authority."""

from __future__ import annotations

import ssl
import subprocess
import warnings
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Literal

from support.programs import environment, find

if TYPE_CHECKING:
    from pathlib import Path

Flavour = Literal["good", "expired", "wrong_name", "self_signed", "tls_1_0", "bad_cipher"]

_KEY = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")


@dataclass(frozen=True)
class Certificate:
    """The files of a server's certificate, with the settings for its flavor."""

    flavour: Flavour
    chain: Path
    key: Path
    # The authority that a client must trust. For a self-signed certificate it is another one.
    ca: Path

    def context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.chain, self.key)
        if self.flavour == "tls_1_0":
            context.set_ciphers("ALL:@SECLEVEL=0")
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DeprecationWarning)
                context.minimum_version = ssl.TLSVersion.TLSv1
                context.maximum_version = ssl.TLSVersion.TLSv1
        elif self.flavour == "bad_cipher":
            context.maximum_version = ssl.TLSVersion.TLSv1_2
            context.set_ciphers("eNULL:@SECLEVEL=0")
        return context


class Authority:
    """Makes certificates in `folder` with the openssl program, one for each flavor."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.ca = folder / "ca.pem"
        self._openssl("req", "-x509", *_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-days", "2",
                      "-subj", "/CN=polymux test authority",
                      "-addext", "keyUsage=critical,keyCertSign,cRLSign")  # fmt: skip
        self.certificate = cache(self._make)

    def _make(self, flavour: Flavour = "good") -> Certificate:
        """A certificate for localhost and 127.0.0.1, or for another name."""
        name = "wrong.example" if flavour == "wrong_name" else "localhost"
        alternatives = f"DNS:{name}" + ("" if flavour == "wrong_name" else ",IP:127.0.0.1")
        chain, key = f"{flavour}.pem", f"{flavour}.key"
        if flavour == "self_signed":
            self._openssl("req", "-x509", *_KEY, "-keyout", key, "-out", chain, "-days", "2",
                          "-subj", f"/CN={name}", "-addext",
                          f"subjectAltName={alternatives}")  # fmt: skip
        else:
            self._sign(flavour, name, alternatives, -1 if flavour == "expired" else 2)
        return Certificate(flavour, self._folder / chain, self._folder / key, self.ca)

    def of_a_client(self, pass_phrase: str = "") -> Path:
        """A file with a client certificate and its key, optionally encrypted."""
        if not (self._folder / "client.pem").exists():
            self._sign("client", "a client", "DNS:client.example", 2, "clientAuth")
        key = "client.key"
        if pass_phrase:
            key = "client-locked.key"
            self._openssl("pkcs8", "-topk8", "-in", "client.key", "-out", key, "-v2", "aes-256-cbc",
                          "-passout", f"pass:{pass_phrase}")  # fmt: skip
        whole = self._folder / f"client-with-{key}.pem"
        parts = [(self._folder / name).read_bytes() for name in ("client.pem", key)]
        whole.write_bytes(b"".join(parts))
        return whole

    def _sign(
        self, flavour: str, name: str, alternatives: str, days: int, usage: str = "serverAuth"
    ) -> None:
        (self._folder / f"{flavour}.ext").write_text(
            f"subjectAltName={alternatives}\nbasicConstraints=critical,CA:FALSE\n"
            f"extendedKeyUsage={usage}\n"
        )
        self._openssl("req", "-new", *_KEY, "-keyout", f"{flavour}.key", "-out", f"{flavour}.csr",
                      "-subj", f"/CN={name}")  # fmt: skip
        self._openssl("x509", "-req", "-in", f"{flavour}.csr", "-CA", "ca.pem", "-CAkey", "ca.key",
                      "-CAcreateserial", "-out", f"{flavour}.pem", "-days", str(days),
                      "-extfile", f"{flavour}.ext")  # fmt: skip

    def _openssl(self, *arguments: str) -> None:
        subprocess.run(
            [find("openssl"), *arguments], cwd=self._folder, check=True, capture_output=True,
            timeout=60, env=environment(),
        )  # fmt: skip
