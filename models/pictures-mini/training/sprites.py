"""Builds the sprites that `compose.read_bank` reads: clip art, emoji and plain shapes.

    sprites.py ROOT OUT

ROOT is a folder with three unpacked Debian packages: drawings of Open Clip Art, Noto Color
Emoji, and the names of emoji from Unicode CLDR. They need not be installed:

    apt-get download openclipart-svg fonts-noto-color-emoji unicode-cldr-core
    for package in *.deb; do dpkg -x $package ROOT; done
    pip install resvg-py fonttools pillow numpy
    apt-get install librsvg2-bin

resvg draws the SVG files. rsvg-convert (librsvg2-bin) draws the few that resvg refuses; without it
they are left out. `prepare.py`, `train.py` and `judge.py` also read a list of English words, such
as /usr/share/dict/words from Debian's `wamerican`.

OUT/sprites.bin contains the images one after the other, each a WebP file of 128 x 128 pixels with
alpha. OUT/sprites.json is a list with one object for each:

    off, len   offset and length of the image in sprites.bin, in bytes
    name       what it shows: "birthday cake"
    keys       up to 8 more words for it
    src        "clipart", "emoji" or "shape"
    file       the SVG file below usr/share/openclipart/svg, the font's glyph, or the shape
    folder     the last folder of a drawing: "animals"
    bw         whether a drawing has outlines only
"""

from __future__ import annotations

import argparse
import html
import io
import json
import re
import shutil
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import resvg_py
from fontTools.ttLib import TTFont
from PIL import Image

if TYPE_CHECKING:
    from collections.abc import Iterator

DRAWINGS = "usr/share/openclipart/svg"
FONT = "usr/share/fonts/truetype/noto/NotoColorEmoji.ttf"
ANNOTATIONS = (
    "usr/share/unicode/cldr/common/annotations/en.xml",
    "usr/share/unicode/cldr/common/annotationsDerived/en.xml",
)
SIDE = 128
LONGER_SIDE = 116  # of the drawing, which leaves a margin
RENDERED_WIDTH = 320
MAX_SVG_CHARACTERS = 900_000
MAX_KEYS = 8

# Folders of drawings that no noun describes, and of subjects that are unsuitable for a public
# model.
SKIPPED_FOLDERS = re.compile(
    r"^(shapes/stars|shapes/jigsaw|shapes/arrows|shapes/callouts|shapes/flowchart|special"
    r"|computer/icons|computer/buttons|signs_and_symbols/(flags|map_symbols|led|clocks)|geography"
    r"|recreation/(games/cards|religion)|tools/weapons|unsorted|office/forms|logos"
    r"|people/bodypart|decorations)"
)
SKIPPED_KEYS = re.compile(
    r"logo|tux|linux|nude|naked|sex|erotic|porn|nazi|swastika|weapon|gun|hitler|drug|marijuana"
    r"|cannabis|bikini|suicide|hash|unsorted|clip ?art|openclipart|remix|line ?art|vector|svg"
    r"|inkscape|public domain|\bbw\b|outline",
    re.IGNORECASE,
)
SKIPPED_DRAWINGS = re.compile(r"nude|naked|sex|erotic|nazi|swastika|gun\b|weapon|logo")
SKIPPED_EMOJI = re.compile(
    r"flag|button|sign\b|skin tone|letter|keycap|input|ideograph|japanese|gun|pistol|cigarette"
    r"|middle finger|bikini"
)
USELESS_KEYS = ("contour", "colour", "color", "media", "black", "white")
OUTLINES = re.compile(r"_bw|outline|lineart|contour")
# Articles, words about the medium, and names and initials of authors.
NOISE = re.compile(
    r"\b(an?|the|simple|another|clip ?art|svg|icon|image|picture|by|nicu|buculei|jean|victor|balin"
    r"|01|architetto|ganson|gerald|johnny|automatic|lodahl|leif|mateya|rg|bw|b w|r|l|s|v|x)\b"
)
# At the end of a file name: an author and a number.
FILE_NAME_TAIL = re.compile(r"(_[a-z]{1,12})?_?\d+[a-z]?$|_[a-z]+_[a-z]+_?\.?\d*$")

# In a box of 100 x 100.
SHAPES = {
    "circle": '<circle cx="50" cy="50" r="48"/>',
    "square": '<rect x="6" y="6" width="88" height="88"/>',
    "triangle": '<path d="M50 4L98 92H2Z"/>',
    "star": (
        '<path d="M50 2L61.8 36.2 98 36.9 69.1 58.7 79.4 93.5 50 72.7 20.6 93.5 30.9 58.7 2 36.9'
        ' 38.2 36.2Z"/>'
    ),
    "heart": (
        '<path d="M50 92C20 66 3 48 3 29 3 14 15 5 27 5c10 0 18 6 23 15C55 11 63 5 73 5 85 5 97 14'
        ' 97 29c0 19-17 37-47 63Z"/>'
    ),
    "diamond": '<path d="M50 2L90 50 50 98 10 50Z"/>',
    "hexagon": '<path d="M26 8H74L98 50 74 92H26L2 50Z"/>',
    "cross": '<path d="M35 4H65V35H96V65H65V96H35V65H4V35H35Z"/>',
    "crescent moon": '<path d="M62 3A48 48 0 1 0 97 66 38 38 0 1 1 62 3Z"/>',
    "ring": (
        '<path fill-rule="evenodd" d="M50 2A48 48 0 1 0 50 98 48 48 0 1 0 50 2Z'
        'M50 24A26 26 0 1 1 50 76 26 26 0 1 1 50 24Z"/>'
    ),
    "arrow": '<path d="M2 35H55V10L98 50 55 90V65H2Z"/>',
    "oval": '<ellipse cx="50" cy="50" rx="48" ry="30"/>',
}


@dataclass(frozen=True)
class Entry:
    """One object of sprites.json, without the place of the picture."""

    src: str
    file: str
    name: str
    keys: list[str]
    folder: str
    bw: bool = False


def fitted(picture: Image.Image) -> Image.Image | None:
    """Center the visible part in a square of SIDE pixels; None if nothing is visible."""
    rows, columns = np.where(np.asarray(picture)[..., 3] > 12)
    if len(rows) == 0:
        return None
    picture = picture.crop((columns.min(), rows.min(), columns.max() + 1, rows.max() + 1))
    scale = LONGER_SIDE / max(picture.size)
    size = max(1, round(picture.width * scale)), max(1, round(picture.height * scale))
    picture = picture.resize(size, Image.Resampling.LANCZOS)
    square = Image.new("RGBA", (SIDE, SIDE), (255, 255, 255, 0))
    square.paste(picture, ((SIDE - size[0]) // 2, (SIDE - size[1]) // 2))
    return square


def opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data)).convert("RGBA")


def rendered(file: Path) -> Image.Image | None:
    """Render an SVG file; None if no renderer can draw it."""
    try:
        return opened(bytes(resvg_py.svg_to_bytes(svg_path=str(file), width=RENDERED_WIDTH)))
    except BaseException as error:  # a panic of resvg's Rust code is not an Exception
        if isinstance(error, (KeyboardInterrupt, SystemExit)):
            raise
    if shutil.which("rsvg-convert") is None:
        return None
    command = ["rsvg-convert", "-w", str(RENDERED_WIDTH), str(file)]
    try:
        return opened(subprocess.run(command, capture_output=True, check=False).stdout)
    except (OSError, ValueError, Image.DecompressionBombError):
        return None


def cleaned(text: str, authors: set[str]) -> str:
    """Return a title or keyword in lower case, without authors, numbers and words about the
    medium."""
    text = html.unescape(text).replace("_", " ").lower()
    for author in authors:
        if len(author.strip()) > 3:
            text = text.replace(author.strip().lower(), " ")
    text = re.sub(r"^(clip ?art|drawing|image|icon)?\s*by\b.*?-", " ", text)
    text = NOISE.sub(" ", re.sub(r"[^a-z \-']", " ", text))
    return re.sub(r"\s+", " ", text).strip(" -'")


def is_name(text: str) -> bool:
    return len(text) >= 3 and len(text.split()) <= 5


def described(file: str, svg: str) -> Entry | None:
    """Return what a drawing's metadata says about it; None if that is unusable or unsuitable."""
    titles = re.findall(r"<dc:title>\s*([^<]*?)\s*</dc:title>", svg)
    authors = set(titles[1:])  # the second title names the author
    name = cleaned(titles[0] if titles else "", authors)
    if not is_name(name):
        name = cleaned(FILE_NAME_TAIL.sub("", Path(file).name.removesuffix(".svg")), authors)
    if not is_name(name):
        return None
    listed = re.findall(r"<rdf:li>\s*([^<]*?)\s*</rdf:li>", svg)
    keys = [cleaned(key, authors) for key in listed if key and not SKIPPED_KEYS.search(key)]
    keys = [key for key in dict.fromkeys(keys) if 2 < len(key) < 24 and key not in USELESS_KEYS]
    if SKIPPED_DRAWINGS.search(" ".join([name, *keys])):
        return None
    folder = Path(file).parent.name.replace("_", " ")
    bw = bool(OUTLINES.search(file.lower()))
    return Entry("clipart", file, name, keys[:MAX_KEYS], folder, bw)


def drawings(root: Path) -> Iterator[tuple[Image.Image, Entry]]:
    seen = set()
    refused = 0
    for path in sorted((root / DRAWINGS).rglob("*.svg"), key=str):
        file = path.relative_to(root / DRAWINGS).as_posix()
        if SKIPPED_FOLDERS.match(file.rpartition("/")[0]) or not path.is_file():
            continue
        svg = path.read_text(encoding="utf-8", errors="ignore")
        entry = described(file, svg) if len(svg) <= MAX_SVG_CHARACTERS else None
        if entry is None:
            continue
        whole = rendered(path)
        if whole is None:
            refused += 1
            continue
        picture = fitted(whole)
        if picture is None or (np.asarray(picture)[..., 3] > 128).mean() < 0.03:
            continue
        thumbnail = picture.resize((16, 16)).tobytes()
        if thumbnail not in seen:
            seen.add(thumbnail)
            yield picture, entry
    print("drawings that no renderer can draw:", refused)


def plain(text: str) -> str:
    return re.sub(r"[^a-z \-']", " ", text.lower()).strip()


def emoji(root: Path) -> Iterator[tuple[Image.Image, Entry]]:
    """Yield the emoji of one code point, with their English names and keywords."""
    names: dict[str, str] = {}
    keywords: dict[str, list[str]] = {}
    for file in ANNOTATIONS:
        for annotation in ET.parse(root / file).getroot().iter("annotation"):
            character, text = annotation.attrib["cp"].replace("\ufe0f", ""), annotation.text or ""
            if annotation.get("type") == "tts":
                names[character] = text
                keywords.setdefault(character, [])
            else:
                keywords[character] = [key.strip() for key in text.split("|")]
    font = TTFont(root / FONT)
    glyphs, bitmaps = font.getBestCmap(), font["CBDT"].strikeData[0]
    for character, keys in keywords.items():
        name = names.get(character, "").lower()
        glyph = glyphs.get(ord(character)) if len(character) == 1 else None
        if not name or SKIPPED_EMOJI.search(name) or glyph not in bitmaps:
            continue
        picture = fitted(opened(bitmaps[glyph].imageData))
        if picture is not None:
            words = [plain(key) for key in keys][:MAX_KEYS]
            yield picture, Entry("emoji", glyph, plain(name), words, "emoji")


def shapes() -> Iterator[tuple[Image.Image, Entry]]:
    for name, element in SHAPES.items():
        svg = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 100 100">{element}</svg>'
        data = bytes(resvg_py.svg_to_bytes(svg_string=svg, width=RENDERED_WIDTH))
        picture = fitted(opened(data))
        if picture is not None:
            yield picture, Entry("shape", name, name, [], "shape")


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("root", type=Path)
    parser.add_argument("out", type=Path)
    options = parser.parse_args()
    for file in (DRAWINGS, FONT, *ANNOTATIONS):
        if not (options.root / file).exists():
            parser.error(f"missing: {options.root / file}. Unpack Debian's packages there")
    options.out.mkdir(parents=True, exist_ok=True)
    listed: list[dict[str, object]] = []
    with (options.out / "sprites.bin").open("wb") as blob:
        for source in (drawings(options.root), emoji(options.root), shapes()):
            before = len(listed)
            for picture, entry in source:
                data = io.BytesIO()
                picture.save(data, "WEBP", quality=88, method=4, alpha_quality=90, exact=False)
                listed.append({**asdict(entry), "off": blob.tell(), "len": data.tell()})
                blob.write(data.getvalue())
            print(listed[-1]["src"], len(listed) - before, flush=True)
    (options.out / "sprites.json").write_text(json.dumps(listed))
    print(len(listed), "sprites in", options.out)


if __name__ == "__main__":
    main()
