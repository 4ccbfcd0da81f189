"""What results look like in a notebook: HTML, in which texts from outside are texts.

Small media lie in the page itself, so that a notebook that is kept can be looked at later; large
ones are linked. Bytes that are shown in one result have a bound.
"""

from __future__ import annotations

from base64 import b64encode
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from polymux._util.text import clock, size
from polymux.errors import PolymuxError
from polymux.notebook.markup import code, escaped, is_address, link, markdown, preformatted, table

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from polymux.batches.results import BatchItem, BatchReport
    from polymux.client.responses import (
        AnswerMessage,
        ChatCompletion,
        Choice,
        Prediction,
        Song,
        SongList,
        TranscriptChunk,
    )
    from polymux.media.media_file import ConversionOutcome, MediaFile
    from polymux.media.results import ConversionReport, Cover, MediaInfo, PcmAudio, StreamInfo
    from polymux.songs.results import (
        AddReport,
        CatalogueSong,
        CatalogueStatistics,
        CheckReport,
        Match,
    )

__all__ = [
    "add_report",
    "batch_item",
    "batch_report",
    "catalogue_song",
    "chat_completion",
    "check_report",
    "choice",
    "conversion_outcome",
    "conversion_report",
    "cover",
    "facts",
    "linked_path",
    "match",
    "media_info",
    "message",
    "pcm_audio",
    "prediction",
    "song",
    "song_list",
    "statistics",
]


_MAX_BYTES = 10_000_000
_MAX_COVER_BYTES = 1_000_000
_MAX_FILES = 50
_PICTURES = ("image/png", "image/jpeg", "image/gif", "image/webp", "image/bmp")


def linked_path(path: Path, text: str) -> str:
    """A link to a file below the notebook's own folder; the text where no browser would open it."""
    try:
        below = path.absolute().relative_to(Path.cwd())
    except (OSError, ValueError):
        return escaped(text)
    return f'<a href="{quote(below.as_posix())}">{escaped(text)}</a>'


def embedded(tag: str, content_type: str, data: bytes) -> str:
    """A picture, sound or video whose bytes lie in the page."""
    source = f"data:{escaped(content_type)};base64,{b64encode(data).decode('ascii')}"
    controls, end = ("", "") if tag == "img" else (" controls", f"</{tag}>")
    return f'<{tag}{controls} src="{source}" style="max-width: 100%">{end}'


def cover(picture: Cover, height: int = 240) -> str:
    """An embedded picture; of one that no browser shows, or a large one, what it is."""
    kind = picture.mime_type.lower()
    if kind not in _PICTURES or len(picture.data) > _MAX_BYTES:
        return f"<div>{escaped(kind)}, {size(len(picture.data))}</div>"
    shown = embedded("img", kind, picture.data)
    return shown.replace("max-width: 100%", f"max-height: {height}px")


def prediction(job: Prediction) -> str:
    """A job: how it went, and what it made."""
    facts = [f"<b>{escaped(job.model or 'prediction')}</b>", escaped(job.status)]
    took_s = (job.metrics or {}).get("predict_time")
    if isinstance(took_s, (int, float)):
        facts.append(f"{took_s:.1f} s")
    if job.id is not None:
        facts.append(escaped(job.id))
    parts = [f"<div>{' · '.join(facts)}</div>"]
    done = job.extra.get("progress")
    if not job.finished and isinstance(done, (int, float)):
        parts.append(f'<progress value="{float(done):.4f}" max="1"></progress>')
    if job.error is not None:
        parts.append(f"<div>{escaped(job.error)}</div>")
    parts.append(_output(job))
    if job.logs.strip():
        parts.append(f"<details><summary>logs</summary>{preformatted(job.logs)}</details>")
    return f"<div>{''.join(parts)}</div>"


def _output(job: Prediction) -> str:
    """What a job made, by its form: operations share none."""
    output = job.output
    try:
        if isinstance(output, str):
            return _files(job.images) if _is_file(output) else preformatted(output)
        if isinstance(output, list) and all(isinstance(one, str) for one in output):
            if all(_is_file(one) for one in output):
                return _files(job.images)
            return preformatted("".join(output))
        if isinstance(output, dict) and ("audio" in output or "spectrogram" in output):
            return _files([one for one in (job.audio, job.spectrogram) if one is not None])
        if isinstance(output, (dict, list)):
            return transcript(job.text, job.chunks)
    except PolymuxError as error:
        return f"<div>{escaped(error)}</div>"
    return ""


def _is_file(text: str) -> bool:
    return is_address(text) or text.startswith("file:///")


def _files(files: Sequence[MediaFile]) -> str:
    """Files as each shows itself, until the page has bytes enough."""
    shown, spent = [], 0
    for number, file in enumerate(files):
        if spent > _MAX_BYTES or number >= _MAX_FILES:
            shown.append(f"<div>and {len(files) - number} more</div>")
            break
        shown.append(file._repr_html_())
        spent += len(shown[-1])
    return "".join(shown)


def transcript(text: str, chunks: Sequence[TranscriptChunk]) -> str:
    """What was said, and when."""
    rows = [(_moment(one.start_s), _moment(one.end_s), escaped(one.text)) for one in chunks]
    times = "" if not rows else (
        f"<details><summary>times</summary>{table(rows, ('from', 'to', 'text'))}</details>"
    )  # fmt: skip
    return preformatted(text, 100_000) + times


def _moment(time_s: float | None) -> str:
    return "" if time_s is None else f"{clock(time_s)}.{int(time_s * 10 % 10)}"


def song(one: Song) -> str:
    """A song with its cover, which is fetched as results are: guarded, and without a key."""
    return f"<div>{_song_cover(one)}<div>{_song_name(one)}</div></div>"


def _song_name(one: Song) -> str:
    return link(one.url, one.name or one.url)


def _song_cover(one: Song) -> str:
    if not is_address(one.image_url):
        return ""
    from polymux.client.remote_file import RemoteFile

    file = one._file(one.image_url)  # noqa: SLF001 - it knows which server answered
    if not isinstance(file, RemoteFile):
        return ""
    try:
        data = file.read(limit_bytes=_MAX_COVER_BYTES)
    except PolymuxError:
        return ""  # A card without its picture is still one.
    kind = _picture_type(data)
    return "" if kind is None else embedded("img", kind, data).replace("100%", "240px")


def _picture_type(data: bytes) -> str | None:
    """What a picture is by its first bytes."""
    begins = {b"\x89PNG": "image/png", b"\xff\xd8\xff": "image/jpeg", b"GIF8": "image/gif"}
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "image/webp"
    return next((kind for first, kind in begins.items() if data.startswith(first)), None)


def song_list(songs: SongList) -> str:
    """Songs, best first. Their covers are not fetched: there may be many."""
    rows = [(str(number), _song_name(one)) for number, one in enumerate(songs, 1)]
    return table(rows, ("", "song")) if rows else "<div>no songs</div>"


def conversion_report(report: ConversionReport) -> str:
    """What a conversion did, and what it warns of."""
    rate = f"{report.sample_rate_hz / 1000:g} kHz, {report.channels} ch"
    rows = [
        ("from", f"{escaped(report.codec)} in {escaped(report.container)}"),
        ("to", f"MP3 {escaped(report.mode.upper())}, {rate}, {escaped(report.encoder)}"),
        ("length", f"{clock(report.duration_s)}, {report.frames} frames"),
        ("size", size(report.bytes)),
        ("took", f"{report.elapsed_s:.2f} s, {report.speed:.0f} times real time"),
    ]
    for one in report.warnings:
        where = "" if one.position_s is None else f" at {clock(one.position_s)}"
        times = "" if one.count == 1 else f" ({one.count} times)"
        rows.append((f"<b>{escaped(one.code)}</b>", f"{escaped(one.message)}{where}{times}"))
    return table(rows)


def conversion_outcome(outcome: ConversionOutcome) -> str:
    """The file, or why there is none."""
    if outcome.file is not None:
        return outcome.file._repr_html_()
    return f"<div>source {outcome.index}: {escaped(outcome.error)}</div>"


def media_info(info: MediaInfo) -> str:
    """What a file is: container, streams, tags and cover."""
    facts = [escaped(info.container_long_name)]
    if info.duration_s is not None:
        facts.append(clock(info.duration_s))
    if info.size_bytes is not None:
        facts.append(size(info.size_bytes))
    if info.bitrate_bps is not None:
        facts.append(f"{info.bitrate_bps / 1000:.0f} kbit/s")
    rows = [
        (str(one.index), escaped(one.type), escaped(one.codec), _form(one), escaped(one.language))
        for one in info.streams
    ]
    streams = table(rows, ("stream", "type", "codec", "form", "language"))
    tags = table([(escaped(name), escaped(text)) for name, text in info.tags.items()])
    picture = "" if info.cover is None else cover(info.cover)
    return f"<div><b>{', '.join(facts)}</b>{streams}{tags if info.tags else ''}{picture}</div>"


def _form(one: StreamInfo) -> str:
    if one.type == "audio":
        return f"{one.sample_rate_hz} Hz, {escaped(one.channel_layout or one.channels)}"
    return f"{one.width}x{one.height}" if one.width else ""


def pcm_audio(audio: PcmAudio) -> str:
    """A player; of long sound its length alone. The samples lie in it as they are, as floats."""
    data = audio.samples.cast("B")
    facts = f"{clock(audio.duration_s)}, {audio.sample_rate_hz} Hz, {audio.channels} ch"
    if not len(data) or len(data) > _MAX_BYTES:
        return f"<div>{facts}</div>"
    player = embedded("audio", "audio/wav", _wave(audio, data))
    return f"<div>{player}<div>{facts}</div></div>"


def _wave(audio: PcmAudio, data: memoryview[int]) -> bytes:
    """A WAV file of floats (Multimedia Programming Interface and Data Specifications 1.0, 1991)."""
    from struct import pack

    frame_bytes = 4 * audio.channels
    rate = audio.sample_rate_hz
    form = pack("<HHIIHHH", 3, audio.channels, rate, rate * frame_bytes, frame_bytes, 32, 0)
    fact = pack("<I", len(audio))
    chunks = b"".join(
        name + pack("<I", len(part)) + part
        for name, part in ((b"fmt ", form), (b"fact", fact), (b"data", bytes(data)))
    )
    return b"RIFF" + pack("<I", 4 + len(chunks)) + b"WAVE" + chunks


def key_values(pairs: Iterable[tuple[str, Any]]) -> str:
    """Names and values, all of them text."""
    return table([(escaped(name), escaped(value)) for name, value in pairs])


_ORDINARY_ENDS = (None, "stop", "tool_calls", "function_call")


def chat_completion(answer: ChatCompletion) -> str:
    """The answers, one below the other, with the calls they ask for and how they ended.

    Example:
        >>> import polymux
        >>> from polymux.notebook.cards import chat_completion
        >>> body = b'{"choices": [{"message": {"content": "# Hello"}, "finish_reason": "length"}]}'
        >>> print(chat_completion(polymux.ChatCompletion.decode(body)))
        # Hello
        <BLANKLINE>
        *Ended by: length*
    """
    return "\n\n---\n\n".join(choice(one) for one in answer.choices)


def choice(one: Choice) -> str:
    """One answer: what was written, the calls it asks for, and how it ended."""
    parts = [message(one.message)]
    if one.finish_reason not in _ORDINARY_ENDS:
        parts.append(f"*Ended by: {markdown(one.finish_reason or '')}*")
    return "\n\n".join(part for part in parts if part)


def message(one: AnswerMessage) -> str:
    """What was written, and the calls it asks for."""
    parts = [markdown(one.content)] if one.content else []
    for call in one.tool_calls:
        parts.append(markdown(f"Calls {call.name}:"))
        parts.append(code(call.arguments, "json"))
    return "\n\n".join(parts)


_COVER_PIXELS = 160


def catalogue_song(song: CatalogueSong) -> str:
    """A card: cover, title, artist, album, length."""
    try:
        picture = song.read_cover()
    except PolymuxError:
        picture = None  # The file is gone; what is known of it is not.
    shown = "" if picture is None else cover(picture, _COVER_PIXELS)
    # The file's own address is not shown: no browser follows it, and it says who keeps it where.
    name = link(song.url, song.name) if is_address(song.url) else escaped(song.name)
    facts = [escaped(song.album)] if song.album else []
    facts += [str(song.year)] if song.year is not None else []
    facts.append(clock(song.duration_s))
    return f"<div>{shown}<div><b>{name}</b></div><div>{', '.join(facts)}</div></div>"


def match(one: Match) -> str:
    """The song that was recognised: where in it, and how surely."""
    facts = [("at", clock(one.offset_s)), ("confidence", f"{one.confidence:.0%}")]
    for name in ("speed", "tempo", "pitch"):
        factor = getattr(one, name)
        if factor != 1.0:
            facts.append((name, f"{factor:.3f} times"))
    if one.runner_up is not None:
        second = one.runner_up
        facts.append(("next best", f"{second.song.name} ({second.confidence:.0%})"))
    return f"<div>{catalogue_song(one.song)}{key_values(facts)}</div>"


def add_report(report: AddReport) -> str:
    """What became of the files, and why some are not there."""
    names = ("added", "updated", "moved", "duplicates", "unchanged")
    facts = [(name, str(getattr(report, name))) for name in names if getattr(report, name)]
    facts += [("missing", str(len(report.missing)))] if report.missing else []
    facts.append(("listened to", f"{clock(report.audio_s)} in {report.elapsed_s:.1f} s"))
    if report.cancelled:
        facts.append(("ended", "before its end"))
    failed = [(escaped(one.path.name), escaped(one.error)) for one in report.failed]
    return key_values(facts) + (table(failed, ("failed", "why")) if failed else "")


def statistics(one: CatalogueStatistics) -> str:
    """How much a catalogue holds."""
    return key_values(
        [
            ("songs", one.songs),
            ("recordings", one.recordings),
            ("groups", one.groups),
            ("length", clock(one.duration_s)),
            ("database", f"{size(one.database_bytes)}, {one.library}"),
            *((f"index, {name}", number) for name, number in one.index.items()),
        ]
    )


_MAX_ROWS = 20


def facts(one: object, names: Iterable[str]) -> str:
    """Names and values; what is not known, or empty, is left out.

    Args:
        one: The result.
        names: Its attributes, in the order in which they are shown.

    Example:
        >>> from polymux import Progress
        >>> from polymux.notebook.cards import facts
        >>> told = facts(Progress(30.0, None, 480_000, 0.5), ("position_s", "duration_s"))
        >>> "position s" in told, "duration" in told
        (True, False)
    """
    found = ((name.replace("_", " "), _plain(getattr(one, name))) for name in names)
    return key_values((name, value) for name, value in found if value != "")


def _plain(value: Any) -> str:
    """A value in short. Of a file the name: its folder says who keeps it where."""
    if value is None or value in ((), [], {}, ""):
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Path):
        return value.name
    if isinstance(value, tuple):
        return ", ".join(map(_plain, value))
    return str(value)


def batch_item(item: BatchItem) -> str:
    """An input and what became of it; the results are linked where a notebook can reach them."""
    rows = [("input", escaped(_input(item)))]
    rows += [("output", linked_path(path, path.name)) for path in item.outputs[:_MAX_ROWS]]
    if item.error_code is not None:
        rows.append(("why", escaped(_why(item))))
    return table(rows) + facts(item, ("state", "tries", "elapsed_s", "size_bytes"))


def _input(item: BatchItem) -> str:
    return item.input if item.size_bytes is None else Path(item.input).name


def _why(item: BatchItem) -> str:
    """What went wrong, without the path that its own message begins with."""
    message = (item.error_message or "").removeprefix(f"{item.input}: ")
    return f"{item.error_code}: {message}"


def batch_report(report: BatchReport) -> str:
    """How a batch went, and which inputs failed and why: the first of them."""
    rows = [(name, escaped(getattr(report, name))) for name in ("total", "done")]
    others = ("failed", "waiting", "kept", "copied", "repeated", "ignored", "remade")
    rows += [(name, escaped(count)) for name in others if (count := getattr(report, name))]
    rows += [("unread", escaped(one)) for one in report.unread[:_MAX_ROWS]]
    rows.append(("took", clock(report.elapsed_s)))
    rows.append(("manifest", linked_path(report.manifest, report.manifest.name)))
    failed = []
    if report.failed:
        try:
            first = islice(report.items("failed"), _MAX_ROWS)
            failed = [(escaped(_input(item)), escaped(_why(item))) for item in first]
        except PolymuxError as error:
            failed = [("", escaped(error))]  # The manifest is gone; the counts are not.
    return table(rows) + (table(failed, ("failed", "why")) if failed else "")


def check_report(report: CheckReport) -> str:
    """Whether a catalogue is whole, and what is not."""
    told = "everything is as it should be" if report.is_whole else "something is wrong"
    rows = [("catalogue", told)]
    rows += [("problem", escaped(one)) for one in report.problems[:_MAX_ROWS]]
    rows += [("index made anew", escaped(one)) for one in report.damaged_segments[:_MAX_ROWS]]
    rows += _songs("missing", report.missing) + _songs("to be listened to again", report.stale)
    return table(rows)


def _songs(words: str, songs: tuple[CatalogueSong, ...]) -> list[tuple[str, str]]:
    rows = [(words, escaped(one.name)) for one in songs[:_MAX_ROWS]]
    if len(songs) > _MAX_ROWS:
        rows.append((words, f"and {len(songs) - _MAX_ROWS} more"))
    return rows
