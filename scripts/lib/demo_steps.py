"""The steps of the tour, one per operation, with checks of their results."""

import re
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import polymux
from demo_media import DICTATED, PLAYED, SIGN, Media, difference, ffmpeg
from demo_served import DemoError, DemoServer
from polymux.errors import NoBackendError, UnprocessableEntityError
from support.mp3_frames import audio_frames

_BITRATE = "128k"
#: The share of words that must be recognized; synthetic speech is not always understood.
_MIN_HEARD_SHARE = 0.6
_MAX_COLLECTED_CHARACTERS = 200
_PIECES = 30


@dataclass
class Tour:
    """State shared by the steps.

    Attributes:
        client: A client of the server.
        server: The server, for its key, song index and site.
        media: The input files.
        results: The folder for results.
    """

    client: polymux.Client
    server: DemoServer
    media: Media
    results: Path


#: Runs a step; returns lines about its result.
Doing = Callable[[Tour], list[str]]


def chat_streamed(tour: Tour) -> list[str]:
    began = time.monotonic()
    pieces, first_s = 0, 0.0
    asked = "Name three boats."
    with tour.client.chat(asked, stream=True, temperature=0, max_completion_tokens=60) as stream:
        for _ in stream.texts():
            pieces += 1
            first_s = first_s or time.monotonic() - began
    _expect(pieces > 1 and stream.text.strip(), "the answer was not streamed")
    return [f"{asked} {_short(stream.text)}", f"{pieces} pieces, the first after {first_s:.2f} s"]


def free_chat(tour: Tour) -> list[str]:
    """Close the stream early, which also stops the server's work for it."""
    asked = "What colour is the sky?"
    pieces: list[str] = []
    with tour.client.free_chat(asked, stream=True) as stream:
        for text in stream.texts():
            pieces.append(text)
            if len(pieces) == _PIECES:
                break
    _expect("".join(pieces).strip(), "the answer is empty")
    return [f"{asked} {_short(''.join(pieces))}", f"disconnected after {len(pieces)} pieces"]


def read_text(tour: Tour) -> list[str]:
    text = tour.client.read_text(tour.media.picture).text
    _expect(_words(text) == _words(SIGN), f"wrong text (got {text!r}, expected {SIGN!r})")
    return [f"{tour.media.picture.name} (rotated by two degrees): {_short(text)}"]


def transcribe(tour: Tour) -> list[str]:
    heard = tour.client.transcribe(tour.media.speech, language="en")
    wanted = _words(DICTATED)
    known = sum(word in _words(heard.text) for word in wanted)
    _expect(known >= _MIN_HEARD_SHARE * len(wanted), f"too few correct words in {heard.text!r}")
    last_s = heard.chunks[-1].timestamp[1]
    return [
        f"{_short(heard.text)}",
        f"{known} of {len(wanted)} words, in {len(heard.chunks)} parts up to {last_s} s",
    ]


def convert(tour: Tour) -> list[str]:
    ours, theirs = (tour.results / name for name in ("talk.mp3", "ffmpeg.mp3"))
    tour.client.convert_to_mp3(tour.media.video, bitrate=_BITRATE).save(ours)
    ffmpeg("-i", tour.media.video, "-vn", "-c:a", "libmp3lame", "-b:a", _BITRATE, theirs)
    frames = audio_frames(ours)
    found = difference(frames, audio_frames(theirs))
    _expect(not found, f"the frames differ from ffmpeg's: {found}")
    return [
        f"{tour.media.video.name}: {ours.stat().st_size:,} bytes at {_BITRATE}bit/s",
        f"all {len(frames):,} frames are identical to the ffmpeg program's",
    ]


def upscale(tour: Tour) -> list[str]:
    from PIL import Image

    done = tour.client.upscale_image(tour.media.drawing, model="nightmareai/real-esrgan", scale=2)
    large = done.images[0].save(tour.results / "drawing.png")
    sizes = [Image.open(path).size for path in (tour.media.drawing, large)]
    wanted = tuple(2 * side for side in sizes[0])
    _expect(sizes[1] == wanted, f"wrong image size (got {sizes[1]}, expected {wanted})")
    return ["from {} x {} to {} x {} pixels".format(*sizes[0], *sizes[1])]


def build_song_index(tour: Tour) -> list[str]:
    with polymux.SongIndex(tour.server.song_index) as index:
        index.add(tour.media.music)
        titles = sorted(song.title for song in index.songs())
    _expect(PLAYED[1] in titles, f"the song index lacks {PLAYED[1]!r} (it has {titles})")
    return [f"{len(titles)} songs: {', '.join(titles)}"]


def identify(tour: Tour) -> list[str]:
    found = tour.client.identify_song(tour.media.snippet)
    wanted = f"{PLAYED[1]} - {PLAYED[2]}"
    _expect(found.name == wanted, f"wrong song (got {found.name!r}, expected {wanted!r})")
    measured = found.headers.get("polymux-metrics", "")
    return [f"{tour.media.snippet.name} (with noise): {found.name}", measured.replace(", ", "  ")]


def search(tour: Tour) -> list[str]:
    wanted = "harbor lihgts"
    found = tour.client.search_music(wanted, limit=2)
    names = [one.name for one in found]
    _expect(
        names and names[0].startswith(PLAYED[1]), f"wrong songs {names}, not {PLAYED[1]!r} first"
    )
    return [f"{wanted!r} (misspelled): {found[0].name}"]


def download_video(tour: Tour) -> list[str]:
    page = tour.server.site.url(f"/silent/{tour.media.video.name}")
    path = tour.client.download_video(page).save(tour.results / "page.mp4")
    kinds = [stream.type for stream in polymux.probe(path).streams]
    _expect(
        sorted(kinds) == ["audio", "video"],
        f"wrong streams (got {kinds}, expected audio and video)",
    )
    return [f"from a local page: {path.stat().st_size:,} bytes, {' and '.join(kinds)}"]


def summarize(tour: Tour) -> list[str]:
    page = tour.server.site.url(f"/silent/{tour.media.video.name}")
    summary = tour.client.summarize_video(page).text
    _expect(summary.strip(), "the summary is empty")
    return [f"a summary of the transcribed page: {_short(summary)}"]


def download_music(tour: Tour) -> list[str]:
    path = tour.results / "found.mp3"
    tour.client.download_music("a talk about rivers").save(path)
    info = polymux.probe(path)
    _expect(
        info.streams[0].codec == "mp3", f"wrong codec (got {info.streams[0].codec}, expected mp3)"
    )
    return [f"the search result as MP3: {path.stat().st_size:,} bytes"]


def generate_image(tour: Tour) -> list[str]:
    asked = "three red stars on a yellow background"
    return _generated(lambda: tour.client.generate_image(asked, width=512, height=512), tour, "png")


def generate_video(tour: Tour) -> list[str]:
    return _generated(
        lambda: tour.client.generate_video("a red star moving to the right", num_frames=8),
        tour,
        "mp4",
    )


def generate_music(tour: Tour) -> list[str]:
    return _generated(lambda: tour.client.generate_music("sad violin"), tour, "wav")


def _generated(ask: Callable[[], polymux.Prediction], tour: Tour, kind: str) -> list[str]:
    """Generate a file. Without a model, show the error, which names the command to run."""
    try:
        done = ask()
    except NoBackendError as error:
        return [f"rejected, as expected without a model: {error.message}"]
    except UnprocessableEntityError as error:
        # Without a GPU, generation could take hours. The server rejects such requests.
        _expect(error.code == "estimate_over_limit", error.message)
        return [f"rejected, because it would take too long on this machine: {error.message}"]
    file = done.audio if kind == "wav" else next(iter(done.images), None)
    if file is None:
        raise DemoError("the job has no output file")
    path = file.save(tour.results / f"generated.{kind}")
    lines = [f"{path.name}: {path.stat().st_size:,} bytes, by the model {done.engine_model}"]
    return [*lines, *(done.warnings or ())]


#: Title, description, and function of each step.
STEPS: tuple[tuple[str, str, Doing], ...] = (
    ("chat", "a streamed answer", chat_streamed),
    ("free_chat", "an answer from the first available chat model", free_chat),
    ("read_text", "the text in an image", read_text),
    ("transcribe", "the text of a recording", transcribe),
    ("convert_to_mp3", "a video's sound as MP3, compared with the ffmpeg program's", convert),
    ("upscale_image", "a drawing at twice its size", upscale),
    ("SongIndex.add", "a song index over a music library", build_song_index),
    ("identify_song", "the song in a short recording", identify),
    ("search_music", "a song by its name", search),
    ("download_video", "the video on a web page", download_video),
    ("summarize_video", "a summary of the video on a web page", summarize),
    ("download_music", "music found by a query", download_music),
    ("generate_image", "an image from a description", generate_image),
    ("generate_video", "a video from a description", generate_video),
    ("generate_music", "music from a description", generate_music),
)


def _expect(fulfilled: object, otherwise: str) -> None:
    if not fulfilled:
        raise DemoError(otherwise)


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


def _short(text: str) -> str:
    line = " ".join(text.split())
    return (
        line
        if len(line) <= _MAX_COLLECTED_CHARACTERS
        else f"{line[:_MAX_COLLECTED_CHARACTERS]} ..."
    )
