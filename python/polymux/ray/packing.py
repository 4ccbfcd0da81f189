"""Orders and outcomes as bytes: JSON, and behind it the files. Nothing that is read can run."""

from __future__ import annotations

import json
import struct
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.errors import InternalError, PolymuxError
from polymux.ray.batch_queue import Order, Outcome

if TYPE_CHECKING:
    from collections.abc import Sequence

_LENGTH = struct.Struct("<Q")


def _packed(head: dict[str, Any], files: Sequence[bytes]) -> bytes:
    """JSON and files, with their lengths."""
    text = json.dumps({**head, "lengths": [len(one) for one in files]}).encode("ascii")
    return b"".join((_LENGTH.pack(len(text)), text, *files))


def _unpacked(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    end = _LENGTH.size + _LENGTH.unpack_from(data)[0]
    head: dict[str, Any] = json.loads(data[_LENGTH.size : end])
    files = []
    for length in head["lengths"]:
        files.append(data[end : end + length])
        end += length
    return head, files


def packed_order(order: Order) -> bytes:
    """An order as bytes.

    Example:
        >>> from polymux.ray.batch_queue import Order
        >>> from polymux.ray.packing import packed_order, unpacked_order
        >>> order = Order(7, {"file": "a.wav"}, {"file": b"RIFF"}, {"file": 4}, "out/7")
        >>> unpacked_order(packed_order(order)) == order
        True
    """
    head = order._replace(contents={})._asdict() | {"names": list(order.contents)}
    return _packed(head, list(order.contents.values()))


def unpacked_order(data: bytes) -> Order:
    """The order that was packed."""
    head, files = _unpacked(data)
    contents = dict(zip(head["names"], files, strict=True))
    return Order(head["key"], head["fields"], contents, head["sizes"], head["staging"])


def packed_outcome(outcome: Outcome) -> bytes:
    """An outcome as bytes; an error that is none of polymux's becomes words.

    Example:
        >>> import polymux
        >>> from polymux.ray.batch_queue import Outcome
        >>> from polymux.ray.packing import packed_outcome, unpacked_outcome
        >>> failed = Outcome(7, polymux.NoAudioError("no sound", input_name="a.mkv"))
        >>> unpacked_outcome(packed_outcome(failed)).error
        NoAudioError('no sound')
    """
    names = [[one, file if isinstance(file, str) else None] for one, file in outcome.files]
    head = {"key": outcome.key, "error": _told(outcome.error), "names": names}
    return _packed(head, [file for _, file in outcome.files if isinstance(file, bytes)])


def unpacked_outcome(data: bytes) -> Outcome:
    """The outcome that was packed."""
    head, contents = _unpacked(data)
    rest = iter(contents)
    files = tuple((one, next(rest) if name is None else name) for one, name in head["names"])
    return Outcome(head["key"], _error(head["error"]), files)


def _told(error: Exception | None) -> dict[str, Any] | None:
    """An error as JSON: its class by name, and what it says."""
    if error is None:
        return None
    if not isinstance(error, PolymuxError) or not hasattr(errors, type(error).__name__):
        error = InternalError(f"{type(error).__name__}: {error}")
    _, (kind, message, details), state = error.__reduce__()
    plain = {name: one for name, one in state.items() if _is_plain(one)}
    return {"kind": kind.__name__, "message": message, "details": details, "state": plain}


def _is_plain(value: object) -> bool:
    if isinstance(value, dict):
        return all(isinstance(name, str) and _is_plain(one) for name, one in value.items())
    return value is None or isinstance(value, (str, int, float))


def _error(told: dict[str, Any] | None) -> Exception | None:
    if told is None:
        return None
    error: Exception = getattr(errors, told["kind"])(told["message"], **told["details"])
    error.__dict__.update(told["state"])
    return error
