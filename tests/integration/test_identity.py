"""Every audio frame equals the frame that the ffmpeg program writes with the same libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import polymux
import pytest
from support import identity, mp3_frames, programs
from support.identity import CBR_128, V0, V2, Mode, abr, assert_identical, cbr, vbr
from support.media import CHANGING, CONTAINERS, LAYOUTS, MEDIA, MUSIC, PECULIAR, RATES, Medium
from support.sounds import Sound

if TYPE_CHECKING:
    from pathlib import Path

    from support.corpus import Corpus

MPEG1_KBPS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
MPEG2_KBPS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
MPEG25_KBPS = (8, 16, 24, 32, 40, 48, 56, 64)
ALL_KBPS = sorted({*MPEG1_KBPS, *MPEG2_KBPS})
SOME_KBPS = (8, 24, 64, 80, 160, 320)
LENGTHS = (1, 2, 575, 576, 577, 1104, 1105, 1106, 1151, 1152, 1153, 2303, 2304, 2305, 4607, 44_099)
SECOND = 44_100
#: (kbit/s, Hz): every bitrate at one sample rate of MPEG 1 and of MPEG 2, and a selection for the
#: others.
BITRATES = {
    *((kbps, rate) for kbps in ALL_KBPS for rate in (44_100, 24_000)),
    *((kbps, 8_000) for kbps in SOME_KBPS),
    *((kbps, rate) for kbps in (64, 320)
      for rate in (11_025, 12_000, 16_000, 22_050, 32_000, 48_000)),
}  # fmt: skip
FURTHER_BITRATES = {
    (kbps, rate) for kbps in ALL_KBPS
    for rate in (8_000, 11_025, 12_000, 16_000, 22_050, 32_000, 48_000)
} - BITRATES  # fmt: skip


def legal_kbps(rate: int) -> tuple[int, ...]:
    """The bitrates that the MP3 standard allows for a sample rate (Hz)."""
    if rate >= 32_000:
        return MPEG1_KBPS
    return MPEG2_KBPS if rate >= 16_000 else MPEG25_KBPS


@pytest.mark.parametrize("name", [*CONTAINERS, *PECULIAR, *RATES, *LAYOUTS])
def test_containers_codecs_rates_and_layouts(corpus: Corpus, name: str) -> None:
    assert_identical(corpus, corpus.path(name))


def test_a_file_of_sox(corpus: Corpus, tmp_path: Path) -> None:
    source = tmp_path / "a.sph"
    programs.run("sox", corpus.path("wav_s16"), source)
    assert assert_identical(corpus, source).converted.report.container == "nistsphere"


@pytest.mark.parametrize("name", ["wav_f32", "flac_24", "m4a_aac", "mkv_opus", "wma", "mpegts_mp2"])
def test_containers_at_a_variable_bitrate(corpus: Corpus, name: str) -> None:
    assert_identical(corpus, corpus.path(name), V2)


@pytest.mark.parametrize("name", CHANGING)
def test_change_of_format_loses_nothing(corpus: Corpus, name: str) -> None:
    """Frames before the change equal ffmpeg's, which loses up to one there; polymux does not."""
    converted = polymux.convert_to_mp3(corpus.path(name), **CBR_128.ours)
    ours = mp3_frames.parse(converted.read())
    mp3_frames.check_decodable(ours)
    theirs = mp3_frames.parse(corpus.reference(corpus.path(name)))
    first = mp3_frames.parse(corpus.reference(corpus.path(MEDIA[name].joined[0])))
    before_change = first.samples // 1152 - 2
    assert ours.audio[:before_change] == theirs.audio[:before_change]
    assert 0 < converted.report.samples - theirs.samples <= 1152
    assert "format_changed" in [warning.code for warning in converted.report.warnings]
    assert not converted.report.identical


@pytest.mark.parametrize(
    ("kbps", "rate"),
    [
        *sorted(BITRATES),
        *(pytest.param(*one, marks=pytest.mark.long) for one in sorted(FURTHER_BITRATES)),
    ],
)
def test_constant_bitrates(corpus: Corpus, kbps: int, rate: int) -> None:
    """The report has a warning exactly if the standard does not allow the bitrate."""
    source = corpus.wave(Sound(samples=rate * 7 // 10, rate=rate))
    compared = assert_identical(corpus, source, cbr(kbps))
    codes = [warning.code for warning in compared.converted.report.warnings]
    assert codes == ([] if kbps in legal_kbps(rate) else ["bitrate_adjusted"])
    assert compared.ours.xing is not None
    assert compared.ours.xing.identifier == "Info"
    assert compared.converted.report.mode == "cbr"


@pytest.mark.parametrize(
    ("kind", "mode"),
    [
        *(("music", abr(kbps)) for kbps in (48, 96, 128, 160, 200, 256)),
        *(("music", vbr(quality)) for quality in (*range(10), 2.5, 9.9)),
        *(("speech", mode) for mode in (abr(48), abr(160), vbr(0), vbr(5), vbr(9))),
    ],
    ids=str,
)
def test_average_and_variable_bitrates(corpus: Corpus, kind: str, mode: Mode) -> None:
    compared = assert_identical(corpus, corpus.wave(Sound(kind, 2 * SECOND)), mode)
    assert compared.converted.report.mode == mode.name.rstrip("0123456789.").replace("v", "vbr")


def test_the_default_is_v0(corpus: Corpus) -> None:
    assert_identical(corpus, corpus.path("wav_s16"), Mode("default", {}, V0.theirs))


@pytest.mark.parametrize("mode", [CBR_128, V2, abr(128)], ids=str)
@pytest.mark.parametrize("kind", ["speech", "silence", "tone", "noise", "quiet_noise"])
def test_kinds_of_sound(corpus: Corpus, kind: str, mode: Mode) -> None:
    assert_identical(corpus, corpus.wave(Sound(kind, 2 * SECOND)), mode)


@pytest.mark.parametrize("mode", [CBR_128, V2, abr(128)], ids=str)
@pytest.mark.parametrize(("preset", "level"), [("ffmpeg", None), ("best", 4), ("fast", 7)])
def test_presets(corpus: Corpus, mode: Mode, preset: str, level: int | None) -> None:
    source = corpus.wave(Sound(samples=SECOND))
    theirs = () if level is None else ("-compression_level", str(level))
    assert_identical(corpus, source, mode, more_ours={"preset": preset}, more_theirs=theirs)


@pytest.mark.parametrize(
    ("samples", "codec", "mode"),
    [
        *((samples, "pcm_s16le", CBR_128) for samples in LENGTHS),
        *((samples, "pcm_s16le", V2) for samples in (1, 576, 1152, 1153)),
        *((samples, "pcm_f32le", CBR_128) for samples in (1, 1105, 9_999)),
    ],
    ids=str,
)
def test_odd_lengths(corpus: Corpus, samples: int, codec: str, mode: Mode) -> None:
    compared = assert_identical(corpus, corpus.wave(Sound(samples=samples), codec), mode)
    assert compared.converted.report.samples == samples


def test_minutes_of_speech(corpus: Corpus) -> None:
    sound = Sound("speech", 120 * 16_000 + 1, 16_000, "mono")
    compared = assert_identical(corpus, corpus.wave(sound), cbr(32))
    assert compared.converted.report.samples == sound.samples


@pytest.mark.long
@pytest.mark.parametrize("mode", [CBR_128, cbr(320), V0, V2, abr(160)], ids=str)
def test_ten_minutes_of_music(corpus: Corpus, mode: Mode) -> None:
    sound = Sound(samples=600 * SECOND + 1)
    compared = assert_identical(corpus, corpus.wave(sound), mode, more_ours={"exact": True})
    assert compared.converted.report.samples == sound.samples


#: (media name, option, value, report field).
CHOSEN = [
    *(("wav_s16", "sample_rate", rate, "sample_rate_hz")
      for rate in (8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000)),
    *(("m4a_aac", "sample_rate", rate, "sample_rate_hz") for rate in (16_000, 48_000)),
    *((name, "channels", 1, "channels")
      for name in ("wav_s16", "m4a_aac", "layout_5.1", "ac3_5.1side", "f32_7.1")),
    *((name, "channels", 2, "channels") for name in ("layout_mono", "layout_5.1", "ac3_5.1side")),
    *((name, "audio_stream", stream, "audio_stream") for stream in (0, 1)
      for name in ("streams_default_second", "streams_more_channels_second")),
]  # fmt: skip


@pytest.mark.parametrize(("name", "option", "value", "field"), CHOSEN)
def test_what_is_chosen(corpus: Corpus, name: str, option: str, value: int, field: str) -> None:
    theirs = {"sample_rate": ("-ar", str(value)), "channels": ("-ac", str(value)),
              "audio_stream": ("-map", f"0:{value}")}[option]  # fmt: skip
    mode = cbr(64) if option == "sample_rate" else CBR_128
    compared = assert_identical(
        corpus, corpus.path(name), mode, more_ours={option: value}, more_theirs=theirs
    )
    assert getattr(compared.converted.report, field) == value


def test_chosen_rate_and_channels(corpus: Corpus) -> None:
    assert_identical(
        corpus, corpus.path("aac_5.1"), V2,
        more_ours={"sample_rate": 16_000, "channels": 1}, more_theirs=("-ar", "16000", "-ac", "1"),
    )  # fmt: skip


PART = {"start": 0.1234, "end": 0.9}


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("wav_s16", {"start": 0.5}), ("wav_s16", {"end": 0.75}),
        ("flac_16", {"start": 0.3, "end": 1.1}), ("m4a_aac", {"start": 0.5}),
        *((f"late_audio_h264_{ending}", {"start": 1.25}) for ending in ("mkv", "nut")),
        *(("chained_ts", part) for part in ({"end": 2.4}, {"start": 0.3, "end": 2.4})),
        *((name, PART) for name in (
            "wav_s16", "wav_adpcm", "wav_adpcm_ima", "w64_adpcm", "m4a_aac", "mkv_video",
            "ogg_vorbis", "mp4_video", "mkv_flac", "mp3_cbr",
            "mpegts_aac", "wma", "webm_opus", "avi_mp3", "adts", "mov_alac", "mp4_fragmented",
            "start_offset_mkv", "edit_list_mp4", "adx", "dv", "gxf", "wtv")),
    ],
)  # fmt: skip
def test_start_and_end(corpus: Corpus, name: str, part: dict[str, Any]) -> None:
    words = {"start": "-ss", "end": "-to"}
    theirs = [word for key, value in part.items() for word in (words[key], str(value))]
    assert_identical(corpus, corpus.path(name), more_ours=part, input_arguments=theirs)


def test_a_start_that_ffmpeg_may_see_elsewhere(corpus: Corpus) -> None:
    """ffmpeg needs seven frames of H.264 for its start time."""
    few = "lavfi:testsrc2=s=96x64:r=25:d=0.2"
    arguments = ("-map", "0:v", "-map", "1:a", "-c:v", "libx264", "-c:a", "flac")
    path = corpus.build("few_frames", Medium(".mkv", (few, MUSIC), arguments))
    assert polymux.convert_to_mp3(path, **CBR_128.ours).report.identical
    assert not polymux.convert_to_mp3(path, **CBR_128.ours, start=0.5).report.identical


@pytest.mark.parametrize("samples", [1, 20, 30])
def test_resampling_a_few_samples(corpus: Corpus, samples: int) -> None:
    path = corpus.wave(Sound(samples=samples, rate=48_000))
    converted = polymux.convert_to_mp3(
        path, **CBR_128.ours, sample_rate=44_100, verify="sequential"
    )
    theirs = corpus.reference(path, ("-b:a", "128k", "-ar", "44100"))
    assert mp3_frames.parse(converted.read()).audio == mp3_frames.parse(theirs).audio


@pytest.mark.parametrize(
    ("mode", "arguments"),
    [(CBR_128, ("-b", "128")), (V2, ("-V", "2")), (abr(128), ("--abr", "128"))], ids=str,
)  # fmt: skip
def test_fields_of_lames_tag(
    corpus: Corpus, tmp_path: Path, mode: Mode, arguments: tuple[str, ...]
) -> None:
    source = corpus.path("wav_s16")
    programs.run("lame", "--quiet", *arguments, source, tmp_path / "theirs.mp3")
    ours = mp3_frames.parse(polymux.convert_to_mp3(source, **mode.ours).read()).xing
    theirs = mp3_frames.parse(tmp_path / "theirs.mp3").xing
    assert ours is not None
    assert theirs is not None
    assert (ours.encoding_flags, ours.noise_shaping) == (
        theirs.encoding_flags, theirs.noise_shaping
    )  # fmt: skip


SAME_FILE = ["wav_s16", "tags_mp3", "tags_flac", "tags_m4a", "tags_ogg", "tags_wav", "chapters_mkv",
             "chapters_m4a", "cover_flac_jpeg", "mp4_video", "wma", "ogg_opus"]  # fmt: skip


@pytest.mark.parametrize(
    ("source", "mode"),
    [
        *((name, CBR_128) for name in SAME_FILE),
        *((name, mode) for name in ("tags_mp3", "chapters_m4a") for mode in (V2, abr(128))),
        (Sound(samples=8_000, rate=8_000, layout="mono"), cbr(8)),
        (Sound(samples=24_000, rate=24_000), cbr(32)),
        (Sound(samples=8_000, rate=8_000), V2),
        (Sound(samples=24_000, rate=24_000, layout="mono"), V2),
        *((sound, mode) for mode in (CBR_128, V2)
          for sound in (Sound(samples=1), Sound(samples=1153), Sound("silence"))),
    ],
    ids=lambda one: one.stem if isinstance(one, Sound) else str(one),
)  # fmt: skip
def test_whole_file_on_request(corpus: Corpus, source: str | Sound, mode: Mode) -> None:
    path = corpus.wave(source) if isinstance(source, Sound) else corpus.path(source)
    converted = polymux.convert_to_mp3(path, **mode.ours, identical_file=True)
    assert converted.read() == corpus.reference(path, mode.theirs).read_bytes()


def test_the_comparison_sees_one_bit(corpus: Corpus) -> None:
    frames = mp3_frames.audio_frames(corpus.reference(corpus.path("wav_s16")))
    changed = [*frames]
    changed[7] = changed[7][:-1] + bytes([changed[7][-1] ^ 1])
    assert identity.first_difference(frames, frames) == ""
    assert "the first is 7" in identity.first_difference(changed, frames)
    assert "56 frames" in identity.first_difference(frames[:56], frames)
