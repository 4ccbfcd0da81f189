"""The contents of the corpus: one `Medium` per container, codec and peculiarity."""

from __future__ import annotations

import base64
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from support import programs
from support.sounds import CHANNELS, Sound, sound_file

if TYPE_CHECKING:
    from pathlib import Path

    from support.cache import Cache

CHAPTERS = """;FFMETADATA1
title=Kapitel für Kapitel
[CHAPTER]
TIMEBASE=1/1000
START=0
END=500
title=Anfang · début · 始まり
[CHAPTER]
TIMEBASE=1/1000
START=500
END=1100
title=Middle
[CHAPTER]
TIMEBASE=1/1000
START=1100
END=1500
title=Schluß
"""
TAGS = {
    "title": "Grüße aus Zürich · 東京 🎵",
    "artist": "Ångström & Söhne",
    "album": "Ein Album",
    "date": "2024",
    "track": "3/12",
    "genre": "Jazz",
    "comment": "first line; second = part",
}
TAG_ARGUMENTS = tuple(word for key, text in TAGS.items() for word in ("-metadata", f"{key}={text}"))
VIDEO = "lavfi:testsrc2=s=96x64:r=12:d=1.6"
#: Samples that need more than 32 bits.
WIDE = "lavfi:aevalsrc=0.4*sin(20*PI*t*t)+0.3*(random(0)-0.5)*exp(-9*mod(t\\,0.5)):s=44100:d=4"
PAL = "lavfi:testsrc2=s=720x576:r=25:d=1.5"
H264 = "lavfi:testsrc2=s=96x64:r=25:d=2.4"
TALK = Sound("speech", 70_001)
MUSIC = Sound()
MONO = Sound(layout="mono")
STEREO_48 = Sound(rate=48_000, samples=72_001)


@dataclass(frozen=True)
class Medium:
    """One file: its inputs, and the ffmpeg program's output arguments.

    An input is a Sound; "cover:jpg" or "cover:png"; "chapters"; "medium:NAME", another file of the
    corpus; "lavfi:GRAPH"; "seek:SECONDS:INPUT"; or "offset:SECONDS", a shift of the next input.
    `joined` names media whose bytes are concatenated instead.
    """

    suffix: str
    inputs: tuple[Sound | str, ...] = ()
    arguments: tuple[str, ...] = ()
    joined: tuple[str, ...] = ()
    vorbis_picture: bool = False
    attachment: str = ""


def _audio(suffix: str, codec: str, sound: Sound = MUSIC, *more: str) -> Medium:
    return Medium(suffix, (sound,), ("-c:a", codec, *more))


def _video(suffix: str, video: str, audio: str, *more: str, sound: Sound = MUSIC) -> Medium:
    arguments = ("-map", "0:v", "-map", "1:a", "-c:v", video, "-c:a", audio, *more)
    return Medium(suffix, (VIDEO, sound), arguments)


def _cover(suffix: str, codec: str, picture: str, *more: str) -> Medium:
    arguments = ("-map", "0:a", "-map", "1:v", "-c:a", codec, "-c:v", "copy",
                 "-disposition:v:0", "attached_pic", *TAG_ARGUMENTS, *more)  # fmt: skip
    return Medium(suffix, (MUSIC, f"cover:{picture}"), arguments)


#: One or more files for every container and codec that polymux converts like ffmpeg.
CONTAINERS = {
    "wav_u8": _audio(".wav", "pcm_u8"),
    "wav_s16": _audio(".wav", "pcm_s16le"),
    "wav_s24": _audio(".wav", "pcm_s24le"),
    "wav_s32": _audio(".wav", "pcm_s32le"),
    "wav_f32": _audio(".wav", "pcm_f32le"),
    "wav_f64": _audio(".wav", "pcm_f64le", MUSIC, "-af", "aformat=dbl,volume=4"),
    "wav_s64": Medium(".wav", (WIDE,), ("-ac", "2", "-c:a", "pcm_s64le")),
    "wav_alaw": _audio(".wav", "pcm_alaw"),
    "wav_mulaw": _audio(".wav", "pcm_mulaw"),
    "wav_adpcm": _audio(".wav", "adpcm_ms"),
    "wav_adpcm_ima": _audio(".wav", "adpcm_ima_wav"),
    "w64": _audio(".w64", "pcm_s16le"),
    "w64_adpcm": _audio(".w64", "adpcm_ms"),
    "flac_16": _audio(".flac", "flac", MUSIC, "-sample_fmt", "s16"),
    "flac_24": _audio(".flac", "flac", MUSIC, "-sample_fmt", "s32"),
    "flac_ogg": _audio(".oga", "flac"),
    "mp3_cbr": _audio(".mp3", "libmp3lame", MUSIC, "-b:a", "160k"),
    "mp3_vbr": _audio(".mp3", "libmp3lame", MUSIC, "-q:a", "4"),
    "mp3_mpeg2": _audio(".mp3", "libmp3lame", Sound(rate=22_050), "-b:a", "56k"),
    "mp3_no_tag": _audio(".mp3", "libmp3lame", MUSIC, "-write_xing", "0", "-id3v2_version", "0"),
    "mp2": _audio(".mp2", "mp2"),
    "m4a_aac": _audio(".m4a", "aac"),
    "m4a_alac": _audio(".m4a", "alac"),
    "adts": _audio(".aac", "aac"),
    "adts_mono_48": _audio(".aac", "aac", Sound(rate=48_000, layout="mono")),
    "mp4_video": _video(".mp4", "mpeg4", "aac"),
    "mp4_faststart": _video(".mp4", "mpeg4", "aac", "-movflags", "+faststart"),
    "mp4_fragmented": _video(".mp4", "mpeg4", "aac", "-movflags", "+frag_keyframe+empty_moov"),
    "mp4_mp3": _video(".mp4", "mpeg4", "libmp3lame"),
    "mov_video": _video(".mov", "mpeg4", "pcm_s16be"),
    "mov_alac": _video(".mov", "mpeg4", "alac"),
    "mkv_video": _video(".mkv", "mpeg4", "aac"),
    "mkv_flac": _video(".mkv", "mpeg4", "flac"),
    "mkv_opus": _video(".mkv", "mpeg4", "libopus", sound=STEREO_48),
    "mkv_vorbis": _video(".mkv", "mpeg4", "libvorbis"),
    "mkv_ac3": _video(".mkv", "mpeg4", "ac3", sound=Sound(layout="5.1")),
    "webm_opus": _video(".webm", "libvpx", "libopus", "-deadline", "realtime"),
    "webm_vorbis": _video(".webm", "libvpx", "libvorbis", "-deadline", "realtime"),
    "ogg_vorbis": _audio(".ogg", "libvorbis"),
    "ogg_opus": _audio(".opus", "libopus", STEREO_48),
    "ogg_opus_speech": _audio(".opus", "libopus", TALK, "-ac", "1"),
    "ogg_speex": _audio(".spx", "libspeex", Sound("speech", 24_000, 16_000, "mono")),
    "wma": _audio(".wma", "wmav2"),
    "wma_1": _audio(".wma", "wmav1"),
    "aiff": _audio(".aiff", "pcm_s16be"),
    "aiff_24": _audio(".aiff", "pcm_s24be"),
    "caf": _audio(".caf", "pcm_s16be"),
    "caf_alac": _audio(".caf", "alac"),
    "au": _audio(".au", "pcm_s16be"),
    "ac3": _audio(".ac3", "ac3"),
    "eac3": _audio(".eac3", "eac3"),
    "dts": _audio(".dts", "dca", STEREO_48, "-strict", "-2"),
    "truehd": _audio(".thd", "truehd", STEREO_48, "-strict", "-2"),
    "wavpack": _audio(".wv", "wavpack"),
    "tta": _audio(".tta", "tta"),
    "gsm": _audio(".gsm", "libgsm", Sound("speech", 16_000, 8_000, "mono")),
    "voc": _audio(".voc", "pcm_u8"),
    "ircam": _audio(".ircam", "pcm_s16le", MUSIC, "-f", "ircam"),
    "adx": _audio(".adx", "adpcm_adx"),
    "dv": Medium(
        ".dv", (PAL, STEREO_48), ("-c:v", "dvvideo", "-pix_fmt", "yuv420p", "-c:a", "pcm_s16le")
    ),
    "gxf": Medium(
        ".gxf", (PAL, STEREO_48), ("-c:v", "mpeg2video", "-c:a", "pcm_s16le", "-ac", "1")
    ),
    "wtv": _video(".wtv", "mpeg2video", "mp2", "-r", "25"),
    "avi_mp3": _video(".avi", "mpeg4", "libmp3lame"),
    "avi_pcm": _video(".avi", "mpeg4", "pcm_s16le"),
    "flv_mp3": _video(".flv", "flv1", "libmp3lame"),
    "flv_aac": _video(".flv", "flv1", "aac"),
    "mpegts_aac": _video(".ts", "mpeg2video", "aac", "-r", "25"),
    "mpegts_mp2": _video(".ts", "mpeg2video", "mp2", "-r", "25"),
    "mpegps": _video(".mpg", "mpeg2video", "mp2", "-r", "25"),
    "nut": _video(".nut", "mpeg4", "pcm_s16le"),
}

#: Input rates from 8 kHz mono to 192 kHz, including MPEG's.
RATES = {
    f"rate_{rate}_{layout}": _audio(".wav", "pcm_s16le", Sound("music", rate + 7, rate, layout))
    for rate, layout in (
        (8_000, "mono"), (11_025, "stereo"), (12_000, "mono"), (16_000, "mono"),
        (22_050, "mono"), (24_000, "stereo"), (32_000, "stereo"), (37_800, "stereo"),
        (44_100, "mono"), (48_000, "stereo"), (64_000, "stereo"), (88_200, "stereo"),
        (96_000, "stereo"), (176_400, "stereo"), (192_000, "stereo"), (192_000, "mono"),
    )
}  # fmt: skip
RATES["flac_96_24"] = _audio(".flac", "flac", Sound("music", 96_001, 96_000), "-sample_fmt", "s32")
RATES["f32_96000"] = _audio(".wav", "pcm_f32le", Sound("music", 96_001, 96_000))

#: Every channel layout, in WAV and in other codecs that support it.
LAYOUTS = {
    f"layout_{layout}": _audio(".wav", "pcm_s16le", Sound("music", 44_100, layout=layout))
    for layout in CHANNELS
}
LAYOUTS |= {
    "flac_5.1": _audio(".flac", "flac", Sound("music", 44_100, layout="5.1")),
    "f32_7.1": _audio(".wav", "pcm_f32le", Sound("music", 44_100, layout="7.1")),
    "aac_5.1": _audio(".m4a", "aac", Sound("music", 48_000, 48_000, "5.1")),
    "aac_7.1": _audio(".m4a", "aac", Sound("music", 48_000, 48_000, "7.1")),
    "ac3_48": _audio(".ac3", "ac3", STEREO_48),
    "ac3_5.1side": _audio(".ac3", "ac3", Sound("music", 48_000, 48_000, "5.1(side)")),
    "opus_5.1": _audio(".opus", "libopus", Sound("music", 48_000, 48_000, "5.1")),
    "vorbis_5.1": _audio(".ogg", "libvorbis", Sound("music", 48_000, 48_000, "5.1")),
    "dts_5.1": _audio(".dts", "dca", Sound("music", 48_000, 48_000, "5.1(side)"), "-strict", "-2"),
}

_TWO_STREAMS = ("-map", "0:a", "-map", "1:a", "-metadata:s:a:0", "language=eng",
                "-metadata:s:a:1", "language=deu")  # fmt: skip
#: Container features around the audio: streams, tags, covers, chapters, time stamps.
PECULIAR = {
    "streams_default_second": Medium(
        ".mkv", (MUSIC, TALK),
        (*_TWO_STREAMS, "-c:a", "flac", "-disposition:a:0", "0", "-disposition:a:1", "default"),
    ),
    "streams_more_channels_second": Medium(
        ".mkv",
        (MONO, Sound(layout="5.1")),
        (*_TWO_STREAMS, "-c:a", "flac", "-disposition:a", "0", "-default_mode", "passthrough"),
    ),
    "streams_mp4": Medium(
        ".mp4", (TALK, MUSIC, VIDEO), (*_TWO_STREAMS, "-map", "2:v", "-c:a", "aac", "-c:v", "mpeg4")
    ),
    "tags_mp3": _audio(".mp3", "libmp3lame", MUSIC, *TAG_ARGUMENTS, "-id3v2_version", "3"),
    "tags_mp3_v24": _audio(".mp3", "libmp3lame", MUSIC, *TAG_ARGUMENTS, "-id3v2_version", "4"),
    "tags_m4a": _audio(".m4a", "aac", MUSIC, *TAG_ARGUMENTS),
    "tags_flac": _audio(".flac", "flac", MUSIC, *TAG_ARGUMENTS),
    "tags_ogg": _audio(".ogg", "libvorbis", MUSIC, *TAG_ARGUMENTS),
    "tags_wav": _audio(".wav", "pcm_s16le", MUSIC, *TAG_ARGUMENTS),
    "chapters_m4a": Medium(".m4a", (MUSIC, "chapters"),
                           ("-map", "0:a", "-map_metadata", "1", "-map_chapters", "1",
                            "-c:a", "aac")),
    "chapters_mkv": Medium(".mkv", (MUSIC, "chapters"),
                           ("-map", "0:a", "-map_metadata", "1", "-map_chapters", "1",
                            "-c:a", "flac")),
    "chapters_mp3": Medium(".mp3", (MUSIC, "chapters"),
                           ("-map", "0:a", "-map_metadata", "1", "-map_chapters", "1",
                            "-c:a", "libmp3lame")),
    "cover_mp3_jpeg": _cover(".mp3", "libmp3lame", "jpg", "-metadata:s:v", "title=Hülle",
                             "-metadata:s:v", "comment=Cover (front)"),
    "cover_mp3_png": _cover(".mp3", "libmp3lame", "png"),
    "cover_flac_jpeg": _cover(".flac", "flac", "jpg"),
    "cover_flac_png": _cover(".flac", "flac", "png"),
    "cover_m4a_jpeg": _cover(".m4a", "aac", "jpg"),
    "cover_m4a_png": _cover(".m4a", "aac", "png"),
    "cover_ogg_jpeg": Medium(".ogg", (MUSIC,), ("-c:a", "libvorbis", *TAG_ARGUMENTS),
                             vorbis_picture=True),
    "cover_mkv_jpeg": Medium(".mkv", (MUSIC,), ("-c:a", "flac", *TAG_ARGUMENTS),
                             attachment="jpg"),
    "priming_m4a_copy": Medium(".m4a", ("medium:m4a_aac",), ("-c", "copy")),
    "edit_list_mp4": Medium(".mp4", ("seek:0.4:medium:mp4_video",), ("-c", "copy")),
    "start_offset_mkv": Medium(".mkv", ("medium:mkv_video",),
                               ("-c", "copy", "-output_ts_offset", "3.21")),
    "start_offset_ts": Medium(".ts", ("medium:mpegts_aac",),
                              ("-c", "copy", "-output_ts_offset", "12.5")),
    **{
        f"late_audio_h264_{ending}": Medium(
            f".{ending}", (H264, "offset:0.9", MUSIC),
            ("-map", "0:v", "-map", "1:a", "-c:v", "libx264", "-c:a", "pcm_s16le"))
        for ending in ("mkv", "nut")
    },
    "late_audio_mp4": Medium(".mp4", (VIDEO, "offset:0.3", MUSIC),
                             ("-map", "0:v", "-map", "1:a", "-c:v", "mpeg4", "-c:a", "aac")),
    "negative_start_mp4": Medium(".mp4", ("medium:mkv_video",),
                                 ("-c", "copy", "-avoid_negative_ts", "disabled",
                                  "-output_ts_offset", "-0.25")),
    "chained_ogg": Medium(".ogg", joined=("ogg_vorbis", "tags_ogg")),
    "chained_mp3": Medium(".mp3", joined=("mp3_no_tag", "mp3_no_tag")),
    "chained_ts": Medium(".ts", joined=("mpegts_aac", "mpegts_aac")),
}  # fmt: skip

#: Media whose rate or channels change in the middle.
CHANGING = {
    "changing_ogg": Medium(".ogg", joined=("ogg_vorbis", "vorbis_5.1")),
    "changing_adts": Medium(".aac", joined=("adts", "adts_mono_48")),
    "changing_mp3": Medium(".mp3", joined=("mp3_no_tag", "mp3_mpeg2")),
    "changing_ac3": Medium(".ac3", joined=("ac3_5.1side", "ac3_48")),
}

#: Media without sound.
SILENT = {"video_only": Medium(".mp4", (VIDEO,), ("-c:v", "mpeg4"))}

MEDIA: dict[str, Medium] = CONTAINERS | RATES | LAYOUTS | PECULIAR | CHANGING | SILENT


def cover_file(cache: Cache, kind: str) -> Path:
    graph = "testsrc=s=120x120:d=1,format=rgb24"
    codec = {"jpg": "mjpeg", "png": "png"}[kind]

    def build(path: Path) -> None:
        programs.ffmpeg("-f", "lavfi", "-i", graph, "-frames:v", "1", "-pix_fmt",
                        {"jpg": "yuvj420p", "png": "rgb24"}[kind], "-c:v", codec,
                        "-f", "image2", "-update", "1", path)  # fmt: skip

    return cache.make("cover", f".{kind}", graph, build)


def _vorbis_picture(picture: bytes) -> str:
    """The METADATA_BLOCK_PICTURE of a JPEG front cover (RFC 9639, section 8.8), in base64."""
    mime, description = b"image/jpeg", "Hülle".encode()
    block = struct.pack(">II", 3, len(mime)) + mime + struct.pack(">I", len(description))
    block += description + struct.pack(">IIIII", 120, 120, 24, 0, len(picture)) + picture
    return base64.b64encode(block).decode()


def _input_arguments(cache: Cache, source: Sound | str) -> list[str]:
    if isinstance(source, Sound):
        return ["-i", str(sound_file(cache, source))]
    kind, _, rest = source.partition(":")
    if kind == "lavfi":
        return ["-f", "lavfi", "-i", rest]
    if kind == "cover":
        return ["-i", str(cover_file(cache, rest))]
    if kind == "medium":
        return ["-i", str(build_medium(cache, rest, MEDIA[rest]))]
    if kind == "seek":
        seconds, _, rest = rest.partition(":")
        return ["-ss", seconds, *_input_arguments(cache, rest)]
    if kind == "offset":
        return ["-itsoffset", rest]
    if kind == "chapters":

        def build(path: Path) -> None:
            path.write_text(CHAPTERS, encoding="utf-8")

        return ["-i", str(cache.make("chapters", ".txt", CHAPTERS, build))]
    raise ValueError(f"unknown input {source!r}")


def build_medium(cache: Cache, name: str, medium: Medium) -> Path:

    def build(path: Path) -> None:
        if medium.joined:
            parts = [build_medium(cache, part, MEDIA[part]) for part in medium.joined]
            path.write_bytes(b"".join(part.read_bytes() for part in parts))
            return
        inputs = [word for source in medium.inputs for word in _input_arguments(cache, source)]
        extra: list[str] = []
        if medium.vorbis_picture:
            picture = _vorbis_picture(cover_file(cache, "jpg").read_bytes())
            extra = ["-metadata", f"METADATA_BLOCK_PICTURE={picture}"]
        if medium.attachment:
            extra = ["-attach", str(cover_file(cache, medium.attachment)),
                     "-metadata:s:t", "mimetype=image/jpeg",
                     "-metadata:s:t", "filename=cover.jpg"]  # fmt: skip
        programs.ffmpeg(*inputs, *medium.arguments, *extra, path)

    recipe = f"{medium!r} {[MEDIA[part] for part in medium.joined]!r}"
    return cache.make(name, medium.suffix, recipe, build)
