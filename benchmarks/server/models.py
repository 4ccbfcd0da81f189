"""Chat and speech with real models: through the server, and with the same libraries directly."""

from __future__ import annotations

import os
import random
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.measure import BUILD, ROOT
from benchmarks.server.conversation import TRANSCRIBE, request, upload
from benchmarks.server.llama import BATCH_TOKENS, CONTEXT_TOKENS, THREADS, parameters
from benchmarks.server.processes import cpu_s
from benchmarks.server.program import serving
from benchmarks.server.sides import OURS, Running, expect, load, started

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

DIRECT = "the library, called directly"
LLAMA = "llama.cpp's own server"
LLAMA_CHAT = "/v1/chat/completions"
#: SmolLM2's end-of-text token. It is disabled to make all answers equally long.
_END = 2
_QUESTIONS = (
    "Write a long story about a lighthouse keeper who finds a letter in a bottle.",
    "Explain in many words how bread is made, from the field to the table.",
    "Describe a walk through an old town on a rainy evening in November.",
)
_SENTENCES = (
    "The weather is fine today, and the children are playing in the garden. "
    "Tomorrow morning we will travel to London by train. "
    "Please bring two bottles of water and a good book. "
)
_BEAMS, _COMPUTE = 2, "int8"
_WORDS = ("stone", "river", "cloud", "table", "green", "seven", "window", "paper", "morning")


@cache
def weights() -> Any:
    """Return the folder in which the tests find their models."""
    sys.path.append(str(ROOT / "tests"))
    from support import chat_model
    from support import weights as packages

    BUILD.mkdir(parents=True, exist_ok=True)
    return {"chat": chat_model.model_path(), "speech": packages.whisper(BUILD)}


def conversations(tokens: int) -> list[dict[str, Any]]:
    """Return requests whose answers have `tokens` tokens each, the same for every contender."""
    return [
        {
            "model": "default",
            "messages": [{"role": "user", "content": question}],
            "temperature": 0.0,
            "seed": 1,
            "max_tokens": tokens,
            "logit_bias": {str(_END): -100},
            "stream": True,
        }
        for question in _QUESTIONS
    ]


def long_prompt(number: int) -> str:
    """Return a prompt that fills three quarters of the context and is not cached."""
    return " ".join(random.Random(number).choices(_WORDS, k=CONTEXT_TOKENS * 3 // 4))


@contextmanager
def llama() -> Iterator[Running]:
    """Run llama.cpp's own server with its model loaded."""
    command = [sys.executable, "-m", "benchmarks.server.llama", str(weights()["chat"])]
    with tempfile.TemporaryDirectory(prefix="polymux-bench-") as name:
        folder = Path(name)
        with started(command, folder) as (process, line):
            yield Running(int(line), process.pid, "none", folder, process)


def chat(side: str, count: int, tokens: int) -> dict[str, Any]:
    """Run streamed conversations one after another.

    Raises:
        SystemExit: Tokens are missing.
    """
    found = {OURS: _chat_ours, LLAMA: _chat_llama, DIRECT: _chat_direct}[side](count, tokens)
    # Some tokens are only part of a character and arrive with the next token.
    if not 0.9 * count * tokens <= found["tokens"] <= count * tokens:
        raise SystemExit(f"{found['tokens']} tokens received, expected {count * tokens}")
    return {**found, "seen": found["tokens"], "count": count * tokens}


def chat_settings() -> str:
    """Return the settings of `polymux serve` for the chat model."""
    return (
        f"[engines.chat]\nmax_concurrency = 1\nthreads = {THREADS}\n[engines.chat.options]\n"
        f'model = "{weights()["chat"]}"\ncontext = {CONTEXT_TOKENS}\nbatch = {BATCH_TOKENS}\n'
    )


def _chat_ours(count: int, tokens: int) -> dict[str, Any]:
    with serving(chat_settings()) as (server, _):
        return _streamed(server, count, tokens, lambda value: request(server.key, value))


def _chat_llama(count: int, tokens: int) -> dict[str, Any]:
    with llama() as server:
        return _streamed(
            server, count, tokens, lambda value: request("none", value, path=LLAMA_CHAT)
        )


def _streamed(
    server: Running, count: int, tokens: int, posted: Callable[[dict[str, Any]], bytes]
) -> dict[str, Any]:
    expect(load(server, "closed", 1, 1, posted(conversations(4)[0])), 200, 1)
    found = load(server, "closed", count, 1, *map(posted, conversations(tokens)))
    expect(found, 200, count)
    return found


def _chat_direct(count: int, tokens: int) -> dict[str, Any]:
    library = parameters(str(weights()["chat"]))
    seen = 0

    def take(given: Any) -> bool:
        nonlocal seen
        for chunk in given if isinstance(given, list) else (given,):
            choices = chunk.get("choices") or []
            seen += any((one.get("delta") or {}).get("content") for one in choices)
        return False

    library.handle_chat_completions(conversations(4)[0], take)
    seen = 0
    began, spent = time.monotonic(), cpu_s(os.getpid())
    bodies = conversations(tokens)
    for number in range(count):
        library.handle_chat_completions(bodies[number % len(bodies)], take)
    return {
        "tokens": seen,
        "wall_s": time.monotonic() - began,
        "cpu_s": cpu_s(os.getpid()) - spent,
    }


def talk(sentences: int) -> Path:
    """Synthesize speech of `sentences` sentences."""
    BUILD.mkdir(parents=True, exist_ok=True)
    path = BUILD / f"talk-{sentences}.wav"
    if not path.exists():
        text = _SENTENCES * sentences
        subprocess.run(["espeak-ng", "-s", "140", "-w", str(path), text], check=True)
    return path


def speech(side: str, count: int, sentences: int) -> dict[str, Any]:
    """Transcribe a recording `count` times; reports the seconds of work per second of audio."""
    import wave

    path = talk(sentences)
    with wave.open(str(path)) as file:
        duration_s = file.getnframes() / file.getframerate()
    found = (_speech_ours if side == OURS else _speech_direct)(count, path)
    return {**found, "count": count, "real_time": found["wall_s"] / count / duration_s}


def _speech_ours(count: int, path: Path) -> dict[str, Any]:
    settings = (
        f"[engines.media]\nthreads = {THREADS}\n[engines.speech]\nthreads = {THREADS}\n"
        f'[engines.speech.options]\nmodel = "{weights()["speech"]}"\ncompute = "{_COMPUTE}"\n'
        f"beam = {_BEAMS}\n"
    )
    with serving(settings) as (server, _):
        asked = upload(server.key, path.read_bytes(), path=TRANSCRIBE, field="audio")
        if count > 1:  # A single run, loading included, only checks that it works.
            expect(load(server, "closed", 1, 1, asked), 200, 1)
        found = load(server, "closed", count, 1, asked)
        expect(found, 200, count)
        return found


def _speech_direct(count: int, path: Path) -> dict[str, Any]:
    import faster_whisper

    model = faster_whisper.WhisperModel(
        str(weights()["speech"]), device="cpu", compute_type=_COMPUTE, cpu_threads=THREADS,
        local_files_only=True,
    )  # fmt: skip
    batched = faster_whisper.BatchedInferencePipeline(model=model)

    def transcribe() -> str:
        segments, _ = batched.transcribe(
            str(path), batch_size=8, beam_size=_BEAMS, without_timestamps=False, vad_filter=True
        )
        return "".join(one.text for one in segments)

    if "garden" not in transcribe():
        raise SystemExit("unexpected transcript")
    began, spent = time.monotonic(), cpu_s(os.getpid())
    for _ in range(count):
        transcribe()
    return {"wall_s": time.monotonic() - began, "cpu_s": cpu_s(os.getpid()) - spent}
