"""Every audio frame equals the one that the ffmpeg program writes with the same libraries."""

from __future__ import annotations

from typing import TYPE_CHECKING

import polymux
import pytest
from support import identity, mp3_frames
from support.identity import CBR_128, V0, V2, Mode, abr, assert_identical, cbr, vbr
from support.media import CHANGING, CONTAINERS, LAYOUTS, MEDIA, PECULIAR, RATES
from support.sounds import Sound

if TYPE_CHECKING:
    from support.corpus import Corpus

MPEG1_KBPS = (32, 40, 48, 56, 64, 80, 96, 112, 128, 160, 192, 224, 256, 320)
MPEG2_KBPS = (8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 112, 128, 144, 160)
MPEG25_KBPS = (8, 16, 24, 32, 40, 48, 56, 64)
ALL_KBPS = sorted({*MPEG1_KBPS, *MPEG2_KBPS})
LENGTHS = (1, 2, 575, 576, 577, 1104, 1105, 1106, 1151, 1152, 1153, 2303, 2304, 2305, 4607, 44_099)
KINDS = ("music", "speech", "silence", "tone", "noise", "quiet_noise")
SECOND = 44_100


def legal_kbps(rate: int) -> tuple[int, ...]:
    """The bitrates that the standard has for a sample rate."""
    if rate >= 32_000:
        return MPEG1_KBPS
    return MPEG2_KBPS if rate >= 16_000 else MPEG25_KBPS


@pytest.mark.parametrize("mode", [CBR_128, V2], ids=str)
@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_and_codecs(corpus: Corpus, name: str, mode: Mode) -> None:
    assert_identical(corpus, corpus.path(name), mode)


@pytest.mark.parametrize("name", PECULIAR)
def test_peculiarities_of_containers(corpus: Corpus, name: str) -> None:
    assert_identical(corpus, corpus.path(name))


@pytest.mark.parametrize("name", CHANGING)
def test_change_of_format_loses_nothing(corpus: Corpus, name: str) -> None:
    """Up to the change the frames are ffmpeg's; there it loses up to a frame, and we do not."""
    converted = polymux.convert_to_mp3(corpus.path(name), **CBR_128.ours)
    ours = mp3_frames.parse(converted.read())
    mp3_frames.check_decodable(ours)
    theirs = mp3_frames.parse(corpus.reference(corpus.path(name)))
    first = mp3_frames.parse(corpus.reference(corpus.path(MEDIA[name].joined[0])))
    before_change = first.samples // 1152 - 2
    assert ours.audio[:before_change] == theirs.audio[:before_change]
    assert 0 < converted.report.samples - theirs.samples <= 1152
    assert "format_changed" in [warning.code for warning in converted.report.warnings]


@pytest.mark.parametrize("name", RATES)
def test_input_rates(corpus: Corpus, name: str) -> None:
    assert_identical(corpus, corpus.path(name))


@pytest.mark.parametrize("name", LAYOUTS)
def test_channel_layouts(corpus: Corpus, name: str) -> None:
    assert_identical(corpus, corpus.path(name))


@pytest.mark.parametrize("rate", [22_050, 24_000, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("kbps", ALL_KBPS)
def test_constant_bitrates(corpus: Corpus, kbps: int, rate: int) -> None:
    check_bitrate(corpus, kbps, rate)


@pytest.mark.parametrize("rate", [8_000, 11_025, 12_000, 16_000])
@pytest.mark.parametrize("kbps", [8, 24, 64, 80, 160, 320])
def test_constant_bitrates_at_low_rates(corpus: Corpus, kbps: int, rate: int) -> None:
    check_bitrate(corpus, kbps, rate)


@pytest.mark.long
@pytest.mark.parametrize("rate", [8_000, 11_025, 12_000, 16_000])
@pytest.mark.parametrize("kbps", sorted({*ALL_KBPS} - {8, 24, 64, 80, 160, 320}))
def test_further_constant_bitrates_at_low_rates(corpus: Corpus, kbps: int, rate: int) -> None:
    check_bitrate(corpus, kbps, rate)


def check_bitrate(corpus: Corpus, kbps: int, rate: int) -> None:
    """Identity, and a warning exactly where the standard has no such bitrate."""
    source = corpus.wave(Sound(samples=rate * 7 // 10, rate=rate))
    compared = assert_identical(corpus, source, cbr(kbps))
    codes = [warning.code for warning in compared.converted.report.warnings]
    assert codes == ([] if kbps in legal_kbps(rate) else ["bitrate_adjusted"])
    assert compared.ours.xing is not None
    assert compared.ours.xing.identifier == "Info"
    assert compared.converted.report.mode == "cbr"


@pytest.mark.parametrize("kbps", [48, 96, 128, 160, 200, 256])
@pytest.mark.parametrize("kind", ["music", "speech"])
def test_average_bitrates(corpus: Corpus, kind: str, kbps: int) -> None:
    compared = assert_identical(corpus, corpus.wave(Sound(kind, 2 * SECOND)), abr(kbps))
    assert compared.converted.report.mode == "abr"


@pytest.mark.parametrize("quality", [*range(10), 2.5, 9.9])
@pytest.mark.parametrize("kind", ["music", "speech"])
def test_variable_bitrates(corpus: Corpus, kind: str, quality: float) -> None:
    compared = assert_identical(corpus, corpus.wave(Sound(kind, 2 * SECOND)), vbr(quality))
    assert compared.converted.report.mode == "vbr"


def test_the_default_is_v0(corpus: Corpus) -> None:
    assert_identical(corpus, corpus.path("wav_s16"), Mode("default", {}, V0.theirs))


@pytest.mark.parametrize("mode", [CBR_128, cbr(320), V2, abr(128)], ids=str)
@pytest.mark.parametrize("kind", KINDS)
def test_kinds_of_sound(corpus: Corpus, kind: str, mode: Mode) -> None:
    assert_identical(corpus, corpus.wave(Sound(kind, 2 * SECOND)), mode)


@pytest.mark.parametrize("mode", [CBR_128, V2, abr(128)], ids=str)
@pytest.mark.parametrize(("preset", "level"), [("ffmpeg", None), ("best", 4), ("fast", 7)])
def test_presets(corpus: Corpus, mode: Mode, preset: str, level: int | None) -> None:
    source = corpus.wave(Sound(samples=2 * SECOND))
    theirs = () if level is None else ("-compression_level", str(level))
    assert_identical(corpus, source, mode, more_ours={"preset": preset}, more_theirs=theirs)


@pytest.mark.parametrize("mode", [CBR_128, V2], ids=str)
@pytest.mark.parametrize("samples", LENGTHS)
def test_odd_lengths(corpus: Corpus, samples: int, mode: Mode) -> None:
    compared = assert_identical(corpus, corpus.wave(Sound(samples=samples)), mode)
    assert compared.converted.report.samples == samples


@pytest.mark.parametrize("samples", [1, 575, 576, 1105, 9_999])
def test_odd_lengths_in_float(corpus: Corpus, samples: int) -> None:
    source = corpus.wave(Sound(samples=samples), "pcm_f32le")
    assert assert_identical(corpus, source).converted.report.samples == samples


def test_ten_minutes_of_speech(corpus: Corpus) -> None:
    sound = Sound("speech", 600 * 16_000 + 1, 16_000, "mono")
    compared = assert_identical(corpus, corpus.wave(sound), cbr(32))
    assert compared.converted.report.samples == sound.samples


@pytest.mark.long
@pytest.mark.parametrize("mode", [CBR_128, cbr(320), V0, V2, abr(160)], ids=str)
def test_ten_minutes_of_music(corpus: Corpus, mode: Mode) -> None:
    sound = Sound(samples=600 * SECOND + 1)
    compared = assert_identical(corpus, corpus.wave(sound), mode, more_ours={"exact": True})
    assert compared.converted.report.samples == sound.samples


@pytest.mark.parametrize("rate", [8_000, 11_025, 16_000, 22_050, 32_000, 44_100, 48_000])
@pytest.mark.parametrize("name", ["wav_s16", "m4a_aac"])
def test_chosen_sample_rate(corpus: Corpus, name: str, rate: int) -> None:
    compared = assert_identical(
        corpus, corpus.path(name), cbr(64),
        more_ours={"sample_rate": rate}, more_theirs=("-ar", str(rate)),
    )  # fmt: skip
    assert compared.converted.report.sample_rate_hz == rate


@pytest.mark.parametrize("channels", [1, 2])
@pytest.mark.parametrize(
    "name", ["wav_s16", "m4a_aac", "layout_mono", "layout_5.1", "ac3_5.1side", "f32_7.1"]
)
def test_chosen_channels(corpus: Corpus, name: str, channels: int) -> None:
    compared = assert_identical(
        corpus, corpus.path(name),
        more_ours={"channels": channels}, more_theirs=("-ac", str(channels)),
    )  # fmt: skip
    assert compared.converted.report.channels == channels


def test_chosen_rate_and_channels(corpus: Corpus) -> None:
    assert_identical(
        corpus, corpus.path("aac_5.1"), V2,
        more_ours={"sample_rate": 16_000, "channels": 1}, more_theirs=("-ar", "16000", "-ac", "1"),
    )  # fmt: skip


@pytest.mark.parametrize(("start", "end"), [(0.5, None), (None, 0.75), (0.3, 1.1), (0.1234, 0.9)])
@pytest.mark.parametrize("name", ["wav_s16", "flac_16", "m4a_aac", "mkv_video", "ogg_vorbis"])
def test_start_and_end(corpus: Corpus, name: str, start: float | None, end: float | None) -> None:
    given = {"start": start, "end": end}
    theirs = [("-ss", start), ("-to", end)]
    assert_identical(
        corpus, corpus.path(name),
        more_ours={key: value for key, value in given.items() if value is not None},
        input_arguments=[str(word) for pair in theirs if pair[1] is not None for word in pair],
    )  # fmt: skip


@pytest.mark.parametrize(
    "name", ["mp4_video", "mkv_flac", "mp3_cbr", "mpegts_aac", "wma", "webm_opus", "avi_mp3",
             "adts", "mov_alac", "mp4_fragmented", "start_offset_mkv", "edit_list_mp4"],
)  # fmt: skip
def test_start_and_end_in_further_containers(corpus: Corpus, name: str) -> None:
    assert_identical(
        corpus, corpus.path(name),
        more_ours={"start": 0.1234, "end": 0.9}, input_arguments=("-ss", "0.1234", "-to", "0.9"),
    )  # fmt: skip


@pytest.mark.parametrize("name", ["streams_default_second", "streams_more_channels_second"])
@pytest.mark.parametrize("stream", [0, 1])
def test_chosen_stream(corpus: Corpus, name: str, stream: int) -> None:
    compared = assert_identical(
        corpus, corpus.path(name),
        more_ours={"audio_stream": stream}, more_theirs=("-map", f"0:{stream}"),
    )  # fmt: skip
    assert compared.converted.report.audio_stream == stream


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_number_of_threads_changes_nothing(corpus: Corpus, threads: int) -> None:
    source = corpus.wave(Sound(samples=20 * SECOND))
    assert_identical(corpus, source, more_ours={"threads": threads})


def test_bytes_and_files_as_input_give_the_same(corpus: Corpus) -> None:
    path = corpus.path("mp4_video")
    from_path = polymux.convert_to_mp3(path, bitrate="128k").read()
    from_bytes = polymux.convert_to_mp3(path.read_bytes(), bitrate="128k").read()
    with path.open("rb") as file:
        from_file = polymux.convert_to_mp3(file, bitrate="128k").read()
    assert from_path == from_bytes == from_file


SAME_FILE = ["wav_s16", "tags_mp3", "tags_flac", "tags_m4a", "tags_ogg", "tags_wav", "chapters_mkv",
             "chapters_m4a", "cover_flac_jpeg", "mp4_video", "wma", "ogg_opus"]  # fmt: skip


@pytest.mark.parametrize("mode", [CBR_128, V2, abr(128)], ids=str)
@pytest.mark.parametrize("name", SAME_FILE)
def test_whole_file_on_request(corpus: Corpus, name: str, mode: Mode) -> None:
    source = corpus.path(name)
    theirs = corpus.reference(source, mode.theirs).read_bytes()
    converted = polymux.convert_to_mp3(source, **mode.ours, identical_file=True)
    assert converted.read() == theirs


@pytest.mark.parametrize("rate", [8_000, 24_000])
@pytest.mark.parametrize("layout", ["mono", "stereo"])
@pytest.mark.parametrize("mode", [cbr(8), cbr(32), V2], ids=str)
def test_whole_file_at_low_rates(corpus: Corpus, rate: int, layout: str, mode: Mode) -> None:
    source = corpus.wave(Sound(samples=rate, rate=rate, layout=layout))
    theirs = corpus.reference(source, mode.theirs).read_bytes()
    converted = polymux.convert_to_mp3(source, **mode.ours, identical_file=True)
    assert converted.read() == theirs


@pytest.mark.parametrize("mode", [CBR_128, V2], ids=str)
@pytest.mark.parametrize("sound", [Sound(samples=1), Sound(samples=1153), Sound("silence")],
                         ids=lambda sound: sound.stem)  # fmt: skip
def test_whole_file_of_little(corpus: Corpus, sound: Sound, mode: Mode) -> None:
    source = corpus.wave(sound)
    converted = polymux.convert_to_mp3(source, **mode.ours, identical_file=True)
    assert converted.read() == corpus.reference(source, mode.theirs).read_bytes()


def test_the_comparison_sees_one_bit(corpus: Corpus) -> None:
    frames = mp3_frames.audio_frames(corpus.reference(corpus.path("wav_s16")))
    changed = [*frames]
    changed[7] = changed[7][:-1] + bytes([changed[7][-1] ^ 1])
    assert identity.first_difference(frames, frames) == ""
    assert "the first is 7" in identity.first_difference(changed, frames)
    assert "56 frames" in identity.first_difference(frames[:56], frames)
