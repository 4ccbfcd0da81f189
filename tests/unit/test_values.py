from __future__ import annotations

import dataclasses
import inspect
import json
import pickle
import pprint
import typing
from array import array
from pathlib import Path
from typing import Any

import polymux
import pytest
from polymux.media import results

REPORT: dict[str, Any] = {
    "duration_s": 10.0, "samples": 441_000, "frames": 385, "bytes": 161_000,
    "audio_bytes": 160_914, "sample_rate_hz": 44_100, "channels": 2, "mode": "cbr",
    "container": "flac", "codec": "flac", "audio_stream": 0, "encoder": "LAME 3.100",
    "elapsed_s": 0.1, "damaged_packets": 1, "seams": 3, "absorbed_segments": 1,
    "bumped_frames": 2, "repairs": 5, "inexact_frames": 6, "identical": False, "reference": "",
    "warnings": [
        {"code": "damaged_packet", "message": "skipped", "position_s": 1.5, "count": 1},
    ],
}  # fmt: skip
STREAM: dict[str, Any] = {
    "index": 0, "type": "audio", "codec": "flac", "duration_s": 10.0, "bitrate_bps": None,
    "sample_rate_hz": 44_100, "channels": 2, "channel_layout": "stereo", "sample_format": "s16",
    "bits_per_sample": 16, "width": 0, "height": 0, "language": "", "is_default": True,
    "is_cover": False, "encrypted": False, "tags": [],
}  # fmt: skip
INFO: dict[str, Any] = {
    "container": "flac", "container_long_name": "raw FLAC", "duration_s": 10.0, "start_s": 0.0,
    "bitrate_bps": 800_000, "size_bytes": 1_000_000, "best_audio_stream": 0,
    "streams": [STREAM, {**STREAM, "index": 1, "type": "video"}],
    "tags": [("title", "One"), ("artist", "A"), ("artist", "B")],
    "chapters": [{"start_ms": 0, "end_ms": 500, "tags": [("title", "Start")]},
                 {"start_ms": 500, "end_ms": 900, "tags": []}],
    "cover": {"mime_type": "image/png", "description": "", "picture_type": 3, "data": b"\x89PNG"},
}  # fmt: skip


def test_report() -> None:
    report = results.report_from_native({**REPORT, "data": b"not of the report"})
    assert report.speed == pytest.approx(100.0)
    assert report.warnings[0].position_s == 1.5
    plain = report.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain == {**REPORT, "speed": report.speed}
    assert pickle.loads(pickle.dumps(report)) == report
    assert results.report_from_native({**REPORT, "elapsed_s": 0.0}).speed == 0.0
    assert repr(report).startswith("ConversionReport(duration_s=")
    assert len(repr(report)) < 300
    file = polymux.MediaFile(report, Path("talk.mp3"))
    assert repr(file).startswith("MediaFile(path='talk.mp3', duration_s=")
    assert len(repr(file)) < 100


def test_results_are_immutable_and_work_with_dataclasses() -> None:
    report = results.report_from_native(REPORT)
    assert dataclasses.asdict(report)["warnings"][0]["position_s"] == 1.5
    changed = dataclasses.replace(report, channels=1)
    assert (changed.channels, changed.codec) == (1, report.codec)
    assert changed != report
    assert hash(dataclasses.replace(changed, channels=2)) == hash(report)
    assert dataclasses.fields(polymux.Limits)[1].name == "streams"
    assert list(inspect.signature(polymux.Progress).parameters) == list(polymux.Progress.names())
    assert "ConversionReport" in pprint.pformat([report], width=20)
    assert "channels" in typing.get_type_hints(polymux.Limits)

    @dataclasses.dataclass(frozen=True)
    class Stricter(polymux.Limits):
        spare: int = 1

    assert Stricter(streams=2) == Stricter(streams=2)
    match polymux.Progress(1.0, None, 3, 4.0):
        case polymux.Progress(position, None, written, _):
            assert (position, written) == (1.0, 3)
    with pytest.raises(AttributeError):
        report.channels = 1  # type: ignore[misc]
    with pytest.raises(AttributeError):
        del report.channels
    for wrong in ((), (1.0, 2.0, 3), (1.0, None, 3, 4.0, 5.0)):
        with pytest.raises(TypeError):
            polymux.Progress(*wrong)
    for names in ({"position_s": 1.0}, {"unknown": 1}):
        with pytest.raises(TypeError):
            polymux.Progress(1.0, None, 3, 4.0, **names)


def test_media_info() -> None:
    info = results.media_info_from_native(INFO)
    assert [stream.index for stream in info.audio_streams] == [0]
    assert info.tags == {"title": "One", "artist": "A;B"}
    assert [chapter.title for chapter in info.chapters] == ["Start", ""]
    plain = info.to_dict()
    assert json.loads(json.dumps(plain)) == plain
    assert plain["cover"] == {
        "mime_type": "image/png", "description": "", "picture_type": 3, "size_bytes": 4,
    }  # fmt: skip
    assert plain["streams"][0] == {**STREAM, "tags": {}}
    assert pickle.loads(pickle.dumps(info)) == info
    assert "PNG" not in repr(info)
    for shown in (info, info.streams[0]):
        assert len(repr(shown)) < 200
    assert results.media_info_from_native({**INFO, "cover": None}).to_dict()["cover"] is None


@pytest.mark.parametrize(("channels", "shape"), [(1, (4,)), (2, (2, 2))])
def test_pcm_audio(channels: int, shape: tuple[int, ...]) -> None:
    values = array("f", [0.0, 0.5, -0.5, 1.0])
    audio = results.pcm_audio_from_native(
        {"samples": values.tobytes(), "sample_rate_hz": 4, "channels": channels,
         "damaged_packets": 0, "sample_count": 4 // channels}
    )  # fmt: skip
    assert list(audio.samples) == list(values)
    assert len(audio) == 4 // channels
    assert audio.duration_s == 1 / channels
    assert "memory" not in repr(audio)
    made = audio.to_numpy()
    assert (made.shape, str(made.dtype), made.flatten().tolist()) == (shape, "float32", [*values])


@pytest.mark.parametrize(
    ("position", "duration", "elapsed", "expected"),
    [
        (30.0, 120.0, 0.5, (0.25, 60.0, 1.5)),
        (30.0, None, 0.5, (None, 60.0, None)),
        (0.0, 120.0, 0.0, (0.0, None, None)),
        (0.0, 120.0, 1.0, (0.0, 0.0, None)),
        (121.0, 120.0, 1.0, (1.0, 121.0, 0.0)),
        (1.0, 0.0, 1.0, (None, 1.0, None)),
    ],
)
def test_progress(
    position: float, duration: float | None, elapsed: float, expected: tuple[float | None, ...]
) -> None:
    progress = polymux.Progress(position, duration, 5, elapsed)
    assert (progress.fraction, progress.speed, progress.eta_s) == expected
