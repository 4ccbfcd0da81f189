"""Speech to text by faster-whisper, on samples that the core has decoded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output, hash_of, missing_package, threads
from polymux.engines.speech.silence import SilenceTrimmer
from polymux.media.languages import code_of
from polymux.service.errors import status_error

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from polymux.engines.base import EngineSink, Request, Token
    from polymux.service.model import Upload

_SAMPLE_RATE_HZ = 16_000
_CPU_BATCH = 8
_NEEDED = ("config.json", "model.bin", "tokenizer.json")
_DIGITS = 3
#: What Whisper hears at once.
_WINDOW_S = 30.0


class SpeechEngine(Engine):
    """One Whisper model; one recording at a time, as its batches are not safe on two threads."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Loads ``model``, a folder in CTranslate2's form.

        Also ``device`` (``"auto"``, ``"cpu"``, ``"cuda"``), ``compute`` (``"int8"`` and so on),
        ``batch`` (most stretches at once) and ``beam``.

        Raises:
            NoBackendError: The package or the model is missing.
        """
        try:
            import faster_whisper
        except ImportError:
            raise missing_package("speech", "faster-whisper", "speech") from None
        folder = Path(str(options.get("model", ""))).expanduser()
        missing = [name for name in _NEEDED if not (folder / name).is_file()]
        if missing:
            raise status_error(
                errors.NoBackendError,
                f"the speech model {folder.name!r} lacks {', '.join(missing)}: give a folder in "
                "CTranslate2's form as `model` in the engine's options",
            )
        self._device = str(options.get("device", "auto"))
        model = faster_whisper.WhisperModel(
            os.fspath(folder),
            device=self._device,
            compute_type=str(options.get("compute", "default")),
            cpu_threads=threads(),
            num_workers=1,
            local_files_only=True,
        )
        self._model = model
        self._batched = faster_whisper.BatchedInferencePipeline(model=model)
        self._beam = int(options.get("beam", 5))
        self._max_concurrency = int(options.get("batch", _CPU_BATCH))
        self._version = hash_of(folder / "model.bin")
        return {"model": folder.name, "version": self._version}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        samples = _samples(request.values["samples"], sink)
        duration_s = len(samples) / _SAMPLE_RATE_HZ
        heard = _without_pauses(samples)
        words = request.values.get("timestamp") == "word"
        wanted = int(request.values.get("batch_size") or 1)
        at_once = min(wanted, self._max_concurrency)
        if at_once < wanted:
            sink.log(f"batch_size {wanted}: {at_once} at once is what this machine does")
        # Left over from one that was cancelled, it would move this one's words.
        self._batched.last_speech_timestamp = 0.0
        segments, info = self._batched.transcribe(
            heard.samples,
            batch_size=at_once,
            beam_size=self._beam,
            language=_language_of(request.values.get("language")),
            task=request.values.get("task", "transcribe"),
            word_timestamps=words,
            without_timestamps=False,
            clip_timestamps=[{"start": a, "end": b} for a, b in heard.windows(_WINDOW_S)],
        )
        sink.log(f"language {info.language} ({info.language_probability:.0%})")
        chunks: list[dict[str, Any]] = []
        for segment in _checked(segments, token):
            chunks += _chunks(segment, heard, words=words)
            sink.report(min(1.0, chunks[-1]["timestamp"][1] / max(duration_s, 1e-9)))
        if not chunks:
            raise _nobody_speaks()
        text = "".join(one["text"] for one in chunks).strip()
        value = {"text": text, "chunks": chunks, "language": info.language}
        return Output(value, self._version, {"audio_seconds": duration_s})


def _samples(file: Upload, sink: EngineSink) -> Any:
    """What the media engine has decoded: 32-bit floats, mono.

    Raises:
        UnprocessableEntityError: There are none.
    """
    import numpy

    if not file.size_bytes:
        # One or two samples at a higher rate than Whisper's are none at its own.
        raise status_error(
            errors.UnprocessableEntityError, "this recording holds no sound", code="no_audio"
        )
    samples: Any = numpy.memmap(file.path, numpy.float32, "r")
    wrong = numpy.count_nonzero(~numpy.isfinite(samples))
    if wrong:
        # One is enough to make everything that the model computes of them none, too.
        sink.log(f"{wrong} samples are no numbers, and are taken as silence")
        samples = numpy.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    return samples


def _checked(segments: Any, token: Token) -> Iterator[Any]:
    """The segments as they come; between two it can be stopped."""
    token.check()
    for segment in segments:
        token.check()
        yield segment


def _without_pauses(samples: Any) -> SilenceTrimmer:
    """The recording as the model is to hear it.

    Raises:
        UnprocessableEntityError: Nobody speaks.
    """
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    # As the library has it for what it hears in windows.
    options = VadOptions(max_speech_duration_s=_WINDOW_S, min_silence_duration_ms=160)
    speech = [(one["start"], one["end"]) for one in get_speech_timestamps(samples, options)]
    if not speech:
        raise _nobody_speaks()
    return SilenceTrimmer(samples, _SAMPLE_RATE_HZ, speech)


def _nobody_speaks() -> errors.APIStatusError:
    words = "nobody speaks in this recording"
    return status_error(errors.UnprocessableEntityError, words, code="no_speech")


def _chunks(segment: Any, heard: SilenceTrimmer, *, words: bool) -> list[dict[str, Any]]:
    if words and segment.words:
        times = [(word.word, *map(heard.time_of, (word.start, word.end))) for word in segment.words]
        return [_chunk(*one) for one in times]
    return [_chunk(segment.text, *heard.spoken(segment.start, segment.end))]


def _chunk(text: str, start_s: float, end_s: float) -> dict[str, Any]:
    # A word may be found to begin before the recording does.
    times = [round(max(0.0, float(one)), _DIGITS) for one in (start_s, end_s)]
    return {"text": text, "timestamp": times}


def _language_of(given: str | None) -> str | None:
    """Whisper's code of a language, which may be given by its name.

    Raises:
        BadRequestError: Whisper knows no such language.
    """
    if given is None or given.lower() in ("", "none", "auto"):
        return None
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    code = code_of(given)
    if code not in _LANGUAGE_CODES:
        raise status_error(
            errors.BadRequestError,
            f"language={given[:50]!r}: Whisper knows no such language; give a code such as 'en' or "
            "'de', or its English name",
            code="invalid_request",
            param="language",
        )
    return code
