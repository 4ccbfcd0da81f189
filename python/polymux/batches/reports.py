"""Reports of all items as CSV, JSON lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
import os
from importlib import import_module
from itertools import islice
from typing import TYPE_CHECKING, Any, BinaryIO

from polymux._util.atomic_file import PendingFile, reported
from polymux._util.text import display_name
from polymux.errors import InvalidRequestError, MissingDependencyError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

#: Maps names to Arrow types.
COLUMNS = {
    "id": "int64", "input": "string", "state": "string", "outputs": "list",
    "copied_from": "int64", "error_code": "string", "error_message": "string", "tries": "int64",
    "elapsed_s": "float64", "size_bytes": "int64", "identity": "string",
}  # fmt: skip
#: Spreadsheets treat cells with these prefixes as formulas (CSV injection).
_FORMULA_BEGINS = ("=", "+", "-", "@", "\t", "\r")
_ROWS_TOGETHER = 5000


def check_report(path: Path) -> None:
    """Check the format of a report before the batch starts.

    Raises:
        InvalidRequestError: The suffix is not supported.
        MissingDependencyError: The package for Parquet is not installed.
    """
    if path.suffix.lower() not in _WRITERS:
        raise InvalidRequestError(
            f"report '{display_name(path.name)}': unsupported file type (allowed .csv, .jsonl or "
            ".parquet)"
        )
    if path.suffix.lower() == ".parquet":
        _parquet_package()


def check_place(path: Path) -> None:
    """Check that a report can be written. The output directory must exist.

    Raises:
        OutputError: The report's directory does not exist or is not writable, or the path is not a
            file.
    """
    PendingFile(path, overwrite=True).discard()


def write_report(items: Iterable[dict[str, Any]], path: Path, *, overwrite: bool) -> Path:
    r"""Write a report. The file appears only when it is complete.

    The items are those of `BatchItem.to_dict`.

    Bytes of names that are not UTF-8 are written as ``\xff``, because the programs that read
    reports only support UTF-8. `BatchReport.items` has the original names.

    Raises:
        InvalidRequestError: The suffix is not supported.
        MissingDependencyError: The package for Parquet is not installed.
        OutputError: The file cannot be written.
    """
    check_report(path)
    pending = PendingFile(path, overwrite=overwrite)
    try:
        with reported(path), open(pending.descriptor, "wb", closefd=False) as file:
            _WRITERS[path.suffix.lower()](map(_utf8, items), file)
        pending.commit()
    finally:
        pending.discard()
    return path


def _csv(items: Iterable[dict[str, Any]], file: BinaryIO) -> None:
    """Write RFC 4180 CSV with a header line. Several outputs of an item are joined by newlines."""
    text = io.TextIOWrapper(file, "utf-8", newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(map(_cells, items))
    text.detach()


def _cells(item: dict[str, Any]) -> list[str]:
    values = item | {"outputs": "\n".join(item["outputs"])}
    return [_cell(values.get(name, "")) for name in COLUMNS]


def _cell(value: Any) -> str:
    text = str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(_FORMULA_BEGINS) else text


def _jsonl(items: Iterable[dict[str, Any]], file: BinaryIO) -> None:
    file.writelines(json.dumps(item).encode() + b"\n" for item in items)


def _parquet(items: Iterable[dict[str, Any]], file: BinaryIO) -> None:
    arrow, parquet = _parquet_package()
    texts = arrow.list_(arrow.string())
    schema = arrow.schema({
        name: texts if kind == "list" else arrow.type_for_alias(kind)
        for name, kind in COLUMNS.items()
    })  # fmt: skip
    with parquet.ParquetWriter(file, schema) as writer:
        rest = iter(items)
        while some := list(islice(rest, _ROWS_TOGETHER)):
            writer.write_table(arrow.Table.from_pylist(some, schema=schema))


def _utf8(value: Any) -> Any:
    if isinstance(value, str):
        return os.fsencode(value).decode("utf-8", "backslashreplace")
    if isinstance(value, list):
        return [_utf8(one) for one in value]
    if isinstance(value, dict):
        return {name: _utf8(one) for name, one in value.items()}
    return value


def _parquet_package() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError as error:
        raise MissingDependencyError(
            "missing dependency: pyarrow, for Parquet reports. Run: pip install 'polymux[batch]', "
            "or use .csv or .jsonl"
        ) from error


_WRITERS: dict[str, Callable[[Iterable[dict[str, Any]], BinaryIO], None]] = {
    ".csv": _csv,
    ".jsonl": _jsonl,
    ".parquet": _parquet,
}
