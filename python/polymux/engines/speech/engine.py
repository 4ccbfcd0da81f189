"""Speech to text with faster-whisper, from samples that the media engine has decoded."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import errors
from polymux.engines.base import Engine, Output, hash_of, missing_package, model_name, threads
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
#: Length of Whisper's input.
_WINDOW_S = 30.0


class SpeechEngine(Engine):
    """One Whisper model; one recording at a time, because its batches are not thread-safe."""

    def load(self, options: Mapping[str, Any]) -> Mapping[str, Any]:
        """Load ``model``, a directory in CTranslate2 format.

        Further options: ``device`` (``"auto"``, ``"cpu"``, ``"cuda"``), ``compute`` (such as
        ``"int8"``), ``batch`` (maximum segments in parallel) and ``beam``.

        Raises:
            NoBackendError: The package or the model is missing.
        """
        try:
            import faster_whisper
        except ImportError as error:
            raise missing_package("speech", "faster-whisper", "speech", error) from None
        folder = Path(str(options.get("model", ""))).expanduser()
        missing = [name for name in _NEEDED if not (folder / name).is_file()]
        if missing:
            raise status_error(
                errors.NoBackendError,
                f"speech model {folder.name!r}: missing files {', '.join(missing)}. Set the "
                "engine's option `model` to a directory in CTranslate2 format",
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
        return {"model": model_name(options, folder.name), "version": self._version}

    def run(self, request: Request, sink: EngineSink, token: Token) -> Output:
        samples = _samples(request.values["samples"], sink)
        duration_s = len(samples) / _SAMPLE_RATE_HZ
        heard = _without_pauses(samples)
        words = request.values.get("timestamp") == "word"
        wanted = int(request.values.get("batch_size") or 1)
        at_once = min(wanted, self._max_concurrency)
        if at_once < wanted:
            tell = sink.warn if "batch_size" in request.given else sink.log
            tell(f"batch_size={wanted}: reduced to {at_once}, the maximum of this engine")
        # A canceled request leaves this set, which would shift the words of the next one.
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
    """Return the decoded samples: 32-bit floats, mono.

    Raises:
        UnprocessableEntityError: There are no samples.
    """
    import numpy

    if not file.size_bytes:
        # One or two samples at a higher rate become none at Whisper's rate.
        raise status_error(
            errors.UnprocessableEntityError,
            "the recording contains no audio samples",
            code="no_audio",
        )
    samples: Any = numpy.memmap(file.path, numpy.float32, "r")
    wrong = numpy.count_nonzero(~numpy.isfinite(samples))
    if wrong:
        # A single NaN would make all results of the model NaN.
        sink.warn(f"{wrong} samples were NaN or infinite and are replaced by silence")
        samples = numpy.nan_to_num(samples, nan=0.0, posinf=0.0, neginf=0.0)
    return samples


def _checked(segments: Any, token: Token) -> Iterator[Any]:
    """Yield segments, and check for cancellation between them."""
    token.check()
    for segment in segments:
        token.check()
        yield segment


def _without_pauses(samples: Any) -> SilenceTrimmer:
    """Shorten the pauses of a recording for the model.

    Raises:
        UnprocessableEntityError: The recording has no speech.
    """
    from faster_whisper.vad import VadOptions, get_speech_timestamps

    # The same options as in the library's batched mode.
    options = VadOptions(max_speech_duration_s=_WINDOW_S, min_silence_duration_ms=160)
    speech = [(one["start"], one["end"]) for one in get_speech_timestamps(samples, options)]
    if not speech:
        raise _nobody_speaks()
    return SilenceTrimmer(samples, _SAMPLE_RATE_HZ, speech)


def _nobody_speaks() -> errors.APIStatusError:
    words = "no speech found in the recording"
    return status_error(errors.UnprocessableEntityError, words, code="no_speech")


def _chunks(segment: Any, heard: SilenceTrimmer, *, words: bool) -> list[dict[str, Any]]:
    if words and segment.words:
        times = [(word.word, *map(heard.time_of, (word.start, word.end))) for word in segment.words]
        return [_chunk(*one) for one in times]
    return [_chunk(segment.text, *heard.spoken(segment.start, segment.end))]


def _chunk(text: str, start_s: float, end_s: float) -> dict[str, Any]:
    # A word may be reported to start before the recording.
    times = [round(max(0.0, float(one)), _DIGITS) for one in (start_s, end_s)]
    return {"text": text, "timestamp": times}


def _language_of(given: str | None) -> str | None:
    """Return Whisper's code of a language, given as code or English name.

    Raises:
        BadRequestError: Whisper does not support the language.
    """
    if given is None or given.lower() in ("", "none", "auto"):
        return None
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    code = code_of(given)
    if code not in _LANGUAGE_CODES:
        raise status_error(
            errors.BadRequestError,
            f"language={given[:50]!r}: unsupported language. Use a code such as 'en' or 'de', or "
            "an English name",
            code="invalid_request",
            param="language",
        )
    return code
