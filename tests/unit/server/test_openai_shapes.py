from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polymux import TranscriptChunk, contract
from polymux.client.responses import Prediction
from polymux.errors import APIStatusError
from polymux.media import languages
from polymux.server.compat.openai.audio import wanted_transcript
from polymux.server.compat.openai.errors import error_of
from polymux.server.compat.openai.images import wanted_images
from polymux.server.compat.openai.transcripts import Span, Transcript, of_words, spans
from polymux.service.errors import described
from polymux.service.model import Upload

FILE = Upload(Path("draft"), "talk.wav", "audio/wav", 4)
NAMES = ["file", "model", "language", "prompt", "response_format", "temperature", "stream", "x",
         "timestamp_granularities[]", "include[]", "chunking_strategy", "n", "size", "quality",
         "image", "mask", "user", "seed", "width", "num_outputs", "url", "task"]  # fmt: skip
VALUES = st.one_of(
    st.text(max_size=5),
    st.sampled_from(["0", "1", "auto", "json", "verbose_json", "word", "whisper-1", "512x512"]),
    st.just(FILE),
)


def chunks(*given: tuple[str, Any, Any]) -> list[TranscriptChunk]:
    return [TranscriptChunk({"text": text, "timestamp": [a, b]}) for text, a, b in given]


@pytest.mark.parametrize(
    ("failure", "status", "error"),
    [
        ({"status": 401, "code": "unauthorized"}, 401,
         ("invalid_request_error", "invalid_api_key")),
        ({"status": 403, "code": "forbidden"}, 403, ("permission_error", "forbidden")),
        ({"status": 400, "code": "model_not_found"}, 404,
         ("invalid_request_error", "model_not_found")),
        ({"status": 429, "code": "rate_limited"}, 429, ("requests", "rate_limit_exceeded")),
        ({"status": 501, "code": "no_backend"}, 501, ("server_error", "no_backend")),
    ],
)  # fmt: skip
def test_errors(failure: dict[str, Any], status: int, error: tuple[str, str]) -> None:
    found, body = error_of(failure | {"message": "words"})
    assert found == status
    kind, code = error
    assert body == {"error": {"message": "words", "type": kind, "param": None, "code": code}}


def test_missing_times_are_found() -> None:
    pieces = chunks((" a", None, 1), (" b", None, None), (" c", 3, None), (" d", 5, 2))
    assert spans(pieces, 9.0) == [
        Span(0.0, 1.0, " a"), Span(1.0, 3.0, " b"), Span(3.0, 5.0, " c"), Span(5.0, 5.0, " d"),
    ]  # fmt: skip
    assert spans(chunks(("a", 1, None)), 9.0) == [Span(1.0, 9.0, "a")]
    assert spans(chunks(("a", 1, None)), None) == [Span(1.0, 1.0, "a")]
    assert spans([], 9.0) == []


@given(st.lists(st.tuples(st.text(max_size=4), st.floats(0, 9) | st.none(),
                          st.floats(0, 9) | st.none()), max_size=6))  # fmt: skip
def test_no_time_is_missing_and_nothing_is_lost(given: list[tuple[str, Any, Any]]) -> None:
    found = spans(chunks(*given), None)
    assert all(0 <= one.start_s <= one.end_s for one in found)
    assert "".join(one.text for one in of_words(found)) == "".join(text for text, *_ in given)


@pytest.mark.parametrize(
    ("output", "asked", "language"),
    [
        ({"language": "de"}, None, "german"),
        ({"language": "German"}, None, "german"),
        ({"language": "xx"}, None, "xx"),
        ({}, "de", "german"),
        ({}, None, "unknown"),
    ],
)
def test_languages_of_answers(output: dict[str, Any], asked: str | None, language: str) -> None:
    whole = {"text": "Ja.", "chunks": [{"text": " Ja.", "timestamp": [0, 1]}]} | output
    job = Prediction({"status": "succeeded", "output": whole, "metrics": {"audio_seconds": 2.5}})
    made = Transcript(job, False, False, frozenset(("segment",)), asked)
    kind, body = made.answer("verbose_json")
    assert kind == b"application/json"
    assert f'"language":"{language}"'.encode() in body
    assert b'"duration":2.5' in body
    translated = Transcript(job, True, False, frozenset(("segment",)), asked)
    assert b'"language":"english"' in translated.answer("verbose_json")[1]


def test_whisper_s_languages() -> None:
    from faster_whisper.tokenizer import _LANGUAGE_CODES

    assert set(languages.CODES.values()) == set(_LANGUAGE_CODES)
    for name, code in languages.CODES.items():
        assert languages.code_of(name.title()) == languages.code_of(code.upper()) == code
        assert languages.name_of(code) == name


@given(st.lists(st.tuples(st.sampled_from(NAMES), VALUES), max_size=6))
def test_any_form_is_understood_or_refused(fields: list[tuple[str, Any]]) -> None:
    """The error names a field that was sent or is missing; a warning names one that was sent."""
    for make in (
        lambda: wanted_transcript([("file", FILE), *fields]),
        lambda: wanted_transcript([("file", FILE), *fields], translates=True),
        lambda: wanted_images([("image", FILE), ("prompt", "x"), *fields], edits=True),
        lambda: wanted_images([("prompt", "x"), *fields]),
    ):
        try:
            wanted = make()
        except APIStatusError as error:
            error_fields = described(error)
            assert error_fields["status"] in (400, 404)
            assert error_fields["param"]
        else:
            operation = contract.operation(wanted.request.operation)
            known = {one.name for variant in operation.variants for one in variant.fields}
            assert wanted.request.values.keys() <= known
            ignored = {one.partition(":")[0] for one in wanted.request.warnings}
            assert ignored <= {name for name, _ in fields}
