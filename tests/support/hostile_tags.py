"""Small files with so many tags or edits that FFmpeg would need minutes to open them."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from support.hostile import LIMIT, OK, Case, case, group
from support.hostile_flac import silence
from support.hostile_mp4 import edited

if TYPE_CHECKING:
    from support.hostile import Content, Site

#: Ending to ffmpeg's arguments.
_FORMATS = {
    "mp3": ["-c:a", "libmp3lame"],
    "flac": ["-c:a", "flac"],
    "ogg": ["-c:a", "libvorbis", "-ac", "2"],
    "opus": ["-c:a", "libopus"],
    "m4a": ["-c:a", "aac", "-movflags", "use_metadata_tags"],
    "mka": ["-c:a", "flac"],
    "wma": ["-c:a", "wmav2"],
    "wv": ["-c:a", "wavpack"],
}


def _tagged(ending: str, count: int) -> Content:
    """Two seconds with `count` tags."""

    def build(site: Site) -> bytes:
        tags = "".join(f"KEY{number}=value\n" for number in range(count))
        text = site.file("tags.txt", f";FFMETADATA1\n{tags}".encode())
        arguments = ["-f", "lavfi", "-i", site.clips.SOURCE, "-i", str(text), "-map_metadata", "1"]
        name = f"{count}-tags"
        return site.clips.make(name, ending, [*arguments, *_FORMATS[ending]]).read_bytes()

    return build


def _equal_comments(count: int) -> bytes:
    """A FLAC that states the same comment `count` times."""
    flac = silence(0.001)
    comments = struct.pack("<II", 0, count) + (struct.pack("<I", 5) + b"A=bcd") * count
    header, frames = bytearray(flac[:42]), flac[42:]
    header[4] = 0  # Not the last block.
    return bytes(header) + b"\x84" + len(comments).to_bytes(3, "big") + comments + frames


def cases() -> list[Case]:
    """The part of V16 that is not in one format."""
    return [
        *group("V16", LIMIT, {f"2000-tags-{one}": _tagged(one, 2000) for one in _FORMATS}),
        *group(
            "V16", OK, {f"900-tags-{one}": _tagged(one, 900) for one in _FORMATS}, duration_s=2.0
        ),
        case("V16", "700000-equal-comments", _equal_comments(700_000), LIMIT),
        case("V16", "300000-edits", lambda site: edited(site, 300_000), LIMIT),
        case("V16", "edits-that-repeat-an-hour", lambda site: edited(site, 200, 3600), LIMIT),
        case("V16", "edits-that-repeat-little", lambda site: edited(site, 200), OK),
    ]
