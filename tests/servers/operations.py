"""The operations as the reference server has them, written down apart from the contract."""

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
    """A request that was read: what an operation answers to."""

    model: str
    body: Body
    number: int
    add_file: Callable[[str, bytes, str], str]

    def link(self, kind: str, index: int = 0) -> str:
        """The link to a new file of that kind."""
        content, content_type = _FILES[kind]
        return self.add_file(f"{self.number:06}-{index}.{kind}", content, content_type)

    def count(self, name: str, default: int) -> int:
        return int(self.body.get(name, default))


@dataclass(frozen=True)
class Operation:
    """One operation: its encodings for each model, what it needs, and how it answers."""

    models: Mapping[str, tuple[str, ...]]
    #: One of each row must be there.
    needs: tuple[tuple[str, ...], ...]
    make: Make
    is_job: bool = False

    def encodings(self, model: str | None) -> tuple[str, ...]:
        """What the model takes; without one, what any of them takes.

        Raises:
            RefusedError: There is no such model.
        """
        if model is None or "" in self.models:
            return tuple(dict.fromkeys(one for all_ in self.models.values() for one in all_))
        if model not in self.models:
            raise RefusedError(
                400, f"there is no model {model!r}", code="model_not_found", param="model"
            )
        return self.models[model]

    def model(self, given: str | None, encoding: str) -> str:
        """The model that answers: the one named, or the only one that takes this encoding."""
        if "" in self.models:
            return ""
        if given is not None:
            return given
        fitting = [name for name, encodings in self.models.items() if encoding in encodings]
        if len(fitting) != 1:
            raise RefusedError(400, "the query names no model", param="model")
        return fitting[0]

    def check(self, body: Body) -> None:
        """Looks for what must be there.

        Raises:
            RefusedError: Something is missing.
        """
        for names in self.needs:
            if not any(body.get(name) or body.file(name) for name in names):
                raise RefusedError(400, f"{' or '.join(names)} is missing", param=names[0])


_FILES = {
    "png": (media.png(256, 192), "image/png"),
    "jpg": (media.jpeg(), "image/jpeg"),
    "wav": (media.wav(), "audio/wav"),
    "mp3": (media.mp3(), "audio/mpeg"),
    "mp4": (media.mp4(), "video/mp4"),
}


def _images(got: Received) -> list[str]:
    return [got.link("png", index) for index in range(got.count("num_outputs", 1))]


def _upscaled(got: Received) -> Any:
    link = got.link("png")
    return link if got.model == "nightmareai/real-esrgan" else [link]


def _transcript(got: Received) -> dict[str, Any]:
    chunks = [
        {"text": " This is", "timestamp": [0.0, 1.5]},
        {"text": " a test.", "timestamp": [1.5, None]},
    ]
    return {"text": "This is a test.", "chunks": chunks}


def _music(got: Received) -> dict[str, Any]:
    return {"audio": got.link("wav"), "spectrogram": got.link("jpg", 1)}


def _videos(got: Received) -> list[str]:
    return [got.link("mp4", index) for index in range(got.count("batch_size", 1))]


def _song(title: str) -> dict[str, str]:
    return {
        "song_name": title,
        "songid_url": "https://songs.example/1",
        "song_image": "https://songs.example/1.jpg",
    }


def _songs(got: Received) -> list[dict[str, Any]]:
    """As many as asked for; the first says what was received. None for the song "nothing"."""
    if got.body.get("song") == "nothing":
        return []
    songs: list[dict[str, Any]] = [
        _song(f"{got.body.get('song')} {number} - Reference")
        for number in range(1, got.count("limit", 5) + 1)
    ]
    songs[0]["received"] = got.body.values
    return songs


def _with_input(make: Callable[[Received], dict[str, Any]]) -> Make:
    return lambda got: make(got) | {"received": got.body.values}


def _file(kind: str) -> Make:
    return _with_input(lambda got: {"response": got.link(kind)})


_PROMPT = (("prompt",),)
_NO_MODEL_JSON, _NO_MODEL_FORM = {"": JSON}, {"": FORM}

#: Last segments of the paths after /api/v1/; the two chats are in `chats`.
OPERATIONS = {
    "modelhost/imagegeneration": Operation(
        {
            "bytedance/sdxl-lightning-4step": ("json", "multipart"),
            "lorenzomarines/astra": FORM,
            "playgroundai/playground-v2.5-1024px-aesthetic": FORM,
        },
        _PROMPT, _images, is_job=True,
    ),
    "modelhost/imageupscale": Operation(
        {"philz1337x/clarity-upscaler": FORM, "nightmareai/real-esrgan": FORM},
        (("image",),), _upscaled, is_job=True,
    ),
    "modelhost/stt": Operation(
        {"turian/insanely-fast-whisper-with-video": FORM},
        (("audio", "url"),), _transcript, is_job=True,
    ),
    "modelhost/videogeneration": Operation(
        {"anotherjesse/zeroscope-v2-xl": FORM}, _PROMPT, _videos, is_job=True
    ),
    "modelhost/musicgeneration": Operation(
        {"riffusion/riffusion": ("multipart", "json")}, (("prompt_a",),), _music, is_job=True
    ),
    "musicsearch": Operation(_NO_MODEL_JSON, (("song",),), _songs),
    "songid": Operation(
        _NO_MODEL_FORM, (("file",),), _with_input(lambda got: _song("Blue Danube - Strauss"))
    ),
    "downloadvideo": Operation(_NO_MODEL_JSON, (("url",),), _file("mp4")),
    "downloadmusic": Operation(_NO_MODEL_JSON, (("query", "song"),), _file("mp3")),
    "convert2mp3": Operation(_NO_MODEL_FORM, (("file", "url"),), _file("mp3")),
    "videosummarization": Operation(
        _NO_MODEL_JSON, (("url",),), _with_input(lambda got: {"response": "It is about boats."})
    ),
    "image2text": Operation(
        _NO_MODEL_FORM, (("file",),), _with_input(lambda got: {"text": "Dear Ada,\nhello."})
    ),
}  # fmt: skip
