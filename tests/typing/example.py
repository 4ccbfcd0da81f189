"""The types that checkers must infer from the public API. mypy checks this file; it never runs."""

from __future__ import annotations

import io
from collections.abc import AsyncGenerator, Iterator
from pathlib import Path
from typing import assert_type

import polymux
from polymux import aio

converted = polymux.convert_to_mp3("talk.mp4", Path("talk.mp3"), bitrate="128k", abr=True)
assert_type(converted, polymux.MediaFile)
assert_type(converted.path, Path | None)
assert_type(converted.save("copy.mp3", overwrite=False), Path)
assert_type(converted.report.speed, float)
assert_type(converted.report.warnings, tuple[polymux.ConversionWarning, ...])
assert_type(polymux.__version__, str)

polymux.convert_to_mp3(b"content", io.BytesIO(), vbr_quality=2, tags={"title": "One"})
polymux.convert_to_mp3(io.BytesIO(b"content"), start=1, end="0:02.5", preset="best")
with open("talk.mp4", "rb") as source, open("talk.mp3", "wb") as target:  # noqa: PTH123
    polymux.convert_to_mp3(source, target, limits=polymux.Limits(duration_s=60))
polymux.convert_to_mp3("talk.mp4", threads=2, exact=True, verify="sequential")
polymux.convert_to_mp3("talk.mp4", verify="ffmpeg")
polymux.convert_to_mp3(memoryview(b"content"), None, on_progress=lambda p: print(p.eta_s))

# mypy must find an error in every line below; an unused "ignore" is an error, too.
polymux.convert_to_mp3("a.wav", preset="loud")  # type: ignore[arg-type]
polymux.convert_to_mp3("a.wav", cover="keep")  # type: ignore[arg-type]
polymux.convert_to_mp3("a.wav", bitrat=128)  # type: ignore[call-arg]
polymux.convert_to_mp3(io.StringIO("text"))  # type: ignore[arg-type]
polymux.convert_many(["a.wav"], bitrate=1.5)  # type: ignore[arg-type]
polymux.Limits(sample_rate=1)  # type: ignore[call-arg]
converted.report.frames = 1  # type: ignore[misc]

outcomes = polymux.convert_many(["a.wav", b"content"], "out", bitrate=128_000, strict=True)
assert_type(outcomes, Iterator[polymux.ConversionOutcome])
for outcome in outcomes:
    assert_type(outcome.file, polymux.MediaFile | None)
    assert_type(outcome.error, Exception | None)
    assert_type(outcome.unwrap(), polymux.MediaFile)

info = polymux.probe("talk.mp4")
assert_type(info.streams[0], polymux.StreamInfo)
assert_type(info.best_audio_stream, int | None)
assert_type(info.cover, polymux.Cover | None)
assert_type(info.tags, dict[str, str])
assert_type(polymux.decode_audio("talk.mp4", channels=2).samples, memoryview[float])


async def on_progress(progress: polymux.Progress) -> None:
    assert_type(progress.fraction, float | None)


async def asynchronous() -> None:
    file = await aio.convert_to_mp3("talk.mp4", bitrate="128k", on_progress=on_progress)
    assert_type(file, polymux.MediaFile)
    assert_type(await polymux.aio.probe("talk.mp4"), polymux.MediaInfo)
    assert_type(await aio.decode_audio("talk.mp4"), polymux.PcmAudio)
    many = aio.convert_many(["a.wav"], preset="fast")
    assert_type(many, AsyncGenerator[polymux.ConversionOutcome, None])


try:
    polymux.convert_to_mp3("a.wav")
except polymux.InputNotFoundError as error:
    assert_type(error.code, str)
    assert_type(error.position_s, float | None)

completion = polymux.ChatCompletion.decode(b"{}")
assert_type(completion.content, str | None)
assert_type(completion.usage, polymux.Usage | None)
assert_type(completion.choices[0].message.tool_calls, tuple[polymux.ToolCall, ...])
job = polymux.Prediction.decode(b"{}").raise_for_status()
assert_type(job.images, tuple[polymux.MediaFile, ...])
assert_type(job.chunks[0].end_s, float | None)
songs = polymux.SongList.decode(b"[]")
assert_type(songs[0], polymux.Song)
assert_type(songs[1:], polymux.SongList)

client = polymux.Client("http://127.0.0.1:8000", "key", timeout=polymux.Timeout(30), retry=0)
assert_type(client.chat("Hello"), polymux.ChatCompletion)
assert_type(client.chat("Hello", stream=True), polymux.ChatStream)
assert_type(client.transcribe("talk.mp4", timeout=60), polymux.Prediction)
assert_type(client.convert_to_mp3("talk.mp4"), polymux.MediaFile)
assert_type(client.ocr("page.png", lang="eng"), polymux.OcrText)
assert_type(client.with_options(retry=polymux.Retry(3)), polymux.Client)
for text in client.chat("Hello", stream=True).texts():
    assert_type(text, str)

# Files of a server, of polymux.Local and of local conversions have one type.
picture = client.generate_image("a boat").images[0]
assert_type(picture.url, str | None)
assert_type(picture.read(limit_bytes=5, timeout=60), bytes)
picture.save("a.png", on_progress=lambda done, total: print(done, total), timeout=5, limit_bytes=9)
assert_type(polymux.Local().convert_to_mp3("talk.mp4").url, str | None)
client.upscale_image(picture)
polymux.probe(converted)
client.chat([{"role": "user", "content": "Hi"}, completion.choices[0].message])


async def asynchronous_client() -> None:
    async with polymux.AsyncClient("http://127.0.0.1:8000") as client:
        song = await client.convert_to_mp3("talk.mp4")
        async for part in song:
            assert_type(part, bytes)
        await song.asave("talk.mp3", on_progress=print, timeout=60)
        assert_type(await client.chat("Hello"), polymux.ChatCompletion)
        assert_type(await client.ocr("page.png"), polymux.OcrText)
        stream = await client.chat("Hello", stream=True)
        assert_type(stream, polymux.AsyncChatStream)
        async for chunk in stream:
            assert_type(chunk, polymux.ChatChunk)
