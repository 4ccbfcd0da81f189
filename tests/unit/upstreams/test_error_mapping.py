from __future__ import annotations

import time
from email.utils import formatdate

import pytest
from polymux import errors
from polymux.service.errors import status_error
from polymux.upstreams.client import Breaker, UpstreamServer
from polymux.upstreams.error_mapping import cleaned, map_error, map_error_body
from polymux.upstreams.model_names import ModelNames


@pytest.mark.parametrize(
    "secret",
    [
        "https://console.example/keys", "http://10.1.2.3:8080/x", "10.1.2.3", "10.1.2.3:8080",
        "[fe80::1]:80", "db-1.internal:5432", "localhost:11434", "ops@site.example",
        "sk-proj-ab12cd34", "gsk_ab12CD34ef56", "org-8abc12", "org_01jABCDEF", "req_01jx9",
        "0123456789abcdef0123456789abcdef",
    ],
)  # fmt: skip
def test_words_without_what_is_private(secret: str) -> None:
    words = cleaned(f"Model x is busy ({secret}), ask {secret} later.")
    assert secret not in words
    assert words.startswith("Model x is busy (")
    assert words.endswith("later.")


@pytest.mark.parametrize(
    "words",
    [
        "messages[0].content must be a string",
        "This model's maximum context length is 8192 tokens; you requested 9001",
        "The model llama-3.3-70b-versatile does not support images",
        "meta-llama/llama-4-maverick-17b-128e-instruct: 'max_completion_tokens' is above 4096",
        "temperature: 2.5 is over 2.0 (v1.2.3)",
    ],
)
def test_words_about_a_request_stay(words: str) -> None:
    assert cleaned(words) == words


def test_words_are_bounded_and_of_one_line() -> None:
    assert len(cleaned("word " * 1000)) <= 300
    assert cleaned("a\n\n\x1b[31mb") == "a \\x1b[31mb"


@pytest.mark.parametrize(
    "piece", ["a", "a.", "a-", "1", "sk-", "[::", "w://", "a.bb:", "@a", "a@", "[1", "a1_", " "]
)
def test_long_words_take_no_time(piece: str) -> None:
    """The time is linear in the length; quadratic time once blocked the event loop for minutes."""
    began = time.process_time()
    assert len(cleaned(piece * (200_000 // len(piece)))) <= 300
    assert time.process_time() - began < 5


def status(number: int, code: str = "", **more: str) -> errors.APIStatusError:
    kind = errors.InternalServerError if number >= 500 else errors.APIStatusError
    return status_error(kind, more.get("text", "words"), code=code or None, status=number)


def test_codes_of_a_polymux_mean_what_ours_do() -> None:
    for number, code in ((422, "no_speech"), (415, "unsupported_media"), (404, "gone"),
                         (501, "no_backend"), (413, "too_large")):  # fmt: skip
        ours = map_error("x", status(number, code), operation="transcribe", ours=True)
        assert isinstance(ours, errors.APIStatusError)
        assert (ours.status, ours.code) == (number, code)
    none = map_error("x", status(404, "no_match"), operation="identify_song", ours=True)
    assert isinstance(none, errors.NoMatchError)
    strange = map_error("x", status(404, "gone"), operation="transcribe")
    assert isinstance(strange, errors.APIStatusError)
    assert strange.status == 502
    # A known code with an unexpected status is not trusted.
    wrong = map_error("x", status(500, "no_speech"), operation="transcribe", ours=True)
    assert isinstance(wrong, errors.APIStatusError)
    assert wrong.status == 502


@pytest.mark.parametrize(
    ("code", "kind", "number"),
    [
        ("401", errors.InternalServerError, 502), ("402", errors.InternalServerError, 502),
        ("403", errors.InternalServerError, 502), ("429", errors.RateLimitError, 429),
        ("400", errors.BadRequestError, 400), ("503", errors.OverloadedError, 503),
        ("context_length_exceeded", errors.BadRequestError, 400),
        ("server_error", errors.InternalServerError, 502),
    ],
)  # fmt: skip
def test_codes_in_the_place_of_an_answer(
    code: str, kind: type[errors.APIStatusError], number: int
) -> None:
    """An error code in an answer counts as a status. Details of an account are never shown."""
    error = errors.APIError("Add credits for Acme")
    error.code = code
    found = map_error_body("x", error, operation="chat")
    assert isinstance(found, kind)
    assert found.status == number
    assert ("Acme" in str(found)) == (number == 400 or code == "server_error")
    assert ("retry-after" in found.headers) == (number in (429, 503))
    late = map_error("x", error, operation="chat")
    assert isinstance(late, errors.APIStatusError)
    assert late.status == 502
    assert ("Acme" in str(late)) == (code not in ("401", "402", "403", "429"))


@pytest.mark.parametrize(
    ("field", "seconds"),
    [
        ("1.2", "2"), ("0.1", "1"), ("-3", "1"), ("9" * 40, "3600"), ("1." + "0" * 30, "1"),
        ("Wed, 21 Oct 2015 07:28:00 GMT", "1"), ("Fri, 31 Dec 2999 23:59:59 GMT", "3600"),
        ("soon", "5"), ("Wed, 99 Oct 2015", "5"), ("", "5"),
    ],
)  # fmt: skip
def test_when_to_come_again(field: str, seconds: str) -> None:
    busy = status(429)
    busy.headers["retry-after"] = field
    found = map_error("x", busy, operation="chat")
    assert isinstance(found, errors.RateLimitError)
    assert found.headers["retry-after"] == seconds


def test_when_to_come_again_by_a_date() -> None:
    busy = status(429)
    busy.headers["retry-after"] = formatdate(time.time() + 100, usegmt=True)
    found = map_error("x", busy, operation="chat")
    assert isinstance(found, errors.RateLimitError)
    assert 90 <= int(found.headers["retry-after"]) <= 100


def test_what_is_no_failure_of_an_exchange_stays() -> None:
    error = errors.InputChangedError("the file was written to")
    assert map_error("x", error, operation="transcribe") is error


def test_a_breaker_lets_one_in_two_seconds_through() -> None:
    now = [0.0]
    breaker = Breaker(clock=lambda: now[0])
    refused, late = errors.ConnectError("no"), errors.RequestTimeoutError("late")
    late.limit = "connect"
    for outcome in (refused, late, refused):
        assert breaker.admits()
        assert not breaker.is_open
        breaker.count(outcome)
    assert [breaker.admits() for _ in range(3)] == [True, False, False]
    now[0] = 1.9
    assert not breaker.admits()
    now[0] = 2.0
    assert breaker.admits()
    breaker.count(None)
    assert [breaker.admits() for _ in range(3)] == [True] * 3
    slow = errors.RequestTimeoutError("late")
    slow.limit = "total"
    for _ in range(5):
        breaker.count(slow)
    assert not breaker.is_open


def test_names_of_models() -> None:
    speech = "turian/insanely-fast-whisper-with-video"
    names = ModelNames({speech: "whisper", "fast": "llama", "slow": "other"})
    assert names.of_chats == ("fast", "slow")
    assert (names.of_chat("default"), names.of_chat("slow")) == ("llama", "other")
    assert names.of_chat(speech) is None
    assert names.of_free_chat("gpt-4") == "llama"
    assert names.of_selector(f"{speech}:4f41e902") == "whisper"
    assert names.of_selector("bytedance/sdxl-lightning-4step") is None
    assert ModelNames({"one": "only"}).of_selector("bytedance/sdxl-lightning-4step") == "only"
    assert ModelNames({}).of_chats is None
    assert ModelNames({}).of_free_chat("gpt-4") == "gpt-4"


def test_paths_of_addresses() -> None:
    """`/api/v1` is removed from a polymux server's URL, and belongs to the URL of other servers."""
    for given in ("https://router.example/api/v1", "https://router.example/api/v1/"):
        assert UpstreamServer("x", given).base_url == "https://router.example/api/v1"
        assert UpstreamServer("x", given, ours=True).base_url == "https://router.example"
    assert UpstreamServer("x", "http://[::1]:8080/v1/").host == "[::1]:8080"
    with pytest.raises(errors.InvalidRequestError):
        UpstreamServer("x", "https://a.example", "a key")
    assert "gsk" not in repr(UpstreamServer("x", "https://a.example", "gsk-canary"))
