"""Converts weights that torch saved to safetensors.

Torch's files are pickles, and loading a pickle can run any code. A separate process loads them,
with ``weights_only``: torch then creates tensors and refuses everything else.
"""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
import zipfile
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from polymux._util.text import printable, shortened, size
from polymux.errors import MissingDependencyError
from polymux.models.errors import ModelError, check_room, writing

if TYPE_CHECKING:
    from collections.abc import Iterator

    import torch

#: Tied weights are several names of one tensor. T5 and mBART have four, and each one is written.
_MAX_RATIO = 4

#: Memory for loading, in addition to the file.
_LOADING_BYTES = 1 << 30


def check_torch(name: str) -> None:
    """Raise `MissingDependencyError` if torch or safetensors is not installed."""
    for package in ("torch", "safetensors"):
        if find_spec(package) is None:
            raise MissingDependencyError(
                f"missing dependency: {package}, which converts the pickled weights of {name}. "
                "Run: pip install 'polymux[diffusion]'"
            )


def convert(source: Path, target: Path, name: str = "") -> None:
    """Write the tensors of a file as safetensors.

    Args:
        source: A file of ``torch.save``, of torch 1.6 or newer.
        target: The new file.
        name: The name of `source` in errors. Default: its file name.

    Raises:
        ModelError: It is not such a file, is damaged, or contains more than tensors.
        MissingDependencyError: Torch is not installed.
        OutputFailedError: The disk has not enough space.
    """
    name = name or source.name
    check_torch(name)
    try:
        with writing(target):
            check_room(f"the tensors of {name}", target.parent, source.stat().st_size)
        done = subprocess.run(  # noqa: S603 - this interpreter and this module
            [sys.executable, "-P", "-m", __name__, os.fspath(source), os.fspath(target)],
            capture_output=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        _check(done, name)
        with writing(target), target.open("rb") as file:
            os.fsync(file.fileno())
    except BaseException:
        target.unlink(missing_ok=True)
        raise


def _check(done: subprocess.CompletedProcess[bytes], name: str) -> None:
    if done.returncode == 0:
        return
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    reason = f"the conversion process exited with status {done.returncode} (out of memory?)"
    if done.returncode > 0 and lines:
        reason = shortened(printable(lines[-1]))
    raise ModelError(f"{name} cannot be converted to safetensors: {reason}")


class _RefusedError(Exception):
    pass


@contextmanager
def _limited_memory(more_bytes: int) -> Iterator[None]:
    """Let this process allocate at most `more_bytes` in addition to what it has."""
    pages = int(Path("/proc/self/statm").read_bytes().split()[5])
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = pages * resource.getpagesize() + more_bytes
    if soft != resource.RLIM_INFINITY:
        most = min(most, soft)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _loaded(source: str) -> object:
    import torch

    have = Path(source).stat().st_size
    # The types that torch allows include bytearray, which allocates any size that a file names.
    try:
        with _limited_memory(have + _LOADING_BYTES):
            return torch.load(source, map_location="cpu", weights_only=True, mmap=True)
    except MemoryError:
        raise _RefusedError(
            f"the file is too large when loaded (allowed: its {size(have)} and "
            f"{size(_LOADING_BYTES)})"
        ) from None


def _tensors(source: str) -> dict[str, torch.Tensor]:
    with zipfile.ZipFile(source) as archive:
        # Torch never compresses. A small file could otherwise fill the memory.
        if any(one.compress_type != zipfile.ZIP_STORED for one in archive.infolist()):
            raise _RefusedError("the file is compressed")

    import torch

    found = _loaded(source)
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    named = found.items() if isinstance(found, dict) else ()
    tensors = {str(key): one.detach() for key, one in named if isinstance(one, torch.Tensor)}
    if not tensors:
        raise _RefusedError("the file does not contain a table of tensors")
    made, have = sum(one.nbytes for one in tensors.values()), Path(source).stat().st_size
    if made > _MAX_RATIO * have:
        raise _RefusedError(
            f"the tensors are too large (got {size(made)} in a file of {size(have)}, allowed "
            f"{_MAX_RATIO} times its size)"
        )
    seen: set[int] = set()
    for key, one in tensors.items():
        place = one.untyped_storage().data_ptr()
        # Only a tensor that shares no memory with another can be saved.
        if place in seen or not one.is_contiguous():
            tensors[key] = one.clone(memory_format=torch.contiguous_format)
        seen.add(place)
    return tensors


def _main(source: str, target: str) -> str | None:
    """The work of the separate process. Returns the reason of a failure."""
    try:
        tensors = _tensors(source)

        from safetensors.torch import save_file

        save_file(tensors, target, metadata={"format": "pt"})
    except _RefusedError as error:
        return str(error)
    except zipfile.BadZipFile:
        return "the file is damaged, or was written by a torch version before 1.6"
    except Exception as error:
        kind = type(error).__name__
        if kind == "UnpicklingError":
            named = re.search(r"GLOBAL (\S+)", str(error))
            what = named[1] if named else "objects"
            return f"the file contains {what}, but only tensors are allowed"
        return f"{kind}: {error}".splitlines()[0]
    return None


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
