"""An engine that answers every operation immediately, or floods, stalls or sends wrong data."""

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
_TYPES = {
    "png": "image/png", "jpg": "image/jpeg", "mp4": "video/mp4", "mp3": "audio/mpeg",
    "wav": "audio/wav",
}  # fmt: skip


class QuickEngine(Engine):
    """A chat obeys its last message, such as ``flood``; other operations answer immediately."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.max_concurrency = int(options.get("max_concurrency", 1))
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        values = request.values
        match request.operation:
            case "search_music":
                made: Any = [SONG] * int(values.get("limit", 5))
            case "identify_song":
                made = SONG
            case "summarize_video":
                made = {"response": "a video"}
            case "generate_image":
                made = self._files(sink, "0.png", count=int(values.get("num_outputs", 1)))
            case "generate_video":
                made = self._files(sink, "0.mp4", count=int(values.get("batch_size", 1)))
            case "generate_music":
                audio, spectrogram = self._files(sink, "a.wav", "a.jpg")
                made = {"audio": audio, "spectrogram": spectrogram}
            case "download_video" | "download_music" as name:
                [file] = self._files(sink, "a.mp4" if name == "download_video" else "a.mp3")
                made = {"response": file}
            case name:
                made = getattr(self, f"_{name}")(request, sink, token)
        return made if isinstance(made, Output) else Output(made, "v1")

    def _prompt(self, request: Request) -> str:
        content = request.values["messages"][-1].get("content")
        return content if isinstance(content, str) else "nothing but parts"

    def _chat(self, request: Request, sink: EngineSink, token: Token) -> Any:
        pieces = self._pieces(self._prompt(request), token)
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
        pieces = self._pieces(self._prompt(request), token)
        if request.values.get("stream") is True:
            for text in pieces:
                sink.chunk({"response": text})
            return None
        return {"response": "".join(pieces)}

    def _pieces(self, prompt: str, token: Token) -> Any:
        word, _, rest = prompt.partition(" ")
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
            yield prompt

    def _files(self, sink: EngineSink, *names: str, count: int = 1) -> list[Produced]:
        """One file for each name (its ending gives the type), or several files of one name."""
        made = []
        for name in names * count:
            path = sink.draft(4)
            path.write_bytes(b"made")
            made.append(Produced(path, _TYPES[name.partition(".")[2]], name))
        return made

    def _upscale_image(self, request: Request, sink: EngineSink, token: Token) -> Any:
        [picture] = request.values["pictures"]
        [file] = self._files(sink, "large.png")
        sizes = {name: float(picture[name]) for name in ("width", "height", "channels", "bits")}
        return Output(file, "v1", sizes)

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
