"""An engine that answers every operation at once, or floods, drips and lies where it is told to."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output, Produced
from polymux.engines.chat.completions import Assembled

if TYPE_CHECKING:
    from collections.abc import Mapping

    from polymux.engines.base import EngineSink, Request, Token

FAMILY = "support.quick_engines:QuickEngine"
OPERATIONS = (
    "chat", "free_chat", "search_music", "generate_image", "generate_video", "generate_music",
    "identify_song", "download_video", "summarize_video", "download_music",
)  # fmt: skip
SONG = {
    "song_name": "Blue Danube - Strauss",
    "songid_url": "https://songs.example/1",
    "song_image": "https://songs.example/1.png",
}
PIECE = 1000


class QuickEngine(Engine):
    """Chats do what their last message says, such as ``flood``; all others answer at once."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.max_concurrency = int(options.get("max_concurrency", 1))
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        made = getattr(self, f"_{request.operation}")(request, sink, token)
        return made if isinstance(made, Output) else Output(made, "v1")

    def _said(self, request: Request) -> str:
        said = request.values["messages"][-1].get("content")
        return said if isinstance(said, str) else "nothing but parts"

    def _chat(self, request: Request, sink: EngineSink, token: Token) -> Any:
        pieces = self._pieces(self._said(request), token)
        if request.values.get("stream") is True:
            for text in pieces:
                sink.chunk(self._chunk(request, text))
            return None
        answer = Assembled(str(request.values["model"]))
        answer.add(self._chunk(request, "".join(pieces)))
        return answer.completion()

    def _chunk(self, request: Request, text: str) -> dict[str, Any]:
        choice = {"index": 0, "delta": {"content": text}, "finish_reason": None}
        return {
            "id": "chatcmpl-1",
            "object": "chat.completion.chunk",
            "created": 1,
            "model": str(request.values["model"]),
            "choices": [choice],
        }

    def _free_chat(self, request: Request, sink: EngineSink, token: Token) -> Any:
        pieces = self._pieces(self._said(request), token)
        if request.values.get("stream") is True:
            for text in pieces:
                sink.chunk({"response": text})
            return None
        return {"response": "".join(pieces)}

    def _pieces(self, said: str, token: Token) -> Any:
        word, _, rest = said.partition(" ")
        if word == "flood":
            while True:
                token.check()
                yield "x" * int(rest or PIECE)
        elif word == "count":
            for number in range(int(rest)):
                token.check()
                yield f"{number} ".ljust(PIECE, "x")
        elif word == "letters":
            for _ in range(int(rest)):
                token.check()
                yield "x"
        elif word == "pauses":
            yield "first"
            yield from self._pieces(f"sleep {rest}", token)
        elif word == "sleep":
            until = time.monotonic() + float(rest)
            while time.monotonic() < until:
                token.check()
                time.sleep(0.01)
            yield "awake"
        else:
            yield said

    def _search_music(self, request: Request, sink: EngineSink, token: Token) -> Any:
        return [SONG] * int(request.values.get("limit", 5))

    def _identify_song(self, request: Request, sink: EngineSink, token: Token) -> Any:
        return SONG

    def _summarize_video(self, request: Request, sink: EngineSink, token: Token) -> Any:
        return {"response": "a video"}

    def _file(self, sink: EngineSink, content_type: str, name: str) -> Produced:
        path = sink.draft(4)
        path.write_bytes(b"made")
        return Produced(path, content_type, name)

    def _generate_image(self, request: Request, sink: EngineSink, token: Token) -> Any:
        count = int(request.values.get("num_outputs", 1))
        return [self._file(sink, "image/png", f"{n}.png") for n in range(count)]

    def _generate_video(self, request: Request, sink: EngineSink, token: Token) -> Any:
        count = int(request.values.get("batch_size", 1))
        return [self._file(sink, "video/mp4", f"{n}.mp4") for n in range(count)]

    def _generate_music(self, request: Request, sink: EngineSink, token: Token) -> Any:
        return {
            "audio": self._file(sink, "audio/wav", "a.wav"),
            "spectrogram": self._file(sink, "image/jpeg", "a.jpg"),
        }

    def _download_video(self, request: Request, sink: EngineSink, token: Token) -> Any:
        return {"response": self._file(sink, "video/mp4", "a.mp4")}

    def _download_music(self, request: Request, sink: EngineSink, token: Token) -> Any:
        return {"response": self._file(sink, "audio/mpeg", "a.mp3")}

    def _upscale_image(self, request: Request, sink: EngineSink, token: Token) -> Any:
        [picture] = request.values["pictures"]
        path = sink.draft(4)
        path.write_bytes(b"made")
        sizes = {name: float(picture[name]) for name in ("width", "height", "channels", "bits")}
        return Output(Produced(path, "image/png", "large.png"), "v1", sizes)

    def _read_text(self, request: Request, sink: EngineSink, token: Token) -> Any:
        words = []
        for number, one in enumerate(request.values["pictures"]):
            pixels = Path(request.values[f"pixels_{number}"].path)
            assert pixels.stat().st_size == one["width"] * one["height"] * one["channels"]
            with pixels.open("rb") as file:
                words.append(f"{one['width']}x{one['height']} {file.read(3).hex()}")
        return {"text": "\n".join(words)}

    def _transcribe(self, request: Request, sink: EngineSink, token: Token) -> Any:
        size = Path(request.values["samples"].path).stat().st_size
        text = f"{size // 4} samples"
        return {"text": text, "chunks": [{"text": text, "timestamp": [0.0, 1.0]}]}
