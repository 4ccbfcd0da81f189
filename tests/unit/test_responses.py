from __future__ import annotations

import json
import pickle
import time
from typing import Any

import polymux
import pytest
from polymux.client.responses import media_url
from support.sample_responses import COMPLETION, PREDICTION, SONG, TOOL_CALLS, body, prediction


def test_completion() -> None:
    completion = polymux.ChatCompletion.decode(body(COMPLETION))
    for name in ("id", "object", "created", "model", "system_fingerprint", "service_tier",
                 "x_groq"):  # fmt: skip
        assert getattr(completion, name) == COMPLETION[name]
    assert completion.text == completion.content == "The sky scatters blue light.\n"
    assert (completion.finish_reason, completion.tool_calls) == ("stop", ())
    assert completion.extra == {"usage_breakdown": None}
    assert completion.usage is not None
    for name, value in COMPLETION["usage"].items():
        assert getattr(completion.usage, name) == value
    assert completion.usage.prompt_tokens_details is None
    choice = completion.choices[0]
    assert (choice.index, choice.logprobs, choice.message.role) == (0, None, "assistant")


def test_completion_with_tool_calls_and_next_to_nothing_else() -> None:
    completion = polymux.ChatCompletion.decode(body(TOOL_CALLS))
    (call,) = completion.tool_calls
    assert (call.id, call.type, call.name) == ("call_1", "function", "weather")
    assert call.function.arguments == call.arguments == '{"city": "Kiel"}'
    assert call.extra == {"index": 0}
    assert (completion.text, completion.content) == ("", None)
    assert completion.reasoning == "They want the weather."
    assert completion.id is completion.model is completion.created is completion.usage is None
    assert completion.choices[0].index == 0
    least = polymux.ChatCompletion.decode(b'{"choices":[{"message":{}}]}')
    assert (least.text, least.message.role) == ("", "assistant")


def test_completion_of_servers_that_vary() -> None:
    """What streams accept: parts, fractions, tool arguments as objects, long numbers."""
    parts = [
        {"type": "thinking", "thinking": [{"type": "text", "text": "Hm."}]},
        {"type": "text", "text": "Hel"},
        {"type": "text", "text": "lo"},
    ]
    call = {"function": {"name": "weather", "arguments": {"city": "Köln"}}}
    answer = {
        "created": 1.5,
        "seed": 10**30,
        "usage": {"prompt_tokens": 1.0},
        "choices": [{"index": 0.0, "message": {"content": parts, "tool_calls": [call]}}],
    }
    completion = polymux.ChatCompletion.decode(body(answer))
    assert (completion.text, completion.content, completion.reasoning) == ("Hello", "Hello", "Hm.")
    assert (completion.created, completion.choices[0].index, completion.extra) == (
        1,
        0,
        {"seed": 10**30},
    )
    assert completion.usage is not None
    assert repr(completion.usage.prompt_tokens) == "1"
    assert json.loads(completion.tool_calls[0].arguments) == {"city": "Köln"}
    assert completion.message.extra == {}
    (chunk,) = polymux.decode_chat_stream([body(answer)])
    assert (chunk.content, chunk.reasoning, chunk.created) == ("Hello", "Hm.", 1)
    other = {"choices": [{"message": {"content": "x", "reasoning_content": "Hm."}}]}
    assert polymux.ChatCompletion.decode(body(other)).reasoning == "Hm."


def message(members: str) -> str:
    """A completion with one message."""
    return f'{{"choices":[{{"message":{members}}}]}}'


def beside(members: str) -> str:
    """A completion with members beside its choices."""
    return f'{{"choices":[{{"message":{{}}}}],{members}}}'


@pytest.mark.parametrize(
    ("answer", "named"),
    [
        ("", "JSON"),
        ("<!doctype html><title>502</title>", "<!doctype html>"),
        ("null", "ChatCompletion null"),
        ("[]", "ChatCompletion array"),
        ("{}", "choices"),
        ('{"choices":null}', "choices"),
        ('{"error":{"message":"overloaded"}}', "choices overloaded"),
        ('{"choices":[]}', "choices"),
        ('{"choices":{}}', "choices object"),
        ('{"choices":[5]}', "choices[0] Choice"),
        ('{"choices":[{"message":{}},{}]}', "choices[1].message"),
        (message('"hi"'), "choices[0].message"),
        (message('{"content":{}}'), "choices[0].message.content"),
        (message('{"content":5.5}'), "choices[0].message.content"),
        (message('{"tool_calls":{}}'), "choices[0].message.tool_calls"),
        (message('{"tool_calls":[{"function":{"arguments":[]}}]}'),
         "choices[0].message.tool_calls[0].function.arguments"),
        (beside('"created":"now"'), "created"),
        (beside('"created":true'), "created boolean"),
        (beside('"usage":5'), "usage Usage"),
        (beside('"usage":{"prompt_tokens":"5"}'), "usage.prompt_tokens"),
    ],
)  # fmt: skip
def test_broken_completions_name_the_member(answer: str, named: str) -> None:
    with pytest.raises(polymux.DecodeError) as caught:
        polymux.ChatCompletion.decode(answer.encode())
    assert all(one in str(caught.value) for one in named.split())


@pytest.mark.parametrize("mib", [16, pytest.param(64, marks=pytest.mark.long)])
def test_many_choices_in_bounded_time(mib: int) -> None:
    choice = body(COMPLETION["choices"][0] | {"message": {"content": "x" * 200}})
    answer = b'{"choices":[' + b",".join([choice] * (mib * 2**20 // len(choice))) + b"]}"
    before = time.process_time()
    completion = polymux.ChatCompletion.decode(answer)
    assert time.process_time() - before < 30
    assert len(completion.choices) > mib * 2000
    assert len(repr(completion)) < 1000


def test_deep_nesting_is_refused_and_what_is_allowed_survives_everything() -> None:
    def nested(depth: int) -> bytes:
        return b'{"response":"x","deep":' + b"[" * depth + b"]" * depth + b"}"

    with pytest.raises(polymux.DecodeError, match="200"):
        polymux.TextResponse.decode(nested(200))
    deep = polymux.TextResponse.decode(nested(199))
    assert deep.json()["deep"] == deep.extra["deep"]
    assert pickle.loads(pickle.dumps(deep)) == deep


def test_texts() -> None:
    for response, text in (("Hello!", "Hello!"), ("", ""), (["Hel", "lo!"], "Hello!")):
        answer = polymux.TextResponse.decode(body({"response": response}))
        assert answer.text == str(answer) == text
    for broken in ({}, {"response": 5}, {"response": [5]}, {"text": "x"}):
        with pytest.raises(polymux.DecodeError, match="response"):
            polymux.TextResponse.decode(body(broken))
    assert polymux.OcrText.decode(b'{"text":""}').text == ""
    assert polymux.OcrText.decode(b'{"response":"a\\nb"}').text == "a\nb"
    with pytest.raises(polymux.DecodeError, match=r"text.*error.*\bno\b"):
        polymux.OcrText.decode(b'{"error":"no"}')


def test_media_url() -> None:
    address = "https://files.example/a.mp3"
    for answer in ({"response": address}, {"url": address}, {"response": "", "url": address}):
        assert media_url(body(answer)) == address
    for answer in ({}, {"response": ""}, {"response": 5}, {"url": [address]}, [address], None):
        with pytest.raises(polymux.DecodeError):
            media_url(body(answer))


def test_prediction() -> None:
    job = prediction()
    for name in set(PREDICTION) - {"data_removed"}:
        assert getattr(job, name) == PREDICTION[name]
    assert job.images == job.videos
    assert [str(one) for one in job.images] == PREDICTION["output"]
    assert (job.succeeded, job.failed, job.finished) == (True, False, True)
    assert job.extra == {"data_removed": False}
    assert job.raise_for_status() is job


def test_a_prediction_that_has_not_begun() -> None:
    job = polymux.Prediction.decode(b'{"id":"x","status":"starting","input":{}}')
    assert (job.succeeded, job.failed, job.finished) == (False, False, False)
    assert (job.images, job.videos, job.text, job.chunks, job.logs) == ((), (), "", (), "")
    assert job.audio is job.spectrogram is job.output is job.error is job.metrics is None
    assert job.raise_for_status() is job


HELLO = {"text": " Hello", "timestamp": [0.0, 0.5]}
THERE = {"text": " there.", "timestamp": [0.5, None]}


@pytest.mark.parametrize(
    ("output", "text"),
    [
        ({"text": " Hello there.", "chunks": [HELLO, THERE]}, " Hello there."),
        ([HELLO | {"speaker": "A"}, THERE], "Hello there."),
    ],
)
def test_transcripts(output: Any, text: str) -> None:
    job = prediction(output=output)
    assert job.text == text
    assert [chunk.text for chunk in job.chunks] == [" Hello", " there."]
    assert [chunk.timestamp for chunk in job.chunks] == [(0.0, 0.5), (0.5, None)]
    assert (job.chunks[1].start_s, job.chunks[1].end_s) == (0.5, None)
    if isinstance(output, list):
        assert job.chunks[0].extra == {"speaker": "A"}


def test_transcripts_with_less() -> None:
    for output, text in (({"text": "Hi"}, "Hi"), ("Hi", "Hi"), ({}, "")):
        assert (prediction(output=output).text, prediction(output=output).chunks) == (text, ())
    (chunk,) = prediction(output={"chunks": [{"text": "Hi"}]}).chunks
    assert chunk.timestamp == (None, None)


def test_files_that_jobs_made() -> None:
    address = "https://files.example/large.png"
    job = prediction(output=address)
    assert [str(one) for one in job.images] == [str(job.audio)] == [address]
    assert job.spectrogram is None
    job = prediction(output={"audio": f"{address}a", "spectrogram": address})
    assert (str(job.audio), str(job.spectrogram)) == (f"{address}a", address)
    assert prediction(output={"error": "no such seed"}).audio is None


@pytest.mark.parametrize(
    ("output", "attribute", "named"),
    [
        (5, "images", "output integer"),
        ({"text": "x"}, "images", "output object"),
        ([5], "videos", "output[0]"),
        (5, "text", "output"),
        ({"text": 5}, "text", "output.text"),
        (5, "chunks", "output"),
        ({"chunks": {}}, "chunks", "output.chunks"),
        ({"chunks": ["x"]}, "chunks", "output.chunks[0] TranscriptChunk"),
        ({"chunks": [{"text": "x", "timestamp": 5}]}, "chunks", "chunks[0].timestamp"),
        ({"chunks": [{"text": "x", "timestamp": [1]}]}, "chunks", "chunks[0].timestamp"),
        ({"chunks": [{"timestamp": [1, "2"]}]}, "chunks", "timestamp[1]"),
        ([], "audio", "output"),
        ({"audio": 5}, "audio", "output.audio"),
        ({"spectrogram": []}, "spectrogram", "output.spectrogram"),
    ],
)
def test_outputs_of_another_form_name_the_member(output: Any, attribute: str, named: str) -> None:
    job = prediction(output=output)
    assert repr(job)
    with pytest.raises(polymux.DecodeError) as caught:
        getattr(job, attribute)
    assert all(one in str(caught.value) for one in named.split())


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"status": None}, "status.*gone"),
        ({"status": 5}, "status"),
        ({"id": 5}, r"\bid\b"),
        ({"logs": []}, "logs"),
        ({"input": []}, "input"),
        ({"metrics": "fast"}, "metrics"),
    ],
)
def test_broken_predictions(change: dict[str, Any], named: str) -> None:
    with pytest.raises(polymux.DecodeError, match=named):
        prediction(error="gone", **change)


@pytest.mark.parametrize("status", ["failed", "canceled", "aborted"])
def test_failed_predictions_raise_when_asked(status: str) -> None:
    job = prediction(status=status, error="CUDA out of memory\x1b[31m", output=None)
    assert (job.failed, job.finished, job.succeeded, job.images) == (True, True, False, ())
    with pytest.raises(polymux.PredictionFailedError) as caught:
        job.raise_for_status()
    for error in (caught.value, pickle.loads(pickle.dumps(caught.value))):
        assert error.prediction == job
        for named in (job.model, job.id, status, r"CUDA out of memory\x1b[31m"):
            assert named in str(error)
    with pytest.raises(polymux.PredictionFailedError, match="failed"):
        polymux.Prediction.decode(b'{"status":"failed"}').raise_for_status()


def test_song() -> None:
    song = polymux.Song.decode(body(SONG | {"isrc": "X"}))
    assert (song.name, song.url, song.image_url) == tuple(SONG.values())
    assert song.is_match
    assert song.extra == {"isrc": "X"}
    for answer in ({}, dict.fromkeys(SONG, ""), dict.fromkeys(SONG)):
        empty = polymux.Song.decode(body(answer))
        assert (empty.is_match, empty.name, empty.url, empty.image_url) == (False, "", "", "")
    with pytest.raises(polymux.DecodeError, match="song_name"):
        polymux.Song.decode(b'{"song_name":5}')


def test_song_list_is_a_sequence() -> None:
    songs = polymux.SongList.decode(body([SONG, SONG | {"song_name": "Other"}]))
    assert [song.name for song in songs] == [SONG["song_name"], "Other"]
    assert songs[-1].name == next(reversed(songs)).name == "Other"
    assert songs[1:][0] == songs[1]
    assert songs[0] in songs
    assert songs.index(songs[1]) == 1
    assert polymux.SongList.decode(b"[]").json() == []
    assert repr(songs) == f"SongList(['{SONG['song_name']}', 'Other'])"
    with pytest.raises(IndexError):
        songs[2]
    with pytest.raises(polymux.DecodeError, match="object"):
        polymux.SongList.decode(b'{"songs":[]}')
    with pytest.raises(polymux.DecodeError, match=r"\[1\].*Song"):
        polymux.SongList.decode(b"[{},5]")
