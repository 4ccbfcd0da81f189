"""package_check.py FOLDER: checks the sdist and the wheel in FOLDER.

If the wheel is for this machine, it is installed into an empty environment and tested in a
namespace without the system's FFmpeg, libvpx, libcurl, OpenSSL and ffmpeg program. uv and pipx, if
installed, also run it with the dependencies of a server. It must be for the running Python.
"""

import base64
import csv
import hashlib
import io
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tarfile
import tempfile
import threading
import tomllib
import venv
import zipfile
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING

from packaging.metadata import Metadata

if TYPE_CHECKING:
    from collections.abc import Iterator

ROOT = Path(__file__).resolve().parents[2]
#: Maximum sizes. A larger file probably contains unwanted files.
_WHEEL_BYTES, _SDIST_BYTES = 12_000_000, 8_000_000
_IN_SDIST = ("pyproject.toml", "CMakeLists.txt", "LICENSE", "THIRD_PARTY.md", "scripts/package",
             "scripts/private-deps/build", "scripts/private-deps/build-curl",
             "scripts/private-deps/toolchain")  # fmt: skip
_IN_WHEEL = ("polymux/__init__.py", "polymux/py.typed", "polymux/_native/_core.pyi",
             "polymux/_native/_media.pyi",
             "polymux/page/index.html", "polymux/models/registry.toml")  # fmt: skip
_NOTICES = ("NOTICE.txt", "LICENSE", "THIRD_PARTY.md", "cpp/third_party/llhttp/LICENSE",
            "cpp/third_party/pocketfft/LICENSE", "cpp/third_party/simdjson/LICENSE",
            "curl/COPYING", "ffmpeg/COPYING.LGPLv2.1", "lame/COPYING", "libcxx/LICENSE.TXT",
            "libidn2/COPYING.LESSERv3", "libvpx/LICENSE", "nghttp2/COPYING", "openssl/LICENSE.txt",
            "pybind11/LICENSE", "zig/LICENSE",
            "zlib/LICENSE")  # fmt: skip
_HIDDEN = re.compile(r"lib(av\w+|sw\w+|postproc|vpx|curl\S*|nghttp2|idn2|unistring|ssl|crypto)\.so")
_IS_LIBRARY = re.compile(r"\.so(\.\d+)*$")
#: Libraries of glibc, which each system has.
_GLIBC = {"libc.so.6", "libdl.so.2", "libm.so.6", "libpthread.so.0", "librt.so.1",
          "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}  # fmt: skip
#: Other modules export only the function that Python calls. These are loaded before llama.cpp.
_EXPORTED = {
    "_openmp": {"GOMP_parallel", "polymux_openmp_forward", "polymux_openmp_limit"},
    "_libgomp": set(re.findall(r"(\w+);", (ROOT / "bindings/openmp/libgomp.map").read_text())),
}
_ANSWER = b'{"response": "hello over TLS"}'


def main() -> None:
    folder = Path(sys.argv[1])
    (sdist,), (wheel,) = folder.glob("*.tar.gz"), folder.glob("*.whl")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        _metadata(archive.extractfile(f"{sdist.name.removesuffix('.tar.gz')}/PKG-INFO").read())
    _expect(set(_IN_SDIST) <= names, f"the sdist lacks {sorted(set(_IN_SDIST) - names)}")
    _expect(not [name for name in names if re.match(r"build/|dist/|\.venv|\.git/", name)],
            "the sdist contains build results")  # fmt: skip
    _contents(wheel)
    with tempfile.TemporaryDirectory() as temporary, zipfile.ZipFile(wheel) as archive:
        for name in filter(_IS_LIBRARY.search, archive.namelist()):
            check_library(Path(archive.extract(name, temporary)))
    _run("auditwheel", "show", wheel)
    _run("twine", "check", "--strict", sdist, wheel)
    for path, most in ((sdist, _SDIST_BYTES), (wheel, _WHEEL_BYTES)):
        _expect(
            path.stat().st_size <= most,
            f"{path.name} is too large (got {path.stat().st_size:,} bytes, allowed {most:,})",
        )
    if wheel.stem.endswith(os.uname().machine):
        with tempfile.TemporaryDirectory() as temporary:
            _try(wheel, Path(temporary))
            for line in run_as_tool(wheel, Path(temporary)):
                print(line)
    else:
        print(f"!!! NOT TESTED: {wheel.name} cannot run on this machine")
    print("_core, _media: RELRO, BIND_NOW, NX, stack protector, _FORTIFY_SOURCE; CET not declared")
    installed = sum(item.file_size for item in zipfile.ZipFile(wheel).infolist())
    print(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, {len(names)} files")
    print(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, {installed / 1e6:.1f} MB installed")


def _metadata(text: bytes) -> None:
    """Raise an error if a package index would reject this metadata."""
    found = Metadata.from_email(text, validate=True)
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    _expect(
        str(found.version) == project["version"],
        f"wrong version (got {found.version}, expected {project['version']})",
    )
    _expect(
        found.description_content_type == "text/markdown",
        "the description's content type is not text/markdown",
    )


def _contents(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if not name.endswith("/")}
        information = next(name.rpartition("/")[0] for name in names if name.endswith("/RECORD"))
        _metadata(archive.read(f"{information}/METADATA"))
        wanted = {*_IN_WHEEL, *(f"{information}/licenses/{name}" for name in _NOTICES)}
        wanted.add(f"{information}/sboms/polymux.cdx.json")
        _expect(wanted <= names, f"the wheel lacks {sorted(wanted - names)}")
        record = csv.reader(io.StringIO(archive.read(f"{information}/RECORD").decode()))
        recorded = {name: digest for name, digest, _ in record}
        _expect(set(recorded) == names, f"RECORD and files differ: {set(recorded) ^ names}")
        for name, digest in recorded.items():
            made = base64.urlsafe_b64encode(hashlib.sha256(archive.read(name)).digest())
            right = digest == f"sha256={made.rstrip(b'=').decode()}" or name.endswith("/RECORD")
            _expect(right, f"{name} differs from its hash in RECORD")
    _expect("-manylinux_2_28_" in wheel.name, f"{wheel.name} is not a manylinux_2_28 wheel")


def check_library(library: Path) -> None:
    """Check how a library of the wheel is linked and hardened.

    Raises:
        SystemExit: A check fails.
    """
    words = ["readelf", "--wide", "--program-headers", "--dynamic", "--dyn-syms", "--notes"]
    words.append(str(library))
    found = subprocess.run(words, check=True, capture_output=True, text=True).stdout
    name = library.name
    is_bound = re.search(r"\(FLAGS_1\).*\bNOW\b", found)
    _expect("GNU_RELRO" in found and is_bound, f"{name}: no full RELRO")
    _expect(re.search(r"GNU_STACK .* RW ", found), f"{name}: the stack is executable")
    extra = re.findall(r"\((RPATH|RUNPATH|TEXTREL)\)", found)
    _expect(not extra, f"{name}: unwanted {extra}")
    needed = set(re.findall(r"\(NEEDED\).*\[(.+)\]", found))
    _expect(needed <= _GLIBC, f"{name}: needs {sorted(needed - _GLIBC)}")

    symbols = re.findall(r"(?:GLOBAL|WEAK|UNIQUE) +\w+ +(\w+) ([^@\s]+)", found)
    # Names of versions are absolute.
    exported = {symbol for place, symbol in symbols if place not in {"UND", "ABS"}}
    module = name.partition(".")[0]
    wanted = _EXPORTED.get(module, {f"PyInit_{module}"})
    _expect(exported == wanted, f"{name}: wrong exports: {sorted(exported ^ wanted)[:9]}")
    if module in _EXPORTED:
        return
    # FFmpeg's assembly has no endbr64, and zig's unwinder of exceptions ignores the shadow stack.
    _expect("x86 feature:" not in found, f"{name}: declares CET, which its parts lack")
    imported = {symbol for place, symbol in symbols if place == "UND"}
    _expect("__stack_chk_fail" in imported, f"{name}: no stack protector")
    is_fortified = any(re.fullmatch(r"__\w+_chk", symbol) for symbol in imported)
    _expect(is_fortified, f"{name}: _FORTIFY_SOURCE has no effect")
    # Those of zig round differently, so MP3 files would differ from ffmpeg's.
    has_own = module == "_media" and not {"sin", "exp", "log"} <= imported
    _expect(not has_own, f"{name}: contains its own mathematical functions")


def _try(wheel: Path, folder: Path) -> None:
    venv.create(folder / "venv", with_pip=False)
    python = folder / "venv/bin/python"
    options = ["--quiet", "--disable-pip-version-check", "--no-deps", "--no-index"]
    install = [sys.executable, "-m", "pip", f"--python={python}", "install", *options, wheel]
    subprocess.run(install, check=True)
    done = tried(folder, hidden=True)
    _expect(done.returncode == 0, f"the installed wheel fails:\n{done.stdout}{done.stderr}")
    found = json.loads(done.stdout)
    _expect("LGPL" in found["ffmpeg"], f"the FFmpeg license is {found['ffmpeg']}, not the LGPL")
    print(f"works without the system's libraries: {found}")


def tried(folder: Path, *, hidden: bool) -> subprocess.CompletedProcess[str]:
    """Run package_smoke.py in the environment ``venv`` of a folder.

    Args:
        folder: The folder of ``venv``, also for output files.
        hidden: Whether to hide the system's libraries.
    """
    with answering(folder) as (url, certificate):
        smoke = [folder / "venv/bin/python", "-I", ROOT / "scripts/lib/package_smoke.py"]
        own = ["unshare", "--map-root-user", "--mount", "bash", "-euc", _hiding(), "bash"]
        return subprocess.run(
            [*(own if hidden else []), *smoke, folder, url],
            env={"PATH": "/usr/bin:/bin", "SSL_CERT_FILE": str(certificate), "HOME": str(folder)},
            cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip


def run_as_tool(wheel: Path, folder: Path, path: str | None = None) -> list[str]:
    """Run the wheel with its dependencies by uv and pipx, each time in a new environment.

    Args:
        wheel: The wheel.
        folder: The folder for the environments.
        path: The search path of uv and pipx. Default: None, the PATH variable.

    Returns:
        A line for each tool, also for a missing one.

    Raises:
        SystemExit: The wheel cannot be installed, or does not work.
    """
    lines = []
    for tool, words, option in (("uv", ("tool", "run", "--isolated"), "--from"),
                                ("pipx", ("run", "--no-cache"), "--spec")):  # fmt: skip
        program = shutil.which(tool, path=path)
        if program is None:
            lines.append(f"!!! NOT TESTED: {tool} is not installed")
            continue
        spec = f"{wheel.resolve()}[server]"
        # Earlier environments and caches of the tools are not used.
        places = {name: str(folder / tool / name) for name in
                  ("UV_CACHE_DIR", "UV_TOOL_DIR", "PIPX_HOME", "PIPX_BIN_DIR")}  # fmt: skip
        own = {**os.environ, **_asked_of_pip(), **places}
        done = subprocess.run(
            [program, *words, "--python", sys.executable, option, spec, "polymux", "doctor",
             "--json"], env=own, cwd=folder, capture_output=True, text=True, check=False,
        )  # fmt: skip
        _expect(done.returncode == 0, f"{tool} cannot run the wheel:\n{done.stdout}{done.stderr}")
        found = json.loads(done.stdout)
        works = found["media"]["ok"] and found["server"]
        _expect(works, f"the installation by {tool} is incomplete: {done.stdout}")
        lines.append(f"works with {tool} in a new environment, with the server's dependencies")
    return lines


def _asked_of_pip() -> dict[str, str]:
    """Index and certificates of pip's settings as variables for uv, which does not read these."""
    found = {}
    for name, setting in (("UV_DEFAULT_INDEX", "index-url"), ("SSL_CERT_FILE", "cert")):
        words = [sys.executable, "-m", "pip", "config", "get", f"global.{setting}"]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        own = "PIP_" + setting.upper().replace("-", "_")
        value = os.environ.get(name) or os.environ.get(own) or done.stdout.strip()
        if value:
            found[name] = value
    return found


@contextmanager
def answering(folder: Path) -> "Iterator[tuple[str, Path]]":
    """A TLS server: its URL, and the certificate to trust."""
    certificate, key = folder / "certificate.pem", folder / "key.pem"
    words = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    names = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    files = ["-keyout", key, "-out", certificate]
    subprocess.run([*words, *names, *files], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with ThreadingHTTPServer(("127.0.0.1", 0), _Answers) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield f"https://127.0.0.1:{server.server_port}", certificate
        finally:
            server.shutdown()


def _hiding() -> str:
    """Bash code that hides each such library with /dev/null, and then runs its arguments."""
    lines = subprocess.run(["/sbin/ldconfig", "-p"], check=True, capture_output=True, text=True)
    places = {
        Path(line.rpartition(" => ")[2]).resolve()
        for line in lines.stdout.splitlines()
        if _HIDDEN.search(line)
    }
    program = shutil.which("ffmpeg")
    if program is not None:
        places.add(Path(program).resolve())
    covers = [f"mount --bind /dev/null {place}" for place in sorted(places)]
    return "\n".join([*covers, 'exec "$@"'])


class _Answers(BaseHTTPRequestHandler):
    """Sends the same answer to every request."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length", 0)))
        self.do_GET()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(_ANSWER)))
        self.end_headers()
        self.wfile.write(_ANSWER)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def _run(*words: str | Path) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    _expect(done.returncode == 0, f"{words[0]} fails:\n{done.stdout}{done.stderr}")


def _expect(fulfilled: object, otherwise: str) -> None:
    if not fulfilled:
        sys.exit(f"package_check: {otherwise}")


if __name__ == "__main__":
    main()
