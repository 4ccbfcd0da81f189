"""Executed notebooks as documentation pages: their cells and outputs."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from support.native_build import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from nbformat import NotebookNode

PAGES = ROOT / "notebooks" / "pages"
_END = "<!-- end of the output -->"
_BAR = "application/vnd.jupyter.widget-view+json"
_COLOURS = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")
_DATA = re.compile(r"data:\w+/[\w.+-]+;base64,[\w+/=]*")
_MEDIA = re.compile(r"<(audio|video|img)[^>]*>(?:</\1>)?")
#: Paths on this machine are private, and change with each run.
PATHS = re.compile(r"(?<![\w.:/])/(?:tmp|root|home|work|usr|var|opt)/[^\s\"'<>)\],]*")
_PORTS = re.compile(r"(?<=127\.0\.0\.1:)\d+")
_MAX_DATA_CHARACTERS = 200_000


def page_path(name: str) -> Path:
    return PAGES / f"{name}.md"


def page_of(notebook: NotebookNode, name: str) -> str:
    first, *rest = notebook.cells
    note = (
        f"This page shows [notebooks/{name}.ipynb](../{name}.ipynb) after a run. "
        "`scripts/notebooks` generates it."
    )
    parts = [first.source, note]
    for cell in rest:
        if cell.cell_type == "markdown":
            parts.append(cell.source)
        else:
            parts.append(f"```python\n{cell.source}\n```")
            parts += [shown for shown in _outputs(cell) if shown]
    lines = "\n\n".join(parts).splitlines()
    return "\n".join(line.rstrip() for line in lines) + "\n"


def _outputs(cell: NotebookNode) -> Iterator[str]:
    """The outputs of a cell in order; consecutive printed texts are joined."""
    printed = ""
    for one in cell.outputs:
        if one.output_type == "stream":
            printed += one.text
            continue
        yield _text(printed)
        printed = ""
        yield _shown(one.data)
    yield _text(printed)


def _shown(data: NotebookNode) -> str:
    if _BAR in data:
        return "*(progress bar)*"
    html = data.get("text/html", "")
    if "image/png" in data:
        html = f'<img src="data:image/png;base64,{"".join(data["image/png"].split())}">'
    if html:
        return f'<div class="output">\n{_plain(html).strip()}\n</div>{_END}'
    if "text/markdown" in data:
        return "\n".join(f"> {line}" for line in _plain(data["text/markdown"]).splitlines())
    return _text(data.get("text/plain", ""))


def _text(text: str) -> str:
    # Keep the last state of an overwritten line.
    lines = [line.rpartition("\r")[2] for line in _plain(text).strip("\n").split("\n")]
    content = "\n".join(lines).replace("```", "'''")
    return f"```text\n{content}\n```" if content.strip() else ""


def _plain(text: str) -> str:
    """Remove terminal colors, local paths, and media that are too large for a page."""
    text = _MEDIA.sub(_small_enough, _PORTS.sub("8000", _COLOURS.sub("", text)))
    pieces, position = [], 0
    for media in _DATA.finditer(text):
        pieces += [PATHS.sub(_last_part, text[position : media.start()]), media[0]]
        position = media.end()
    return "".join([*pieces, PATHS.sub(_last_part, text[position:])])


def _small_enough(media: re.Match[str]) -> str:
    large = len(media[0]) > _MAX_DATA_CHARACTERS
    return f"({media[1]}, too large for this page)" if large else media[0]


def _last_part(path: re.Match[str]) -> str:
    return "…/" + path[0].rstrip("/").rpartition("/")[2]


def skeleton(page: str) -> str:
    """A page without the parts that change from run to run: outputs are replaced by their kind."""
    page = re.sub(r"^```text\n.*?^```$", "[text]", page, flags=re.MULTILINE | re.DOTALL)
    page = re.sub(rf'<div class="output">.*?</div>{_END}', "[html]", page, flags=re.DOTALL)
    return re.sub(r"^>.*\n(?:>.*\n?)*", "[markdown]\n", page, flags=re.MULTILINE)


def places(page: str) -> list[str]:
    """The absolute paths in a page, except within media data."""
    return PATHS.findall(_DATA.sub("", page))
