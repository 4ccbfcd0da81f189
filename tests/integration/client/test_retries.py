"""Which requests are retried (K15, C03 to C06, C19 and C48 in docs/development/testing.md)."""

from __future__ import annotations

import concurrent.futures
import io
import itertools
import math
import pickle
import threading
import time
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import Retry, errors
from servers import steps
from servers.listeners import refusing_port
from servers.misbehaving import MisbehavingServer
from servers.replies import retry_after_forms
from support.client_calls import CHUNK, FINE, KINDS, called
from support.client_children import KEY
from support.hostile_check import PATIENCE

if TYPE_CHECKING:
    from servers.steps import Step

FAST = Retry(2, first_backoff_s=0.01, max_backoff_s=0.05)
VERSION = [("Polymux-Version", "0.1.0")]


def client_of(
    server: MisbehavingServer, retry: Retry = FAST, timeout: float = 20
) -> polymux.Client:
    return polymux.Client(server.url, KEY, retry=retry, timeout=timeout)


def test_as_often_as_allowed(server: MisbehavingServer) -> None:
    with client_of(server) as client:
        server.script(steps.answer(503, b'{"error":"first"}'), times=2)
        server.script(steps.answer(429, b'{"error":"last"}', [("X-Request-ID", "r-3")]))
        with pytest.raises(errors.RateLimitError, match="last") as caught:
            client.free_chat("x")
    assert (caught.value.tries, caught.value.request_id) == (3, "r-3")
    assert len(server.requests) == 3


@pytest.mark.parametrize("kind", KINDS)
def test_why_a_request_was_retried(
    kind: type, server: MisbehavingServer, caplog: pytest.LogCaptureFixture
) -> None:
    """In the log, on results and streams, and on errors."""
    again = steps.answer(503, b"{}", [("Retry-After", "0")])
    fast = Retry(1, first_backoff_s=0)
    server.script(again)
    server.script(FINE)
    with caplog.at_level("INFO", "polymux"):
        result = called(kind, server.url, lambda client: client.free_chat("x"), retry=fast)
    (reason,) = result.retry_reasons
    assert "503" in reason
    assert result.retries == 1
    assert [one.message for one in caplog.records if one.levelname == "INFO"] == [
        f"free_chat: retry 1: {reason}"
    ]
    server.script(again, times=2)
    with pytest.raises(errors.OverloadedError) as refused:
        called(kind, server.url, lambda client: client.free_chat("x"), retry=fast)
    assert len(refused.value.retry_reasons) == 1
    server.script(again)
    server.script(steps.close())
    with pytest.raises(errors.ConnectionLostError) as lost:
        called(kind, server.url, lambda client: client.free_chat("x"), retry=fast)
    assert "503" in lost.value.retry_reasons[0]


def test_why_a_stream_was_retried(server: MisbehavingServer) -> None:
    server.script(steps.answer(503, b"{}", [("Retry-After", "0")]))
    server.script(steps.event_stream(), steps.send(CHUNK))
    with client_of(server) as client, client.chat("x", stream=True) as stream:
        assert stream.response is not None
        assert "503" in stream.response.retry_reasons[0]


@pytest.mark.parametrize(("status", "advice", "tries"), [(409, "true", 2), (503, "false", 1)])
def test_the_servers_advice(
    status: int, advice: str, tries: int, server: MisbehavingServer
) -> None:
    """`x-should-retry`, as in the SDKs of OpenAI and Anthropic."""
    server.script(steps.answer(status, b"{}", [("x-should-retry", advice)]), times=None)
    with client_of(server, Retry(1, first_backoff_s=0)) as client:
        with pytest.raises(errors.APIStatusError):
            client.free_chat("x")
        assert len(server.requests) == tries


@pytest.mark.parametrize(
    ("status", "always", "harmless"),
    [
        *((status, True, True) for status in (429, 503)),
        *((status, False, True) for status in (408, 500, 529)),
        *((status, False, False) for status in (400, 409, 501, 507)),
    ],
)
def test_which_statuses_are_asked_again(
    status: int, always: bool, harmless: bool, server: MisbehavingServer
) -> None:
    """Each status is retried always, only for safe requests, or never (501) (C03, C04 and K15)."""
    for repeatable, fields, again in (
        (False, [], always),
        (True, [], harmless),
        (False, VERSION, harmless),
    ):
        path = f"/{repeatable}-{len(fields)}"
        server.script(steps.answer(status, b"{}", [*fields, ("Retry-After", "0")]), path=path)
        server.script(FINE, path=path)
        with client_of(server, Retry(2, first_backoff_s=0.01, repeatable=repeatable)) as client:
            own = client.with_options(paths={"free_chat": path})
            if again:
                assert own.free_chat("x").text == "fine"
            else:
                with pytest.raises(errors.APIStatusError) as caught:
                    own.free_chat("x")
                assert caught.value.status == status
        assert sum(one.path == path for one in server.requests) == 1 + again


#: Form of Retry-After -> (minimum, maximum) wait in seconds, or None for no retry.
SPREAD_S = 0.3
OWN = (0.0, 0.05)
EXPECTED: dict[str, tuple[float, float] | None] = {
    "seconds": (2, 2 + SPREAD_S), "zero": (0, SPREAD_S), "date": (0, 2 + SPREAD_S),
    "date in RFC 850's form": (0, 2 + SPREAD_S), "date in asctime's form": (0, 2 + SPREAD_S),
    "date in the past": (0, SPREAD_S), "date in ten years": None, "negative": OWN,
    "scientific": OWN, "huge": None, "beyond 64 bits": None, "fraction": (0.5, 0.5 + SPREAD_S),
    "blanks": (2, 2 + SPREAD_S), "word": OWN, "empty": OWN, "twice": (1, 1 + SPREAD_S),
    "list": OWN,
}  # fmt: skip


def test_retry_after_in_every_form(server: MisbehavingServer) -> None:
    """Reasonable values are followed, excessive ones end the call at once, and invalid ones are
    ignored (K15 and C03).
    """
    client = client_of(server, Retry(1, first_backoff_s=0.05, max_backoff_s=0.05))

    def ask(form: str, values: list[str]) -> None:
        path = f"/{list(EXPECTED).index(form)}"
        fields = [("Retry-After", value) for value in values]
        server.script(steps.answer(503, b"{}", fields), path=path)
        server.script(FINE, path=path)
        own = client.with_options(paths={"free_chat": path})
        expected = EXPECTED[form]
        begun = time.monotonic()
        if expected is None:
            with pytest.raises(errors.OverloadedError):
                own.free_chat("x")
            assert time.monotonic() - begun <= 15  # A wait of a minute would exceed this.
        else:
            assert own.free_chat("x").text == "fine"
        tries = [one.arrived_at for one in server.requests if one.path == path]
        if expected is None:
            assert len(tries) == 1
        else:
            waited = tries[1] - tries[0]
            assert expected[0] - 0.02 <= waited <= expected[1] + 1.5 * PATIENCE, (form, waited)

    forms = retry_after_forms()  # Dates are relative to now.
    with client, concurrent.futures.ThreadPoolExecutor(len(forms)) as pool:
        list(pool.map(ask, forms.keys(), forms.values()))


@pytest.mark.parametrize(("exact", "min_s"), [("300", 0.3), ("soon", 1.0)])
def test_retry_after_in_milliseconds(exact: str, min_s: float, server: MisbehavingServer) -> None:
    """Retry-After-Ms takes precedence. If it is invalid, Retry-After applies (K15)."""
    fields = [("Retry-After", "1"), ("retry-after-ms", exact)]
    server.script(steps.answer(429, b"{}", fields))
    server.script(FINE)
    # `math.inf` means no limit, not 0.
    with client_of(server, Retry(1, max_retry_after_s=math.inf)) as client:
        client.free_chat("x")
    first, second = server.requests
    waited = second.arrived_at - first.arrived_at
    assert min_s - 0.02 <= waited <= min_s + SPREAD_S + 1.5 * PATIENCE


@pytest.mark.parametrize(
    ("retry", "timeout", "fields"),
    [
        (Retry(5, max_retry_after_s=59), 1000, [("Retry-After", "60")]),
        (Retry(5), 30, [("Retry-After", "60")]),
        (Retry(5, first_backoff_s=1e6, max_backoff_s=1e6), 30, []),
    ],
)
def test_longer_than_is_waited_for(
    retry: Retry, timeout: float, fields: list[tuple[str, str]], server: MisbehavingServer
) -> None:
    """A wait over `max_retry_after_s` or past the deadline raises the error at once (K15)."""
    server.script(steps.answer(503, b"{}", fields), times=None)
    begun = time.monotonic()
    with client_of(server, retry, timeout) as client, pytest.raises(errors.OverloadedError):
        client.free_chat("x")
    assert time.monotonic() - begun <= 15  # A wait of half a minute would exceed this.
    assert len(server.requests) == 1


def test_the_deadline_over_all_tries(server: MisbehavingServer) -> None:
    """`total` includes all tries and the waits between them (K15)."""
    server.script(steps.sleep(0.2), steps.answer(503), times=None)
    retry = Retry(100, first_backoff_s=0.15, max_backoff_s=0.15)
    with client_of(server, retry, timeout=1) as client:
        begun = time.monotonic()
        with pytest.raises((errors.RequestTimeoutError, errors.OverloadedError)):
            client.free_chat("x")
        assert time.monotonic() - begun <= 15  # A hundred tries would take 27 s.
    assert 2 <= len(server.requests) <= 6


def test_jitter(server: MisbehavingServer) -> None:
    """Waits are random within their bounds (K15)."""
    server.script(steps.answer(503), times=None)
    retry = Retry(20, first_backoff_s=0.1, max_backoff_s=0.1)
    with client_of(server, retry, timeout=60) as client, pytest.raises(errors.OverloadedError):
        client.free_chat("x")
    times = [one.arrived_at for one in server.requests]
    assert len(times) == 21
    waits = [after - before for before, after in itertools.pairwise(times)]
    assert min(waits) < 0.05
    assert len({round(wait, 3) for wait in waits}) > 5


def test_what_is_the_same_over_all_tries(server: MisbehavingServer) -> None:
    """A call's tries share one Idempotency-Key and X-Request-ID. The next call has new ones."""
    with client_of(server) as client:
        for _ in range(2):
            server.script(steps.answer(503), times=2)
            server.script(FINE)
            client.free_chat("x")
        own = {"Idempotency-Key": "mine", "X-Request-ID": "my-request"}
        server.script(FINE)
        client.with_options(headers=own).free_chat("x")
    for name, mine in own.items():
        values = [one.all_of(name) for one in server.requests]
        assert all(len(value) == 1 for value in values)
        first, second = {value[0] for value in values[:3]}, {value[0] for value in values[3:6]}
        assert len(first) == len(second) == 1
        assert first != second
        assert values[6] == [mine]


def test_a_body_that_can_be_read_once_is_sent_once(server: MisbehavingServer) -> None:
    """Generators and non-seekable files are sent once. A seekable file is resent in full."""

    class Pipe(io.RawIOBase):
        def __init__(self) -> None:
            self._left = [b"ab", b"cd"]

        def read(self, size: int = -1) -> bytes:
            return self._left.pop(0) if self._left else b""

    once = [iter([b"ab", b"cd"]), (piece for piece in (b"ab", b"cd")), Pipe()]
    with client_of(server) as client:
        for source in once:
            server.script(steps.answer(503))
            with pytest.raises(errors.OverloadedError):
                client.read_text(("a.png", source))
        assert len(server.requests) == len(once)
        file = io.BytesIO(b"skip me abcd")
        file.seek(8)
        for again in (b"abcd", [b"ab", b"cd"], file):
            server.script(steps.answer(503))
            server.script(steps.answer(200, b'{"text":"fine"}'))
            client.read_text(("a.png", again))
            first, second = server.requests[-2:]
            assert first.body == second.body
            assert b"\r\n\r\nabcd\r\n" in second.body


def test_never_after_a_chunk(server: MisbehavingServer) -> None:
    head = steps.event_stream(VERSION)
    with client_of(server, Retry(5, first_backoff_s=0.01, repeatable=True)) as client:
        for end in (steps.reset(), steps.close()):
            server.script(head, steps.send(CHUNK), steps.sleep(0.2), end)
            with pytest.raises(errors.StreamInterruptedError):
                list(client.chat("x", stream=True))
        server.script(head, steps.sleep(0.05), steps.reset())
        with pytest.raises(errors.StreamInterruptedError):
            list(client.chat("x", stream=True))
    assert len(server.requests) == 3


SILENCE = steps.sleep(0.05)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("repeatable", "version", "play", "safe"),
    [
        (False, VERSION, SILENCE, True),
        (False, [], SILENCE, False),
        (True, VERSION, steps.send(CHUNK), False),
    ],
)
def test_a_stream_says_whether_it_may_be_asked_for_again(
    kind: type, repeatable: bool, version: Any, play: Step, safe: bool, server: MisbehavingServer
) -> None:
    """Retrying is safe if nothing was delivered and the server or the caller allows it."""
    for end in (steps.close(), steps.reset()):
        server.script(steps.event_stream(version), play, steps.sleep(0.1), end)
        with pytest.raises(errors.StreamInterruptedError) as caught:
            called(
                kind, server.url, lambda client: client.chat("x", stream=True),
                retry=Retry(0, repeatable=repeatable),
            )  # fmt: skip
        error = caught.value
        assert (error.retry_safe, error.chunks) == (safe, int(play is not SILENCE))
        assert pickle.loads(pickle.dumps(error)).retry_safe is safe


def test_a_reset_after_the_whole_request(server: MisbehavingServer) -> None:
    """The server may have processed the request, so only safe requests are retried (C48)."""
    with client_of(server) as client:
        for end in (steps.reset(), steps.close()):
            server.script(steps.read_body(), end)
            with pytest.raises(errors.ConnectionLostError):
                client.free_chat("x")
        assert len(server.requests) == 2
        server.script(steps.answer(200, b'{"response":"fine"}', VERSION))
        client.free_chat("x")
        server.script(steps.read_body(), steps.reset())
        server.script(FINE)
        assert client.free_chat("x").text == "fine"
        assert len(server.requests) == 5


def test_nobody_listens() -> None:
    """After the allowed tries, the error names the address (C05 and K15)."""
    with (
        refusing_port() as port,
        polymux.Client(f"http://127.0.0.1:{port}", KEY, retry=FAST) as client,
        pytest.raises(errors.ConnectError, match=str(port)) as caught,
    ):
        client.free_chat("x")
    assert caught.value.stage == "connect"
    assert caught.value.errno is not None


def test_a_server_that_comes_back() -> None:
    """The network is down for a while and the call succeeds (K15)."""
    retry = Retry(50, first_backoff_s=0.1, max_backoff_s=0.1)
    texts: list[str] = []
    with ExitStack() as down:
        # Reserved until the server starts, so that no other server answers there.
        port = down.enter_context(refusing_port())
        with polymux.Client(f"http://127.0.0.1:{port}", KEY, retry=retry) as client:
            caller = threading.Thread(target=lambda: texts.append(client.free_chat("x").text))
            caller.start()
            time.sleep(0.3)
            again = MisbehavingServer(port=port)
            again.script(FINE)
            down.close()
            with again:
                caller.join(10 * PATIENCE)
    assert texts == ["fine"]


def test_a_name_that_leads_nowhere() -> None:
    """The error names the host and is raised within 5 s (C06)."""
    with polymux.Client("http://nowhere.invalid", KEY, retry=0) as client:
        begun = time.monotonic()
        with pytest.raises((errors.ConnectError, errors.RequestTimeoutError)) as caught:
            client.free_chat("x")
        assert time.monotonic() - begun <= 20  # The connect timeout plus other work.
    if isinstance(caught.value, errors.ConnectError):
        assert caught.value.stage == "resolve"
