"""An engine with prepared results, for operations whose models are slow or not in packages."""

from __future__ import annotations

import itertools
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux.engines.base import Engine, Output, Produced

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.engines.base import EngineSink, Request, Token

FAMILY = "browser.stub_engine:StubEngine"
OPERATIONS = (
    "chat", "free_chat", "generate_image", "upscale_image", "generate_video", "generate_music",
    "download_video", "summarize_video", "download_music",
)  # fmt: skip
RELEASE = "release"
#: Text that a model might write, with content that the page must make harmless.
ANSWER = """\
## Sound in *two* steps

1. **Open** the file with `ffmpeg`
2. Read [the guide](https://guide.example/mp3)

| codec | good for |
|---|---|
| MP3 | everything |

```python
print("<b>no markup</b>")
```

<img src=x onerror="document.title='owned'"> [bad](javascript:alert(1)) ![pixel](https://elsewhere.example/p.png)
"""
_TYPES = {".png": "image/png", ".jpg": "image/jpeg", ".mp4": "video/mp4", ".wav": "audio/wav",
          ".mp3": "audio/mpeg"}  # fmt: skip
_TURN_S = 0.02


class StubEngine(Engine):
    """Obeys prompts and messages.

    ``held`` waits for a file `RELEASE` beside the samples, and ``endless`` never ends.
    """

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        self.max_concurrency = int(options.get("max_concurrency", 1))
        self._samples = Path(options["samples"])
        return {}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        if request.operation in ("chat", "free_chat"):
            return Output(self._chat(request, sink, token), "v1")
        sink.log(f"for {request.model or 'nobody'} with {', '.join(sorted(request.given))}")
        self._wait(str(request.values.get("prompt") or ""), sink, token)
        return Output(self._made(request, sink), "v1")

    def _wait(self, prompt: str, sink: EngineSink, token: Token) -> None:
        if prompt != "held":
            return
        sink.log("held until it is released")
        sink.preview((self._samples / "small.jpg").read_bytes(), "image/jpeg")
        done = 0.0
        while not (self._samples / RELEASE).exists():
            token.check()
            done += (1 - done) / 1000
            sink.report(done)
            time.sleep(_TURN_S)

    def _made(self, request: Request, sink: EngineSink) -> Any:
        def file(name: str) -> Produced:
            path = sink.draft((self._samples / name).stat().st_size)
            shutil.copyfile(self._samples / name, path)
            return Produced(path, _TYPES[path.suffix or Path(name).suffix], name)

        match request.operation:
            case "generate_image":
                return [file("a.png") for _ in range(int(request.values.get("num_outputs", 1)))]
            case "upscale_image":
                return [file("a.png")]
            case "generate_video":
                return [file("a.mp4")]
            case "generate_music":
                return {"audio": file("a.wav"), "spectrogram": file("small.jpg")}
            case "download_video":
                return {"response": file("a.mp4")}
            case "download_music":
                return {"response": file("a.mp3")}
            case _:
                return {"response": "A video about **sound**, told in short."}

    def _chat(self, request: Request, sink: EngineSink, token: Token) -> Any:
        prompt = str(request.values["messages"][-1]["content"])
        pieces = self._pieces(prompt, request, token)
        plain = request.operation == "free_chat"
        if request.values.get("stream") is True:
            count = 0
            for text in pieces:
                count += 1
                sink.chunk({"response": text} if plain else _chunk({"content": text}))
            if not plain:
                usage = {"prompt_tokens": 7, "completion_tokens": count, "total_tokens": 7 + count}
                sink.chunk(_chunk({}, "stop") | {"usage": usage})
            return None
        text = "".join(pieces)
        if plain:
            return {"response": text}
        message = {"role": "assistant", "content": text}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        return _head("chat.completion") | {"choices": [choice], "usage": {"completion_tokens": 1}}

    def _pieces(self, prompt: str, request: Request, token: Token) -> Iterator[str]:
        roles = [one["role"] for one in request.values["messages"]]
        if prompt == "endless":
            for number in itertools.count():
                token.check()
                time.sleep(_TURN_S)
                yield f"word{number} "
        elif prompt == "roles":
            yield " ".join(roles)
        else:
            for word in ANSWER.split(" "):
                token.check()
                time.sleep(_TURN_S / 2)
                yield f"{word} "


def _head(kind: str) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "stub"}


def _chunk(delta: dict[str, Any], finish: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return _head("chat.completion.chunk") | {"choices": [choice]}
