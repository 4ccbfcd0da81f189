"""The tables of docs/deploy/configuration.md, from the docstrings of the settings classes.

The classes are parsed, not imported: importing them needs the compiled extension modules.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

    from contract.model import Contract

PAGE = "docs/deploy/configuration.md"
_ROOT = Path(__file__).resolve().parents[3]
_PACKAGE = _ROOT / "python/polymux"
#: One table is between these marks: `<!-- limits: begin -->` and `<!-- limits: end -->`.
_MARKED = re.compile(r"(<!-- ([\w ]+): begin -->\n).*?(<!-- \2: end -->)", re.DOTALL)
_HEAD = "| setting | type | default | meaning |\n|---|---|---|---|\n"
_TYPES = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "Path": "path",
    "os.PathLike[str]": "path",
    "tuple[str, ...]": "array of strings",
    "tuple[int, ...]": "array of integers",
}
_BOOLEANS = {"true.": "`true`", "false.": "`false`"}
_UNITS = (("_per_s", "bytes per second"), ("_s", "seconds"), ("bytes", "bytes"))


class Table(NamedTuple):
    """A settings class. `left_out` are fields that have separate tables."""

    file: str
    name: str
    left_out: tuple[str, ...] = ()


TABLES = {
    "server": Table("server/settings/settings.py", "ServerSettings", ("compat",)),
    "compat": Table("server/settings/settings.py", "CompatSettings"),
    "store": Table("runtime/settings.py", "StoreSettings"),
    "limits": Table("runtime/settings.py", "Limits"),
    "fetch": Table("fetch/policy.py", "FetchPolicy"),
    "engines": Table("runtime/settings.py", "EngineSettings"),
    "media limits": Table("media/options.py", "Limits"),
    "upstreams": Table("runtime/upstream_settings.py", "UpstreamSettings"),
    "routes": Table("service/routes.py", "Route"),
    "songs": Table("songs/settings.py", "SongSettings"),
    "song_recognition": Table("upstreams/song_recognition/settings.py", "SongRecognitionSettings"),
    "song_search": Table("upstreams/song_search/settings.py", "SongSearchSettings"),
    "download": Table("downloads/settings.py", "DownloadSettings"),
    "summaries": Table("summaries/settings.py", "SummaryOptions"),
    "ray": Table("ray/settings.py", "RaySettings"),
}


def files(contract: Contract) -> dict[str, str]:  # noqa: ARG001 - as the other generators
    """Map the path of the page, relative to the repository root, to the page with new tables."""
    text = (_ROOT / PAGE).read_text(encoding="utf-8")
    return {PAGE: _MARKED.sub(lambda mark: mark[1] + rows(TABLES[mark[2]]) + mark[3], text)}


def rows(table: Table) -> str:
    """The Markdown of one table."""
    return _HEAD + "".join(_rows(table))


def _rows(table: Table) -> Iterator[str]:
    tree = ast.parse((_PACKAGE / table.file).read_text(encoding="utf-8"))
    found = next(
        one for one in tree.body if isinstance(one, ast.ClassDef) and one.name == table.name
    )
    documented = attributes(ast.get_docstring(found) or "")
    for one in found.body:
        if not isinstance(one, ast.AnnAssign) or not isinstance(one.target, ast.Name):
            continue
        name = one.target.id
        if name in table.left_out:
            continue
        meaning, _, default = documented[name].rpartition("Default: ")
        if not meaning:
            meaning, default = documented[name], ""
        if documented[name].startswith("Default: "):
            raise ValueError(
                f"{table.name}.{name} in {table.file}: missing description before the default"
            )
        default = _BOOLEANS.get(default.lower(), default).removesuffix(".") or _literal(one.value)
        cells = (f"`{name}`", _type(name, one), default, meaning.strip().removesuffix("."))
        yield f"| {' | '.join(_cell(cell) for cell in cells)} |\n"


def attributes(docstring: str) -> dict[str, str]:
    """Names and texts below `Attributes:` of a docstring."""
    found: dict[str, str] = {}
    lines = docstring.partition("Attributes:\n")[2].splitlines()
    for line in lines:
        if line and not line.startswith(" "):
            break
        begin = re.match(r"    (\w+): (.*)", line)
        if begin:
            found[begin[1]] = begin[2]
        elif line.strip():
            last = next(reversed(found))
            found[last] += f" {line.strip()}"
    return found


def _literal(value: ast.expr | None) -> str:
    """The default that the class has; `required` without one."""
    if value is None:
        return "required"
    if isinstance(value, ast.Call):
        given = {one.arg: one.value for one in value.keywords}
        if not given.keys() & {"default", "default_factory"}:
            return "required"
        value = given.get("default")
    if isinstance(value, ast.Constant) and value.value is not None:
        text = str(value.value)
        if isinstance(value.value, str):
            return f'`"{text}"`'
        return f"`{text.lower()}`"
    return ""


def _type(name: str, one: ast.AnnAssign) -> str:
    plain = ast.unparse(one.annotation)
    names = [_TYPES[part] for part in plain.split(" | ") if part in _TYPES]
    words = names[-1] if names else "table"
    unit = next((unit for end, unit in _UNITS if name.endswith(end)), "")
    if unit and words in ("integer", "number"):
        words = f"{words} ({unit})"
    bounds = _bounds(one.value)
    return f"{words}, {bounds}" if bounds else words


def _bounds(value: ast.expr | None) -> str:
    """The range that a field's `rule` has, if it has one."""
    for call in ast.walk(value) if value is not None else ():
        if isinstance(call, ast.Call) and ast.unparse(call.func) == "rule":
            given = {
                one.arg: one.value.value
                for one in call.keywords
                if isinstance(one.value, ast.Constant) and isinstance(one.value.value, int)
            }
            low, high = given.get("min"), given.get("max")
            if low is not None and high is not None:
                return f"{low:,} to {high:,}"
            if low is not None:
                return f"{low:,} or more"
    return ""


def _cell(text: str) -> str:
    return text.replace("``", "`").replace("|", "\\|")
