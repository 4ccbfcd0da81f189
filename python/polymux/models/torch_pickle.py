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
from contextlib import contextmanager
from math import prod
from typing import TYPE_CHECKING, Any, NamedTuple

from polymux._util.text import shown, size
from polymux.errors import PolymuxError
from polymux.models.errors import ModelError, check_room, writing

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

_PROGRAM_BYTES = 64 << 20
_PIECE_BYTES = 1 << 20
_LENGTH = struct.Struct("<Q")
_ALIGNMENT = 8
_MAX_NAME_CHARACTERS = 1000
_MAX_AXES = 8
_MAX_AXIS_LENGTH = 1 << 62
_BYTE_ORDER = b"little"
#: What torch's own reader of archives knows; what is deflated unpacks piece by piece, and others
#: to whatever they hold at once.
_PACKED = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED)
#: How often the same numbers may be written. Tied weights are several names of one storage, four
#: of them where an encoder and a decoder share what they embed with (T5, mBART), and torch writes
#: what it stores as it is: no file of its makes more than that of its own bytes.
_MAX_STORAGE_RATIO = 4
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
        ModelError: It is no such file, is damaged, or asks for more than its numbers.
        OutputFailedError: It cannot be written, or the disk has no room for it.
    """
    name = name or source.name
    with _reading(name), zipfile.ZipFile(source) as archive:
        top, tensors = _tensors(archive)
        _check_amount(archive, top, tensors, source.stat().st_size)
        head = _head(tensors)
        _check_room(target, name, len(head) + sum(one.bytes for one in tensors.values()))
        with writing(target), target.open("xb") as file:
            try:
                file.write(head)
                for piece in _numbers(archive, top, tensors, name):
                    file.write(piece)
                file.flush()
                os.fsync(file.fileno())
            except BaseException:
                # Half of the weights is none, and what fills a disk must not stay.
                target.unlink(missing_ok=True)
                raise


@contextmanager
def _reading(name: str) -> Iterator[None]:
    """Failures of the reader, and of the file, as one error that calls the file `name`.

    Raises:
        ModelError: Whatever went wrong but a failure that is told already.
    """
    try:
        yield
    except PolymuxError:
        raise
    except Exception as error:
        # Anything: what unpickling or unpacking a damaged file raises, nobody has a list of.
        number = getattr(error, "errno", None)
        if number is not None:  # The system's, and no word about what the file holds.
            raise ModelError(
                f"{name} cannot be read: {os.strerror(number)}", errno=number
            ) from error
        raise ModelError(
            f"{name} holds no weights that can be read without running it: "
            f"{shown(str(error) or type(error).__name__)}"
        ) from None


def _tensors(archive: zipfile.ZipFile) -> tuple[str, dict[str, _Tensor]]:
    """The archive's own folder, and the tensors by their names."""
    programs = [one for one in archive.infolist() if one.filename.endswith("/data.pkl")]
    if len(programs) != 1 or programs[0].file_size > _PROGRAM_BYTES:
        raise _RefusedError("it is no archive of torch's")
    if not all(one.compress_type in _PACKED for one in archive.infolist()):
        raise _RefusedError("it is packed as no file of torch's is")
    top = programs[0].filename.removesuffix("data.pkl")
    orders = [one for one in archive.namelist() if one == f"{top}byteorder"]
    if orders and _begin(archive, orders[0], len(_BYTE_ORDER) + 1) != _BYTE_ORDER:
        raise _RefusedError("its numbers are of another byte order")
    found = _Reader(io.BytesIO(_begin(archive, programs[0].filename, _PROGRAM_BYTES))).load()
    if isinstance(found, dict) and isinstance(found.get("state_dict"), dict):
        found = found["state_dict"]
    if not isinstance(found, dict):
        raise _RefusedError("it is no table of tensors")
    tensors = {key: one for key, one in found.items() if isinstance(one, _Tensor)}
    if not tensors or not all(
        isinstance(key, str) and len(key) < _MAX_NAME_CHARACTERS for key in tensors
    ):
        raise _RefusedError("it is no table of tensors")
    return top, tensors


def _begin(archive: zipfile.ZipFile, member: str, count: int) -> bytes:
    """So many bytes at most: without a number all is unpacked, whatever the archive says it is."""
    with archive.open(member) as file:
        return file.read(count)


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
    if len(axes) > _MAX_AXES or not all(
        isinstance(one, int) and 0 <= one < _MAX_AXIS_LENGTH for one in axes
    ):
        raise _RefusedError("a tensor of it has no shape")
    step = 1
    for length, own in reversed(list(zip(axes, tuple(stride), strict=True))):
        if length > 1 and own != step:
            raise _RefusedError("a tensor of it lies in another order")
        step *= length
    return _Tensor(storage.key, storage.kind, first, axes)


def _check_amount(
    archive: zipfile.ZipFile, top: str, tensors: Mapping[str, _Tensor], fetched: int
) -> None:
    """Refuses what would write the same few numbers over and over, or unpack them from nothing."""
    keys = {one.key for one in tensors.values()}
    stored = sum(archive.getinfo(_member(top, key)).file_size for key in keys)
    wanted = sum(one.bytes for one in tensors.values())
    if wanted > _MAX_STORAGE_RATIO * min(stored, fetched):
        raise _RefusedError(
            f"it would make {size(wanted)} of the {size(min(stored, fetched))} that it has"
        )


def _check_room(target: Path, name: str, needed: int) -> None:
    """As a pull does before it fetches, when nobody knows yet how much the numbers are."""
    with writing(target):
        check_room(f"the numbers of {name}", target.parent, needed)


def _head(tensors: Mapping[str, _Tensor]) -> bytes:
    """What safetensors has before its numbers."""
    head: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    place = 0
    for name, one in tensors.items():
        span = [place, place + one.bytes]
        head[name] = {"dtype": _KINDS[one.kind][0], "shape": one.shape, "data_offsets": span}
        place = span[1]
    data = json.dumps(head).encode()
    data += b" " * (-len(data) % _ALIGNMENT)
    return _LENGTH.pack(len(data)) + data


def _numbers(
    archive: zipfile.ZipFile, top: str, tensors: Mapping[str, _Tensor], name: str
) -> Iterator[bytes]:
    """The numbers of all tensors in pieces; failures are of reading, whoever writes them.

    Raises:
        ModelError: Some are damaged or missing.
    """
    with _reading(name):
        for tensor, one in tensors.items():
            with archive.open(_member(top, one.key)) as numbers:
                numbers.seek(one.first * _KINDS[one.kind][1])
                left = one.bytes
                while left:
                    piece = numbers.read(min(left, _PIECE_BYTES))
                    if not piece:
                        raise _RefusedError(f"numbers of {tensor} are missing")
                    yield piece
                    left -= len(piece)


def _member(top: str, key: str) -> str:
    return f"{top}data/{key}"
