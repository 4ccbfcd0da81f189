"""Whole streams: nothing, noise, bombs, lies about length, joins, damage, and honest rarities."""

from __future__ import annotations

import gzip
import io
import json
import struct
import zipfile
from typing import TYPE_CHECKING

from support.hostile import LIMIT, NO_AUDIO, OK, REFUSED, Case, Site, case, noise
from support.hostile_flac import FRAME_SAMPLES, SAMPLE_RATE, silence
from support.hostile_wav import Wave

if TYPE_CHECKING:
    from pathlib import Path

MIB = 1024 * 1024
MINUTE = 60.0


def _empty_cases() -> list[Case]:
    return [
        case("V01", "empty", lambda: b"", REFUSED),
        case("V01", "one-byte", lambda: b"\0", REFUSED),
        case("V01", "sync-only", lambda: b"\xff\xfb", REFUSED),
    ]


def _other_kinds() -> list[Case]:
    archive = io.BytesIO()
    with zipfile.ZipFile(archive, "w") as made:
        made.writestr("a.txt", "text")
    program = b"\x7fELF\2\1\1" + bytes(9) + struct.pack("<HHI", 2, 62, 1) + bytes(200)
    document = (
        b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\ntrailer\n<< /Root 1 0 R >>\n%%EOF\n"
    )
    kinds = {
        "text": b"The quick brown fox jumps over the lazy dog.\n" * 50,
        "json": json.dumps({"audio": [1, 2, 3], "text": "x" * 500}).encode(),
        "elf": program,
        "pdf": document * 10,
        "zip": archive.getvalue(),
        "gzip-of-a-wav": gzip.compress(Wave().to_bytes()),
        "html": b"<!doctype html><title>Not found</title><p>404</p>" * 20,
    }
    return [
        case("V02", name, lambda content=content: content, REFUSED, file_name="song.mp3")
        for name, content in kinds.items()
    ]


def _noise_cases() -> list[Case]:
    some = REFUSED | {OK}
    return [
        case("V03", "zeros", lambda: bytes(MIB), REFUSED),
        case("V03", "false-sync", lambda: b"\xff" * MIB, REFUSED),
        case("V03", "random", lambda: noise(MIB, "V03"), REFUSED),
        case("V03", "random-named-mp3", lambda: noise(MIB, "mp3"), REFUSED, file_name="noise.mp3"),
        case("V03", "repeated-sync", lambda: b"\xff\xfb\x90\x64" * (MIB // 4), some),
    ]


def _bomb_cases() -> list[Case]:
    cap = {"duration_s": 10 * MINUTE}
    tight = {"duration_s": MINUTE}

    def quiet(name: str, ending: str, *codec: str) -> Case:
        def build(site: Site) -> Path:
            source = ["-f", "lavfi", "-t", "1800", "-i", "anullsrc=r=48000:cl=mono"]
            return site.clips.make(f"quiet-{name}", ending, [*source, *codec])

        return case("V13", name, build, LIMIT, limits=tight)

    return [
        case("V12", "100-hours-of-flac", lambda: silence(100), LIMIT),
        case("V12", "100-hours-counted", lambda: silence(100, 0), LIMIT, limits=cap),
        case("V12", "2-hours-in-time", lambda: silence(0.1), OK, duration_s=360.4, limits=cap),
        quiet("opus", "opus", "-c:a", "libopus", "-b:a", "6k"),
        quiet("wavpack", "wv", "-c:a", "wavpack", "-ar", "8000"),
        quiet("tta", "tta", "-c:a", "tta", "-ar", "8000"),
        quiet("alac", "m4a", "-c:a", "alac", "-ar", "8000"),
        case("V14", "says-5-s-holds-100-h", lambda: silence(100, 5 / 3600), LIMIT, limits=cap),
        case(
            "V14",
            "says-10-h-holds-5-s",
            _ten_hours_claimed,
            OK,
            duration_s=40 * FRAME_SAMPLES / SAMPLE_RATE,
        ),
        case("V14", "wav-says-1-h-holds-1-s", _wave_hour, OK, duration_s=1.0),
        case("V14", "mp3-says-1-frame", _mp3_says_one_frame, OK),
    ]


def _ten_hours_claimed() -> bytes:
    return silence(40 * FRAME_SAMPLES / SAMPLE_RATE / 3600, 10)


def _wave_hour() -> bytes:
    return Wave(data_size=3600 * 16_000).to_bytes()


def _mp3_says_one_frame(site: Site) -> bytes:
    data = bytearray(site.clips.data("mp3"))
    mark = max(data.find(b"Info"), data.find(b"Xing"))
    data[mark + 8 : mark + 12] = struct.pack(">I", 1)
    return bytes(data)


def _silent_cases() -> list[Case]:
    pictures = ["-f", "lavfi", "-i", "testsrc=duration=1:size=64x64:rate=10", "-c:v", "mpeg4"]

    def video(ending: str) -> Case:
        def build(site: Site) -> Path:
            return site.clips.make(f"mute-{ending}", ending, pictures)

        return case("V15", f"video-only-{ending}", build, NO_AUDIO)

    return [video("mp4"), video("mkv"), video("avi"), video("ts")]


def _joined_cases() -> list[Case]:
    some = REFUSED | {OK}

    def part(site: Site, codec: str, ending: str, rate: int, channels: int) -> bytes:
        arguments = ["-f", "lavfi", "-i", site.clips.SOURCE, "-ar", str(rate), "-ac", str(channels)]
        name = f"part-{codec}-{rate}-{channels}"
        return site.clips.make(name, ending, [*arguments, "-c:a", codec]).read_bytes()

    def joined(codec: str, ending: str, first: tuple[int, int], second: tuple[int, int]) -> Case:
        def build(site: Site) -> bytes:
            return part(site, codec, ending, *first) + part(site, codec, ending, *second)

        name = f"{codec}-{first[0]}-{first[1]}-then-{second[0]}-{second[1]}"
        return case(
            "V21", name, build, some, file_name=f"joined.{ending}", duration_s=4.0, tolerance_s=0.2
        )

    def codecs(site: Site) -> bytes:
        return part(site, "libvorbis", "ogg", 44_100, 2) + part(site, "libopus", "opus", 48_000, 2)

    return [
        joined("libvorbis", "ogg", (44_100, 2), (44_100, 2)),
        joined("libvorbis", "ogg", (44_100, 2), (22_050, 1)),
        joined("libopus", "opus", (48_000, 2), (48_000, 1)),
        joined("flac", "ogg", (44_100, 2), (44_100, 2)),
        joined("libmp3lame", "mp3", (44_100, 2), (22_050, 1)),
        joined("libmp3lame", "mp3", (48_000, 1), (48_000, 2)),
        joined("aac", "aac", (44_100, 2), (22_050, 1)),
        joined("ac3", "ac3", (48_000, 2), (32_000, 1)),
        case("V21", "vorbis-then-opus", codecs, some, file_name="joined.ogg"),
    ]


def _rare_cases() -> list[Case]:
    names = ["wav-5.1", "wav-7.1", "wav24", "wav-8k", "wav-float", "wav-u8", "wav-alaw"]
    return [
        case("V22", name, lambda site, name=name: site.clips.data(name), OK, duration_s=2.0)
        for name in names
    ]


def _damaged_cases() -> list[Case]:
    # Damage costs what the format keeps together: a frame of MP3 or AAC, one of FLAC (0.104 s),
    # a whole page of Ogg (up to a second).
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


def _misnamed_cases() -> list[Case]:
    lies = {
        "m4a": "song.mp3",
        "flac": "film.mp4",
        "mp3": "voice.wav",
        "ogg": "page.html",
        "wav": "a.m3u8",
    }
    return [
        case(
            "V25",
            f"{name}-as-{lie}",
            lambda site, name=name: site.clips.data(name),
            OK,
            file_name=lie,
            duration_s=2.0,
        )
        for name, lie in lies.items()
    ]


def cases() -> list[Case]:
    """V01 to V03, V12 to V15, V21 to V23 and V25."""
    return [
        *_empty_cases(),
        *_other_kinds(),
        *_noise_cases(),
        *_bomb_cases(),
        *_silent_cases(),
        *_joined_cases(),
        *_rare_cases(),
        *_damaged_cases(),
        *_misnamed_cases(),
    ]
