from __future__ import annotations

import base64
import html.parser
import json
import re
from array import array
from dataclasses import replace
from pathlib import Path
from typing import Any

import polymux
import pytest
from polymux._util import html_repr
from polymux._util.redaction import register_secret
from polymux.client.remote_file import RemoteFile
from polymux.local.local_file import LocalFile
from polymux.media.results import (
    ConversionWarning,
    media_info_from_native,
    report_from_native,
)
from polymux.songs.results import (
    AddReport,
    FailedFile,
    RunnerUp,
    SongIndexStatistics,
)
from support.conversions import wav
from unit.test_values import INFO, REPORT, STREAM

KEY = "pmx-canary-key-of-displays"
HOSTILE = "<script>alert(1)</script><img src=x onerror=alert(2)>\"'&\x1b[31m\u202e" + KEY
PICTURE = b"\x89PNG\r\n\x1a\n" + bytes(30)
#: The tags and attributes that polymux writes.
TAGS = {"div", "b", "a", "table", "tr", "th", "td", "pre", "details", "summary", "progress",
        "img", "audio", "video"}  # fmt: skip
ATTRIBUTES = {"src", "href", "rel", "style", "controls", "preload", "value", "max"}


@pytest.fixture(autouse=True)
def _key_is_known() -> None:
    register_secret(KEY)


class Checker(html.parser.HTMLParser):
    """Parses HTML like a browser, and fails at tags and attributes that polymux never writes."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""
        self.open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS
        for name, value in attrs:
            assert name in ATTRIBUTES, f"{tag} {name}"
            if name == "href":
                assert value is not None
                assert value.startswith(("http://", "https://")) or ":" not in value
            if name == "src":
                assert value is not None
                assert re.match(r"data:(image|audio|video)/[\w.+-]+;base64,[\w+/=]*$", value)
        if tag != "img":
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def checked(page: str) -> str:
    """Check that `page` is harmless and complete, and return its text."""
    checker = Checker()
    checker.feed(page)
    checker.close()
    assert checker.open == []
    assert KEY not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    return checker.text


def song() -> polymux.IndexedSong:
    return polymux.IndexedSong(
        id=1, path=Path("gone.flac"), title=HOSTILE, artist=HOSTILE, album=HOSTILE, year=1999,
        duration_s=61.0, mbid="", cover=None, group_id=1,
    )  # fmt: skip


def report() -> polymux.ConversionReport:
    warning = ConversionWarning(HOSTILE, HOSTILE, 3.0, 2)
    texts = dict.fromkeys(("container", "codec", "encoder"), HOSTILE)
    return replace(report_from_native(REPORT), warnings=(warning,), **texts)


def job(output: Any, **members: Any) -> polymux.Prediction:
    value = {"id": HOSTILE, "model": HOSTILE, "status": "succeeded", "output": output} | members
    return polymux.Prediction.decode(json.dumps(value).encode())


def media_info(cover: polymux.Cover) -> polymux.MediaInfo:
    texts = dict.fromkeys(("codec", "channel_layout", "language"), HOSTILE)
    info = media_info_from_native({**INFO, "streams": [{**STREAM, **texts}]})
    return replace(info, container=HOSTILE, tags={HOSTILE: HOSTILE}, cover=cover)


def song_named(**members: Any) -> polymux.Song:
    return polymux.Song.decode(json.dumps(members).encode())


FAILED = FailedFile(Path("/secret/home/a.mp3"), polymux.UndecodableError(HOSTILE))
CHUNK = {"text": HOSTILE, "timestamp": [0.0, None]}
SHOWN: dict[str, Any] = {
    "transcript": lambda: job({"text": HOSTILE, "chunks": [CHUNK]}),
    "transcript in parts": lambda: job([CHUNK, CHUNK]),
    "text": lambda: job(HOSTILE),
    "failed": lambda: job(None, status="failed", error=HOSTILE, logs=HOSTILE),
    "going on": lambda: job(None, status="processing", progress=0.25, logs=HOSTILE),
    "odd": lambda: job([1, HOSTILE]),
    "odd sound": lambda: job({"audio": [HOSTILE]}),
    "script for a file": lambda: job([f"javascript:{HOSTILE}//a.png"]),
    "song": lambda: song_named(song_name=HOSTILE, songid_url=f"javascript:{HOSTILE}"),
    "songs": lambda: polymux.SongList.decode(json.dumps([{"song_name": HOSTILE}]).encode()),
    "no songs": lambda: polymux.SongList.decode(b"[]"),
    "recognized text": lambda: polymux.OcrText.decode(json.dumps({"text": HOSTILE}).encode()),
    "report": report,
    "error": lambda: polymux.ConversionOutcome(0, "a", None, polymux.NoAudioError(HOSTILE)),
    "media": lambda: media_info(polymux.Cover(HOSTILE, HOSTILE, 3, b"x")),
    "indexed song": song,
    "match": lambda: polymux.Match(song(), 3.0, 1.02, 1.0, 1.0, 0.9, RunnerUp(song(), 0.2)),
    "added": lambda: AddReport(1, failed=(FAILED,), cancelled=True),
    "statistics": lambda: SongIndexStatistics(1, 1, 1, 60.0, 5, HOSTILE, {"songs": 1}),
    "warning": lambda: ConversionWarning("code", HOSTILE, 1.5, 2),
    "failed file": lambda: FAILED,
    "runner-up": lambda: RunnerUp(song(), 0.5),
    "chapter": lambda: polymux.Chapter(0.0, 1.5, HOSTILE),
    "chunk": lambda: polymux.TranscriptChunk({"text": HOSTILE, "timestamp": [0, 1.5]}),
    "tool call": lambda: polymux.ToolCall({"id": HOSTILE, "function": {"name": HOSTILE}}),
    "file": lambda: RemoteFile(f'javascript:alert(1)//"><script>{KEY}'),
}  # fmt: skip


@pytest.mark.parametrize("name", SHOWN)
def test_hostile_texts_are_texts(name: str) -> None:
    page = SHOWN[name]()._repr_html_()
    text = checked(page)
    assert "/secret" not in page
    if name not in {"no songs", "file", "odd", "odd sound", "going on"}:
        assert "<script>alert(1)</script>" in text
        assert r"\x1b[31m\u202e***" in text


def test_a_job_shows_what_it_made(tmp_path: Path) -> None:
    picture = tmp_path / "made <b>.png"
    picture.write_bytes(PICTURE)
    page = LocalFile(picture, "image/png")._repr_html_()
    checked(page)
    assert base64.b64encode(PICTURE).decode() in page
    text = checked(job({"text": "Hello", "chunks": [{"text": "Hel", "timestamp": [61.5, None]}]},
                       metrics={"predict_time": 2.25})._repr_html_())  # fmt: skip
    assert "Hello" in text
    assert "1:01.5" in text
    assert "2.2 s" in text
    assert 'value="0.2500"' in SHOWN["going on"]()._repr_html_()


@pytest.mark.parametrize(
    ("data", "kind"), [(PICTURE, "image/png"), (b"GIF89a", "image/gif"), (b"<svg onload=a>", None)]
)
def test_a_song_has_its_cover(
    data: bytes, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its bytes decide the type, and only a limited size is loaded for a card."""
    limits: list[int] = []

    def read(self: RemoteFile, *, limit_bytes: int) -> bytes:
        limits.append(limit_bytes)
        return data

    monkeypatch.setattr(RemoteFile, "read", read)
    found = song_named(song_name="Boat", song_image="https://files.example/a?signature=abc")
    page = found._repr_html_()
    assert checked(page) == "Boat"
    assert "signature" not in page
    assert (f"data:{kind};base64" in page) == (kind is not None)
    assert limits == [1_000_000]


def test_addresses_are_shown_without_what_opens_them() -> None:
    secret = "https://user:password@files.example/a.png?signature=abc#d"
    text = checked(job(None, logs=f"see {secret} there", error=secret)._repr_html_())
    assert "https://files.example/a.png?... there" in text
    assert "abc" not in text
    assert "password" not in text
    assert "password" not in html_repr.link("https://user:password@files.example/", "files")
    assert KEY not in html_repr.link(f"https://files.example/{KEY}", "files")
    # The link to a file outside the page keeps its signature.
    page = RemoteFile("https://files.example/a.srt?signature=abc")._repr_html_()
    assert 'href="https://files.example/a.srt?signature=abc"' in page
    assert checked(page) == "a.srt"


def test_samples_play() -> None:
    samples = memoryview(array("f", [0.0, 0.5, -0.5, 1.0]))
    page = polymux.PcmAudio(samples, 8000, 2)._repr_html_()
    checked(page)
    (encoded,) = re.findall(r"audio/wav;base64,([^\"]+)", page)
    data = base64.b64decode(encoded)
    assert data.endswith(samples.tobytes())
    decoded = polymux.decode_audio(data, sample_rate=8000, channels=2)
    assert (decoded.channels, len(decoded)) == (2, 2)
    long = memoryview(array("f", bytes(10_000_004)))
    assert "base64" not in polymux.PcmAudio(long, 8000, 1)._repr_html_()


def completion(text: str | None, **message: Any) -> polymux.ChatCompletion:
    choice = {"message": {"content": text} | message, "finish_reason": "length"}
    return polymux.ChatCompletion.decode(json.dumps({"choices": [choice]}).encode())


MARKDOWN = [
    "a <script>alert(1)</script>",
    "![x](https://evil.example/?all-that-was-said)",
    "[x][y]\n\n[y]: javascript:alert(1)",
    "<javascript:alert(1)>",
    "`a\n`<script>alert(1)</script>`",
    "```\n~~~\n<script>\n```\n<script>alert(1)</script>",
    "~~~~ html\n<script>\n~~~\n<script>alert(1)</script>",
    '```"><script>\n<script>\n```\n<script>',
    r"$$\href{javascript:alert(1)}{x}$$ \begin{a} \(x\)",
    "&lt;script&gt; &#60;script>",
]


def without_code(text: str) -> str:
    """The Markdown outside of code fences, which end by CommonMark's rule."""
    kept, fence = [], ""
    for line in text.split("\n"):
        if fence:
            if re.fullmatch(rf" {{0,3}}`{{{len(fence)},}} *", line):
                fence = ""
        elif begins := re.match(r"(`{3,})[\w+#.-]*$", line):
            fence = begins.group(1)
        else:
            kept.append(line)
    assert not fence
    return "\n".join(kept)


@pytest.mark.parametrize("text", MARKDOWN)
def test_markdown_of_models_is_harmless(text: str) -> None:
    outside = without_code(completion(text)._repr_markdown_())
    left = outside.replace("<code>", "").replace("</code>", "")
    assert not set("<`[]$\\") & set(left)
    assert not re.search(r"&(?!#\d+;)", left)


def test_markdown_keeps_what_it_is_for() -> None:
    text = "# Head\n\n- **one** `a<b*c`\n  ```py\n  if a < b:\n      pass\n  ```\nend"
    answer = completion(text, tool_calls=[{"function": {"name": "f", "arguments": "```{}"}}])
    shown = answer._repr_markdown_()
    assert shown.startswith(
        "# Head\n\n- **one** <code>a&#60;b&#42;c</code>\n\n```py\nif a < b:\n    pass\n```\n"
    )
    assert re.search(r"\bf\b.*\n\n````json\n```\{\}\n````", shown)
    assert "length" in shown.splitlines()[-1]
    assert answer.choices[0]._repr_markdown_() == shown
    assert shown.startswith(answer.message._repr_markdown_())
    assert KEY not in completion(f"The key is {KEY}")._repr_markdown_()
    assert len(completion("a" * 500_000)._repr_markdown_()) < 110_000
    assert polymux.TextResponse.decode(b'{"response": "<b>"}')._repr_markdown_() == "&#60;b>"
    stream = polymux.decode_chat_stream(
        [b'data: {"choices":[{"delta":{"content":"<b>"}}]}\n\ndata: [DONE]\n\n']
    )
    assert list(stream.texts()) == ["<b>"]
    assert stream._repr_markdown_() == "&#60;b>"


def test_a_batch_shows_how_it_went(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    inputs = tmp_path / "in"
    inputs.mkdir()
    (inputs / "broken <b>.wav").write_bytes(b"no sound")
    (inputs / "tone.wav").write_bytes(wav(0.2))
    report = polymux.batch("convert_to_mp3", inputs, output_dir=tmp_path / "out")
    shown = checked(report._repr_html_())
    assert "total2done1failed1" in shown
    assert "broken <b>.wav" in shown
    assert "unsupported_media" in shown
    assert str(tmp_path) not in report._repr_html_()
    done, failed = sorted(report.items(), key=lambda one: one.state)
    assert 'href="out/' in done._repr_html_()
    assert "statedone" in checked(done._repr_html_())
    assert "unsupported_media" in checked(failed._repr_html_())
    assert str(tmp_path) not in done._repr_html_() + failed._repr_html_()
    report.manifest.unlink()
    assert "total2" in checked(report._repr_html_())
