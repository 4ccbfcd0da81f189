"""Media for the demos, made on this machine by espeak-ng, ffmpeg and Pillow."""

import math
import subprocess
import sys
import wave
from array import array
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests"))

SECONDS = 180
SPEECH = """Any audio or video file becomes an M P 3. This voice was made by a program, and so was
the music behind it and the picture above it. One, two, three, four, five, six, seven, eight, nine,
ten. The quick brown fox jumps over the lazy dog. Every frame that follows is compared, byte by
byte, with what the ffmpeg program makes of the same file."""
# A bass and a melody of plucked notes; the second channel has the melody slightly later.
PITCH = "{base}*pow(2,mod(floor((t-{late})*{speed})*7,12)/12)"
NOTE = f"sin(2*PI*t*{PITCH})*exp(-4*mod(t-{{late}},1/{{speed}}))"
BASS = "0.3*" + NOTE.format(base=110, speed=2, late=0)
MUSIC = "|".join(
    f"{BASS}+0.2*{NOTE.format(base=440, speed=4, late=late)}" for late in ("0", "0.02")
)
DICTATED = """Good morning. The train to the harbour leaves at nine. Please bring your books, a
coat and some water. We will walk along the river and look at the old bridge."""
TALK = """A river begins as a small stream in the mountains. It carries stones, sand and mud down to
the valley. On the way the stones become round. Where the river is slow, the sand falls to the
ground and makes new land. Towns grow there, because the soil is good and boats can come. Floods
bring new soil, but they also break houses, so people build walls along the water."""
SIGN = "HARBOUR OFFICE 1893\nBOATS LEAVE AT NINE"
#: Seed, title, artist and file ending of each song.
SONGS = (
    (1, "Blue Danube", "Johann Strauss", "flac"),
    (2, "Harbour Lights", "The Sailors", "mp3"),
    (3, "Night Train", "Oscar Peters", "ogg"),
    (4, "Stones in the River", "Anna Brook", "m4a"),
)
PLAYED = SONGS[1]
_PLAYED_FROM_S, _PLAYED_S = 3.0, 6.0


@dataclass(frozen=True)
class Media:
    """The files of the demos.

    Attributes:
        speech: A short dictation, WAV.
        picture: A photo of a sign with the text `SIGN`, PNG.
        drawing: A small image, PNG.
        music: A folder with `SONGS`.
        snippet: Some seconds from the middle of `PLAYED` with noise, WAV.
        site: The folder of a web site with ``talk.mp4``, a video of `TALK`.
    """

    speech: Path
    picture: Path
    drawing: Path
    music: Path
    snippet: Path
    site: Path

    @property
    def video(self) -> Path:
        return self.site / "talk.mp4"


def ffmpeg(*arguments: str | Path) -> None:
    command = ["ffmpeg", "-hide_banner", "-loglevel", "error", "-nostdin", "-y"]
    subprocess.run([*command, *map(str, arguments)], check=True)


def speak(path: Path, words: str) -> Path:
    subprocess.run(["espeak-ng", "-s", "150", "-w", path, words], check=True)
    return path


def make_video(path: Path) -> None:
    """Three minutes of MP4: speech over music (AAC), and moving images (H.264)."""
    print(f"making {path.relative_to(ROOT)} (speech by espeak-ng, music and images by ffmpeg)")
    speech = speak(path.with_name("speech.wav"), SPEECH)
    partial = path.with_name("partial.mp4")
    ffmpeg(
        *("-stream_loop", "-1", "-i", speech),
        *("-f", "lavfi", "-i", f"aevalsrc='{MUSIC}':s=44100"),
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=12"),
        *("-filter_complex", "[0:a]aresample=44100[v];[1:a][v]amix=inputs=2:normalize=0[a]"),
        *("-map", "2:v", "-map", "[a]", "-t", str(SECONDS)),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"),
        *("-c:a", "aac", "-b:a", "160k", "-metadata", "title=polymux demo", partial),
    )
    partial.replace(path)


def make_music(path: Path) -> None:
    """Three minutes of plucked notes as WAV, made by Python alone."""
    print(f"making {path.relative_to(ROOT)}")
    rate_hz, length = 44_100, 11_025
    notes = []
    for pitch in range(12):
        step = 2 * math.pi * 220 * 2 ** (pitch / 12) / rate_hz
        values = (12_000 * math.sin(step * n) * math.exp(-n / 3_000) for n in range(length))
        notes.append(array("h", map(int, values)).tobytes())
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate_hz)
        for number in range(SECONDS * rate_hz // length):
            file.writeframes(notes[number * 7 % 12])


def make_all(folder: Path) -> Media:
    """Make all files of the tour again."""
    media = Media(
        speech=folder / "dictation.wav",
        picture=folder / "sign.png",
        drawing=folder / "drawing.png",
        music=folder / "music",
        snippet=folder / "snippet.wav",
        site=folder / "site",
    )
    for made in (media.music, media.site):
        made.mkdir(parents=True, exist_ok=True)
    speak(media.speech, DICTATED)
    _make_talk(media.video)
    _make_pictures(media)
    _make_music(media)
    return media


def _make_talk(path: Path) -> None:
    speech = speak(path.with_name("talk.wav"), TALK)
    ffmpeg(
        *("-f", "lavfi", "-i", "testsrc2=size=320x180:rate=12", "-i", speech, "-shortest"),
        *("-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p"),
        *("-c:a", "aac", "-b:a", "96k", "-ar", "44100", path),
    )


def _make_pictures(media: Media) -> None:
    from PIL import Image, ImageDraw, ImageFont

    sign = Image.new("RGB", (760, 240), (238, 232, 216))
    drawn = ImageDraw.Draw(sign)
    drawn.rectangle((16, 16, 743, 223), outline=(40, 60, 90), width=5)
    drawn.multiline_text((60, 50), SIGN, (40, 60, 90), ImageFont.load_default(52), spacing=24)
    sign.rotate(2, resample=Image.Resampling.BICUBIC, fillcolor=(200, 196, 186)).save(media.picture)

    boat = Image.new("RGB", (160, 120), (170, 205, 235))
    drawn = ImageDraw.Draw(boat)
    drawn.rectangle((0, 84, 159, 119), fill=(40, 90, 140))
    drawn.polygon(((30, 80), (130, 80), (112, 98), (48, 98)), fill=(120, 60, 40), outline="black")
    drawn.polygon(((80, 14), (80, 76), (122, 76)), fill="white", outline="black")
    boat.save(media.drawing)


def _make_music(media: Media) -> None:
    import numpy
    from support.generated_songs import RATE, song, sound, write

    for seed, title, artist, kind in SONGS:
        path = media.music / f"{seed}.{kind}"
        if not path.exists():
            song(path, seed, 15.0, title=title, artist=artist)
    seed = PLAYED[0]
    begin = int(_PLAYED_FROM_S * RATE)
    piece = sound(seed, 15.0)[begin : begin + int(_PLAYED_S * RATE)]
    loudness = numpy.sqrt(numpy.mean(piece**2))
    noise = numpy.random.default_rng(seed).normal(0, loudness / 2, len(piece))
    write(media.snippet, numpy.clip((piece + noise) / 2, -1, 1))


def difference(ours: list[bytes], theirs: list[bytes]) -> str:
    """Describe the first difference between the audio frames of two MP3 files, if there is one."""
    if ours == theirs:
        return ""
    pairs = zip(ours, theirs, strict=False)
    first = next((i for i, (a, b) in enumerate(pairs) if a != b), min(len(ours), len(theirs)))
    return f"got {len(ours)} frames, ffmpeg {len(theirs)}; the first difference is in frame {first}"
