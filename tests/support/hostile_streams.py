"""Complete streams: empty files, noise, bombs, wrong lengths, joins, damage, and valid rarities."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from typing import TYPE_CHECKING

from support.hostile import LIMIT, NO_AUDIO, OK, PERHAPS, REFUSED, Case, Site, case, group, noise
from support.hostile_flac import FRAME_SAMPLES, SAMPLE_RATE, silence
from support.hostile_wav import Wave

if TYPE_CHECKING:
    from support.hostile import Content

MIB = 1024 * 1024
MINUTE = 60.0
#: The duration of forty frames of the FLAC bombs.
_FRAMES_S = 40 * FRAME_SAMPLES / SAMPLE_RATE


def _refused_cases() -> list[Case]:
    """Empty files, other kinds of files, and noise."""
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("a.txt", "text")
    program = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHI", 2, 62, 1) + bytes(200)
    document = (
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
    )
    kinds: dict[str, Content] = {
        "text": b"The quick brown fox jumps over the lazy dog.\n" * 50,
        "json": json.dumps({"audio": [1, 2, 3], "text": "x" * 500}).encode(),
        "elf": program,
        "pdf": document * 10,
        "zip": archive.getvalue(),
        "gzip-of-a-wav": gzip.compress(Wave().to_bytes()),
        "html": b"<!doctype html><title>Not found</title><p>404</p>" * 20,
    }
    noises: dict[str, Content] = {
        "zeros": bytes(MIB),
        "false-sync": b"\xff" * MIB,
        "random": lambda _: noise(MIB, "V03"),
    }
    return [
        *group("V01", REFUSED, {"empty": b"", "one-byte": b"\0", "sync-only": b"\xff\xfb"}),
        *group("V02", REFUSED, kinds, file_name="song.mp3"),
        *group("V03", REFUSED, noises),
        case("V03", "random-named-mp3", noise(MIB, "mp3"), REFUSED, file_name="noise.mp3"),
        case("V03", "repeated-sync", b"\xff\xfb\x90\x64" * (MIB // 4), PERHAPS),
    ]


def _bomb_cases() -> list[Case]:
    def quiet(ending: str, *codec: str) -> Content:
        source = ["-f", "lavfi", "-t", "1800", "-i", "anullsrc=r=48000:cl=mono"]
        return lambda site: site.clips.make(f"quiet-{ending}", ending, [*source, *codec])

    codecs = {
        "opus": quiet("opus", "-c:a", "libopus", "-b:a", "6k"),
        "wavpack": quiet("wv", "-c:a", "wavpack", "-ar", "8000"),
        "tta": quiet("tta", "-c:a", "tta", "-ar", "8000"),
        "alac": quiet("m4a", "-c:a", "alac", "-ar", "8000"),
    }
    cap = {"duration_s": 10 * MINUTE}
    hour, honest = Wave(data_size=3600 * 16_000).to_bytes(), silence(0.1)
    ten_hours = silence(_FRAMES_S / 3600, 10)
    return [
        case("V12", "100-hours-of-flac", lambda _: silence(100), LIMIT),
        case("V12", "100-hours-counted", lambda _: silence(100, 0), LIMIT, limits=cap),
        case("V12", "2-hours-in-time", honest, OK, duration_s=360.4, limits=cap),
        *group("V13", LIMIT, codecs, limits={"duration_s": MINUTE}),
        case("V14", "says-5-s-holds-100-h", lambda _: silence(100, 5 / 3600), LIMIT, limits=cap),
        case("V14", "says-10-h-holds-5-s", ten_hours, OK, duration_s=_FRAMES_S),
        case("V14", "wav-says-1-h-holds-1-s", hour, OK, duration_s=1.0),
        case("V14", "mp3-says-1-frame", _mp3_says_one_frame, OK),
    ]


def _mp3_says_one_frame(site: Site) -> bytes:
    data = bytearray(site.clips.data("mp3"))
    mark = max(data.find(b"Info"), data.find(b"Xing"))
    data[mark + 8 : mark + 12] = struct.pack(">I", 1)
    return bytes(data)


def _silent_cases() -> list[Case]:
    pictures = ["-f", "lavfi", "-i", "testsrc=duration=1:size=64x64:rate=10", "-c:v", "mpeg4"]

    def video(ending: str) -> Content:
        return lambda site: site.clips.make(f"mute-{ending}", ending, pictures)

    endings = ("mp4", "mkv", "avi", "ts")
    return group("V15", NO_AUDIO, {f"video-only-{one}": video(one) for one in endings})


def _joined_cases() -> list[Case]:
    def part(site: Site, codec: str, ending: str, rate: int, channels: int) -> bytes:
        arguments = ["-f", "lavfi", "-i", site.clips.SOURCE, "-ar", str(rate), "-ac", str(channels)]
        name = f"part-{codec}-{rate}-{channels}"
        return site.clips.make(name, ending, [*arguments, "-c:a", codec]).read_bytes()

    def joined(codec: str, ending: str, first: tuple[int, int], second: tuple[int, int]) -> Case:
        def build(site: Site) -> bytes:
            return part(site, codec, ending, *first) + part(site, codec, ending, *second)

        name = f"{codec}-{first[0]}-{first[1]}-then-{second[0]}-{second[1]}"
        file_name = f"joined.{ending}"
        return case(
            "V21", name, build, PERHAPS, file_name=file_name, duration_s=4.0, tolerance_s=0.2
        )

    def codecs(site: Site) -> bytes:
        return part(site, "libvorbis", "ogg", 44_100, 2) + part(site, "libopus", "opus", 48_000, 2)

    return [
        joined("libvorbis", "ogg", (44_100, 2), (44_100, 2)),
        joined("libvorbis", "ogg", (44_100, 2), (22_050, 1)),
        joined("libopus", "opus", (48_000, 2), (48_000, 1)),
        joined("libmp3lame", "mp3", (44_100, 2), (22_050, 1)),
        joined("libmp3lame", "mp3", (48_000, 1), (48_000, 2)),
        joined("aac", "aac", (44_100, 2), (22_050, 1)),
        joined("ac3", "ac3", (48_000, 2), (32_000, 1)),
        case("V21", "vorbis-then-opus", codecs, PERHAPS, file_name="joined.ogg"),
    ]


def _clip(name: str) -> Content:
    return lambda site: site.clips.data(name)


def _damaged_cases() -> list[Case]:
    # Damage removes at least one unit of the format: a frame of MP3 or AAC, a frame of FLAC (0.104
    # s), or a page of Ogg (up to one second).
    frame_s, flac_frame_s, page_s = 0.1, 0.15, 1.05

    def hole(name: str, size: int, tolerance_s: float = frame_s) -> Case:
        def build(site: Site) -> bytes:
            data = bytearray(site.clips.data(name))
            middle = len(data) // 2
            data[middle : middle + size] = noise(size, name)
            return bytes(data)

        title = f"hole-in-{name}"
        return case("V23", title, build, OK, duration_s=2.0, tolerance_s=tolerance_s)

    def short(name: str, size: int, tolerance_s: float = frame_s) -> Case:
        def build(site: Site) -> bytes:
            return site.clips.data(name)[:-size]

        title = f"last-frame-missing-{name}"
        return case("V23", title, build, OK, duration_s=2.0, tolerance_s=tolerance_s)

    return [
        hole("mp3", 400),
        hole("flac", 200, flac_frame_s),
        hole("m4a", 200),
        hole("opus", 100, page_s),
        hole("ac3", 300),
        hole("mka", 100, flac_frame_s),
        short("mp3", 400),
        short("flac", 1000, flac_frame_s),
        short("aac", 150),
        short("ogg", 300, page_s),
    ]


def cases() -> list[Case]:
    """The cases V01 to V03, V12 to V15, V21 to V23 and V25."""
    rare = ("wav-5.1", "wav-7.1", "wav24", "wav-8k", "wav-float", "wav-u8", "wav-alaw")
    lies = {
        "m4a": "song.mp3",
        "flac": "film.mp4",
        "mp3": "voice.wav",
        "ogg": "page.html",
        "wav": "a.m3u8",
    }
    return [
        *_refused_cases(),
        *_bomb_cases(),
        *_silent_cases(),
        *_joined_cases(),
        *group("V22", OK, {one: _clip(one) for one in rare}, duration_s=2.0),
        *_damaged_cases(),
        *(
            case("V25", f"{name}-as-{lie}", _clip(name), OK, file_name=lie, duration_s=2.0)
            for name, lie in lies.items()
        ),
    ]
