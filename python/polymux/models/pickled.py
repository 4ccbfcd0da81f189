"""Weights out of torch's old files, pickles in an archive, as data: nothing in them is run.

https://docs.python.org/3/library/pickle.html: a pickle is a program, and `pickle.load` runs it.
Here it may name nothing but a tensor's place and shape, a table, and the kinds of numbers that
torch has; whatever else it names ends the reading. The numbers lie beside it in the archive
(https://docs.pytorch.org/docs/stable/notes/serialization.html) and are copied into a file of
safetensors (https://huggingface.co/docs/safetensors), which holds numbers alone.
"""

from __future__ import annotations

import io
import json
import os
import pickle
import struct
import zipfile
from collections import OrderedDict
from math import prod
from typing import IO, TYPE_CHECKING, Any, NamedTuple, NoReturn

from polymux._text import shown
from polymux.models.failures import ModelError, writing

if TYPE_CHECKING:
    from pathlib import Path

_PROGRAM_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 8
_LONGEST_NAME = 1000
_MOST_AXES = 8
#: torch's kinds of storages to safetensors' kinds of numbers, and the bytes of one.
_KINDS = {
    "DoubleStorage": ("F64", 8),
    "FloatStorage": ("F32", 4),
    "HalfStorage": ("F16", 2),
    "BFloat16Storage": ("BF16", 2),
    "LongStorage": ("I64", 8),
    "IntStorage": ("I32", 4),
    "ShortStorage": ("I16", 2),
    "CharStorage": ("I8", 1),
    "ByteStorage": ("U8", 1),
    "BoolStorage": ("BOOL", 1),
}


class _Storage(NamedTuple):
    key: str
    kind: str


class _Tensor(NamedTuple):
    key: str
    kind: str
    first: int
    shape: tuple[int, ...]

    @property
    def bytes(self) -> int:
        return prod(self.shape) * _KINDS[self.kind][1]


class _RefusedError(Exception):
    """The pickle asks for something else."""


def convert(source: Path, target: Path, name: str = "") -> None:
    """Writes the weights of one of torch's files as safetensors.

    Args:
        source: What ``torch.save`` wrote since its version 1.6.
        target: The file, which must not exist.
        name: What errors call it. Default: `source`'s name.

    Raises:
        ModelError: It is no such file, or asks for more than numbers.
        OutputFailedError: It cannot be written.
    """
    try:
        with zipfile.ZipFile(source) as archive:
            top, tensors = _tensors(archive)
            with writing(target), target.open("xb") as file:
                _write(archive, top, tensors, file)
                file.flush()
                os.fsync(file.fileno())
    except (
        zipfile.BadZipFile, pickle.UnpicklingError, _RefusedError, ValueError, TypeError, KeyError,
        AttributeError, IndexError, EOFError, MemoryError, RecursionError, NotImplementedError,
        RuntimeError,
    ) as error:  # fmt: skip
        target.unlink(missing_ok=True)
        raise ModelError(
            f"{name or source.name} holds no weights that can be read without running it: "
            f"{shown(str(error) or type(error).__name__)}"
        ) from None


def _tensors(archive: zipfile.ZipFile) -> tuple[str, dict[str, _Tensor]]:
    """The archive's own folder, and the tensors by their names."""
    programs = [one for one in archive.infolist() if one.filename.endswith("/data.pkl")]
    if len(programs) != 1 or programs[0].file_size > _PROGRAM_BYTES:
        raise _RefusedError("it is no archive of torch's")
    top = programs[0].filename.removesuffix("data.pkl")
    orders = [one for one in archive.namelist() if one == f"{top}byteorder"]
    if orders and archive.read(orders[0]) != b"little":
        raise _RefusedError("its numbers are of another byte order")
    found = _Reader(io.BytesIO(archive.read(programs[0]))).load()
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict):
        raise _RefusedError("it is no table of tensors")
    tensors = {key: one for key, one in found.items() if isinstance(one, _Tensor)}
    if not tensors or not all(isinstance(key, str) and len(key) < _LONGEST_NAME for key in tensors):
        raise _RefusedError("it is no table of tensors")
    return top, tensors


class _Reader(pickle.Unpickler):
    """Knows the few names that tables of tensors need, and makes no object of anybody's."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for."""
        if (module, name) == ("collections", "OrderedDict"):
            return OrderedDict
        if module in ("torch", "torch.storage") and name in _KINDS:
            return name
        # Functions of this reading alone: a pickle can change what it is given.
        if (module, name) == ("torch._utils", "_rebuild_tensor_v2"):
            return lambda *arguments: _rebuilt(*arguments)
        if (module, name) == ("torch._utils", "_rebuild_parameter"):
            return lambda tensor, *_: tensor
        raise _RefusedError(f"it names {module}.{name}")

    def persistent_load(self, pid: Any) -> _Storage:
        """Where numbers lie."""
        what, kind, key, *_ = pid
        if what != "storage" or kind not in _KINDS or not str(key).isdecimal():
            raise _RefusedError("it names numbers that are none")
        return _Storage(str(key), kind)


def _rebuilt(storage: Any, first: Any, shape: Any, stride: Any, *_: object) -> _Tensor:
    if not isinstance(storage, _Storage) or not isinstance(first, int) or first < 0:
        raise _RefusedError("a tensor of it lies nowhere")
    axes = tuple(shape)
    if len(axes) > _MOST_AXES or not all(isinstance(one, int) and one >= 0 for one in axes):
        raise _RefusedError("a tensor of it has no shape")
    step = 1
    for length, own in reversed(list(zip(axes, tuple(stride), strict=True))):
        if length > 1 and own != step:
            raise _RefusedError("a tensor of it lies in another order")
        step *= length
    return _Tensor(storage.key, storage.kind, first, axes)


def _write(
    archive: zipfile.ZipFile, top: str, tensors: dict[str, _Tensor], file: IO[bytes]
) -> None:
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, one in tensors.items():
        span = [place, place + one.bytes]
        head[name] = {"dtype": _KINDS[one.kind][0], "shape": one.shape, "data_offsets": span}
        place = span[1]
    data = json.dumps(head).encode()
    data += b" " * (-len(data) % _ALIGNMENT)
    file.write(_LENGTH.pack(len(data)) + data)
    for name, one in tensors.items():
        _copy(archive, f"{top}data/{one.key}", one, name, file)


def _copy(archive: zipfile.ZipFile, member: str, one: _Tensor, name: str, file: IO[bytes]) -> None:
    with archive.open(member) as numbers:
        numbers.seek(one.first * _KINDS[one.kind][1])
        left = one.bytes
        while left:
            piece = numbers.read(min(left, _PIECE_BYTES))
            if not piece:
                _short(name)
            file.write(piece)
            left -= len(piece)


def _short(name: str) -> NoReturn:
    raise _RefusedError(f"numbers of {name} are missing")
