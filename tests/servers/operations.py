"""The operations of the reference server, written independently of the contract."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from servers import media
from servers.replies import RefusedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from servers.forms import Body

    Make = Callable[["Received"], Any]

JSON, FORM = ("json",), ("multipart",)


@dataclass
class Received:
    """A parsed request to an operation."""

    model: str
    body: Body
    number: int
    add_file: Callable[[str, bytes, str], str]

    def link(self, kind: str, index: int = 0) -> str:
        content, content_type = _FILES[kind]
        return self.add_file(f"{self.number:06}-{index}.{kind}", content, content_type)

    def count(self, name: str, default: int) -> int:
        return int(self.body.get(name, default))


@dataclass(frozen=True)
class Operation:
    """One operation: its encodings for each model, and its answer."""

    models: Mapping[str, tuple[str, ...]]
    make: Make
    is_job: bool = False

    def model(self, given: str | None, encoding: str) -> str:
        """The model that answers: the named one, or the only one that accepts this encoding."""
        if "" in self.models:
            return ""
        fitting = [name for name, encodings in self.models.items() if encoding in encodings]
        if given is None and len(fitting) == 1:
            return fitting[0]
        if given not in fitting:
            raise RefusedError(
                400, f"there is no model {given!r}", code="model_not_found", param="model"
            )
        return given


_FILES = {
    "png": (media.png(256, 192), "image/png"),
    "jpg": (media.jpeg(), "image/jpeg"),
    "wav": (media.wav(), "audio/wav"),
    "mp3": (media.mp3(), "audio/mpeg"),
    "mp4": (media.mp4(), "video/mp4"),
}


def _transcript(got: Received) -> dict[str, Any]:
    chunks = [
        {"text": " This is", "timestamp": [0.0, 1.5]},
        {"text": " a test.", "timestamp": [1.5, None]},
    ]
    return {"text": "This is a test.", "chunks": chunks}


def _upscaled(got: Received) -> Any:
    link = got.link("png")
    return link if got.model == "nightmareai/real-esrgan" else [link]


def _music(got: Received) -> dict[str, Any]:
    return {"audio": got.link("wav"), "spectrogram": got.link("jpg", 1)}


def _several(kind: str, count: str) -> Make:
    return lambda got: [got.link(kind, index) for index in range(got.count(count, 1))]


def _song(title: str) -> dict[str, str]:
    return {
        "song_name": title,
        "songid_url": "https://songs.example/1",
        "song_image": "https://songs.example/1.jpg",
    }


def _songs(got: Received) -> list[dict[str, Any]]:
    """The requested number of songs. The first repeats the request; "nothing" gives no song."""
    if got.body.get("song") == "nothing":
        return []
    songs: list[dict[str, Any]] = [
        _song(f"{got.body.get('song')} {number} - Reference")
        for number in range(1, got.count("limit", 5) + 1)
    ]
    songs[0]["received"] = got.body.values
    return songs


def _fixed(value: dict[str, Any]) -> Make:
    return lambda got: value | {"received": got.body.values}


def _file(kind: str) -> Make:
    return lambda got: {"response": got.link(kind), "received": got.body.values}


_NO_MODEL_JSON, _NO_MODEL_FORM = {"": JSON}, {"": FORM}

#: Path segments after /api/v1/; `chats` has the two chat operations.
OPERATIONS = {
    "modelhost/imagegeneration": Operation(
        {
            "bytedance/sdxl-lightning-4step": ("json", "multipart"),
            "lorenzomarines/astra": FORM,
            "playgroundai/playground-v2.5-1024px-aesthetic": FORM,
        },
        _several("png", "num_outputs"), is_job=True,
    ),
    "modelhost/imageupscale": Operation(
        {"philz1337x/clarity-upscaler": FORM, "nightmareai/real-esrgan": FORM},
        _upscaled, is_job=True,
    ),
    "modelhost/stt": Operation(
        {"turian/insanely-fast-whisper-with-video": FORM}, _transcript, is_job=True
    ),
    "modelhost/videogeneration": Operation(
        {"anotherjesse/zeroscope-v2-xl": FORM}, _several("mp4", "batch_size"), is_job=True
    ),
    "modelhost/musicgeneration": Operation(
        {"riffusion/riffusion": ("multipart", "json")}, _music, is_job=True
    ),
    "musicsearch": Operation(_NO_MODEL_JSON, _songs),
    "songid": Operation(_NO_MODEL_FORM, _fixed(_song("Blue Danube - Strauss"))),
    "downloadvideo": Operation(_NO_MODEL_JSON, _file("mp4")),
    "downloadmusic": Operation(_NO_MODEL_JSON, _file("mp3")),
    "convert2mp3": Operation(_NO_MODEL_FORM, _file("mp3")),
    "videosummarization": Operation(_NO_MODEL_JSON, _fixed({"response": "It is about boats."})),
    "image2text": Operation(_NO_MODEL_FORM, _fixed({"text": "Dear Ada,\nhello."})),
}  # fmt: skip
