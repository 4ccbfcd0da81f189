from __future__ import annotations

from polymux.client.responses import ChatCompletion
from polymux.engines.chat.completions import Assembled


def piece(index: int = 0, finish: str | None = None, **delta: object) -> dict[str, object]:
    return {"choices": [{"index": index, "delta": delta, "finish_reason": finish}]}


def test_contents_of_several_answers_are_kept_apart() -> None:
    answer = Assembled("m")
    for one in (piece(0, content="a"), piece(1, content="x"), piece(0, content="b"),
                piece(1, "length"), piece(0, "stop")):  # fmt: skip
        answer.add(one)
    choices = answer.completion()["choices"]
    assert [(one["message"]["content"], one["finish_reason"]) for one in choices] == [
        ("ab", "stop"),
        ("x", "length"),
    ]


def test_calls_of_tools_come_in_pieces() -> None:
    answer = Assembled("m")
    for call in (
        {"index": 0, "id": "c1", "function": {"name": "weather", "arguments": '{"ci'}},
        {"index": 0, "function": {"arguments": 'ty": "Rome"}'}},
        {"index": 1, "id": "c2", "function": {"name": "time", "arguments": "{}"}},
    ):
        answer.add(piece(tool_calls=[call]))
    answer.add(piece(0, "tool_calls"))
    whole = ChatCompletion(answer.completion())
    calls = whole.choices[0].message.tool_calls
    assert [(one.id, one.function.name, one.function.arguments) for one in calls] == [
        ("c1", "weather", '{"city": "Rome"}'),
        ("c2", "time", "{}"),
    ]
    assert whole.choices[0].finish_reason == "tool_calls"


def test_times_and_tokens() -> None:
    answer = Assembled("m")
    answer.add(piece(content="a"))
    answer.add({"choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 1,
                                         "total_tokens": 4}})  # fmt: skip
    answer.add({"choices": [], "timings": {"prompt_ms": 20.0, "predicted_ms": 10.0}})
    usage = answer.completion()["usage"]
    assert usage == {
        "prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4,
        "prompt_time": 0.02, "completion_time": 0.01, "total_time": 0.03,
    }  # fmt: skip


def test_tokens_of_the_cache() -> None:
    """Of several responses, the first has read the prompt."""
    answer = Assembled("m")
    answer.add(piece(content="a"))
    for cached in (2, 9):
        details = {"prompt_tokens_details": {"cached_tokens": cached}}
        answer.add({"choices": [], "usage": {"prompt_tokens": 10, **details}})
    usage = ChatCompletion(answer.completion()).usage
    assert usage is not None
    assert usage.prompt_tokens_details == {"cached_tokens": 2}


def test_an_empty_answer_is_an_empty_text() -> None:
    answer = Assembled("m")
    answer.add(piece(role="assistant", content=None))
    assert answer.completion()["choices"][0]["message"] == {"role": "assistant", "content": ""}


def test_times_of_several_answers() -> None:
    """Two simultaneous answers count as the longer one; later answers add their time."""
    answer = Assembled("m")
    for first, prompt_ms, answer_ms in ((0, 20.0, 10.0), (0, 20.0, 30.0), (2, 1.0, 50.0)):
        timings = {"prompt_ms": prompt_ms, "predicted_ms": answer_ms}
        answer.add({"choices": [], "timings": timings}, first)
    usage = answer.usage_with_times()
    times = usage["prompt_time"], usage["completion_time"], usage["total_time"]
    assert times == (0.02, 0.08, 0.1)
