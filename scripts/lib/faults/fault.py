"""A fault: one small wrong change of one line."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from pathlib import Path


class Site(NamedTuple):
    """A possible fault in a text. Lines count from 1, columns from 0, in characters."""

    line: int
    column: int
    before: str
    after: str
    kind: str


@dataclass(frozen=True)
class Fault:
    path: str
    line: int
    column: int
    before: str
    after: str
    kind: str
    #: Finds the line again after lines above it were added or removed.
    line_sha256: str

    @property
    def is_cpp(self) -> bool:
        return self.path.startswith("cpp/")

    def find_line(self, lines: list[str]) -> int | None:
        """Return the line's index: at its old place, or that of the only line with this text."""
        if self.line <= len(lines) and sha256(lines[self.line - 1]) == self.line_sha256:
            return self.line - 1
        found = [index for index, line in enumerate(lines) if sha256(line) == self.line_sha256]
        return found[0] if len(found) == 1 else None

    def planted_line(self, line: str) -> str:
        return line[: self.column] + self.after + line[self.column + len(self.before) :]

    def planted(self, text: str) -> str | None:
        """Return the text with the fault, or None if the line is missing."""
        lines = text.split("\n")
        if (index := self.find_line(lines)) is None:
            return None
        lines[index] = self.planted_line(lines[index])
        return "\n".join(lines)


def fault_at(path: str, text: str, site: Site) -> Fault:
    line = text.split("\n")[site.line - 1]
    return Fault(path, *site, line_sha256=sha256(line))


def sha256(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def save(faults: list[Fault], file: Path) -> None:
    file.write_text(json.dumps([asdict(fault) for fault in faults], indent=1) + "\n")


def load(file: Path) -> list[Fault]:
    return [Fault(**fields) for fields in json.loads(file.read_text())]
