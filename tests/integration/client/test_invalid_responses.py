"""Invalid and oversized responses (K14 in docs/development/testing.md)."""

from __future__ import annotations

import gzip
import json
from typing import TYPE_CHECKING

import polymux
import pytest
from polymux import errors
from servers import steps
from support.client_calls import FINE
from support.client_children import KEY, MIB, run_json
from support.hostile_check import SANITIZED

if TYPE_CHECKING:
    from servers.misbehaving import MisbehavingServer
    from servers.steps import Step


def asking(client: polymux.Client) -> str:
    return client.free_chat("hello").text


def refused(
    client: polymux.Client, server: MisbehavingServer, kind: type[polymux.PolymuxError], *play: Step
) -> polymux.PolymuxError:
    """Return the error that the response raises, and check that the next request succeeds."""
    server.script(*play)
    with pytest.raises(kind) as caught:
        asking(client)
    assert type(caught.value) is kind
    assert KEY not in str(caught.value)
    server.script(FINE)
    assert asking(client) == "fine"
    assert len(str(caught.value)) <= 2048
    return caught.value


def lost(client: polymux.Client, server: MisbehavingServer, *play: Step) -> None:
    """Like `refused`, for faults that look like either a lost connection or an invalid response."""
    server.script(*play)
    with pytest.raises((errors.DecodeError, errors.ConnectionLostError)):
        asking(client)
    server.script(FINE)
    assert asking(client) == "fine"


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "body",
    [
        {"error": "it broke"},
        {"error": {"message": "it broke"}},
        [{"error": {"code": 500, "message": "it broke"}}],
        {"error": True, "message": "it broke"},
        {"type": "error", "error": {"type": "api_error", "message": "it broke"}},
        {"code": 500, "message": "it broke"},
        {"detail": "it broke"},
        {"detail": [{"loc": ["body"], "msg": "it broke"}]},
        {"detail": {"error": {"message": "it broke"}}},
        {"errors": [{"message": "it broke"}], "success": False},
    ],
)
def test_errors_of_other_servers(
    body: object, status: int, client: polymux.Client, server: MisbehavingServer
) -> None:
    """The message is found in all forms, also with a successful status."""
    kind = errors.APIError if status == 200 else errors.InternalServerError
    error = refused(client, server, kind, steps.answer(status, json.dumps(body).encode()))
    assert str(error) == "it broke"


@pytest.mark.parametrize("more", [b"junk", bytes(8), gzip.compress(b"x", mtime=0)])
def test_bytes_after_a_compressed_body(
    more: bytes, client: polymux.Client, server: MisbehavingServer
) -> None:
    """They are ignored, as by other clients."""
    body = gzip.compress(b'{"response":"fine"}') + more
    server.script(steps.answer(200, body, [("Content-Encoding", "gzip")]))
    assert asking(client) == "fine"


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    "data",
    [b"SSH-2.0-OpenSSH_9.2\r\n", bytes(100_000), b"HTTP", b"HTTP/9.9 200 OK\r\n\r\n{}",
     OK + b"Content-Length: abc\r\n\r\n{}",
     OK + b'Content-Length: 99999999999999999999\r\n\r\n{"response":"fine"}',
     OK + b'Content-Length: 20\r\nContent-Length: 19\r\n\r\n{"response":"fine"} ',
     OK + b'content-length: 19\r\nContent-Length: 20\r\n\r\n{"response":"fine"} '],
)  # fmt: skip
def test_what_is_no_http(data: bytes, server: MisbehavingServer, client: polymux.Client) -> None:
    """Bytes that are not HTTP, and invalid HTTP (K14)."""
    lost(client, server, steps.send(data), steps.close())


def test_an_answer_cut_in_its_body(server: MisbehavingServer, client: polymux.Client) -> None:
    """Closed after 500 of 1000 bytes (Content-Length): no partial result (K14 and C09)."""
    play = steps.wrong_content_length(1000, b"[" * 500)
    error = refused(client, server, errors.ConnectionLostError, play, steps.close())
    assert "500 bytes" in str(error)
    refused(client, server, errors.ConnectionLostError, play, steps.reset())


def test_an_answer_longer_than_it_says(server: MisbehavingServer, client: polymux.Client) -> None:
    """Bytes after the declared length belong neither to this response nor to the next one (K14)."""
    server.script(
        steps.wrong_content_length(2, b'{}{"response":"smuggled"}'), steps.send(b"HTTP/1.1 200 OK")
    )
    with pytest.raises(errors.DecodeError, match="response"):
        asking(client)
    server.script(FINE)
    assert asking(client) == "fine"


@pytest.mark.parametrize(
    "rest",
    [b"zz\r\n{}\r\n0\r\n\r\n", b"ffffffffffffffffff\r\n{}", b"-2\r\n{}\r\n", b"5\r\n{}"],
)
def test_broken_chunks(rest: bytes, server: MisbehavingServer, client: polymux.Client) -> None:
    """HTTP chunks with wrong sizes or a missing end (K14)."""
    lost(client, server, steps.chunked_head(), steps.send(rest), steps.close())


@pytest.mark.parametrize(
    ("body", "says"),
    [
        (b"", "empty"), (b"null", "null"), (b"<html><body>502</body></html>", "<html>"),
        (b'{"respon', "JSON"), (b"[]", "object"),
        (b'{"response":5}', "response"), (b'{"other":"x"}', "response"),
        (b'{"response":"\xff\xfe"}', "UTF-8"), (b'{"response":"x"}garbage', "JSON"),
        (b"[" * 100_000, "JSON"), (b"NaN", "JSON"),
    ],
)  # fmt: skip
def test_bodies_that_are_no_result(
    body: bytes, says: str, server: MisbehavingServer, client: polymux.Client
) -> None:
    """200 with HTML, an empty body, null, truncated JSON or invalid members (K14, C10 and C11)."""
    error = refused(client, server, errors.DecodeError, steps.answer(200, body))
    assert says.lower() in str(error).lower()


@pytest.mark.parametrize(
    ("status", "kind"),
    [(400, errors.BadRequestError), (401, errors.AuthenticationError),
     (403, errors.PermissionDeniedError), (404, errors.NotFoundError),
     (418, errors.APIStatusError), (500, errors.InternalServerError),
     (599, errors.InternalServerError)],
)  # fmt: skip
def test_statuses_with_bodies_of_all_kinds(
    status: int,
    kind: type[errors.APIStatusError],
    server: MisbehavingServer,
    client: polymux.Client,
) -> None:
    """The error contains the server's message, if any, and always the status (C01 and K14)."""
    for body in (b"", b"<html>no</html>", b"null", b'{"error":{"message":"why so"}}', b"\xff"):
        error = refused(client, server, kind, steps.answer(status, body))
        assert isinstance(error, errors.APIStatusError)
        assert error.status == status
        assert (str(error) == "why so") == (b"why so" in body)


def test_informational_answers(server: MisbehavingServer, client: polymux.Client) -> None:
    """100, 102 and 103 before the response, and a thousand of them (C18)."""
    server.script(
        steps.informational(100), steps.informational(103, [("Link", "</a>")]),
        steps.informational(102), FINE,
    )  # fmt: skip
    assert asking(client) == "fine"
    server.script(steps.send(b"HTTP/1.1 103 Early\r\nLink: </a>\r\n\r\n" * 1000), FINE)
    assert asking(client) == "fine"


def test_too_many_header_fields(server: MisbehavingServer, client: polymux.Client) -> None:
    """Cases K14 and C16."""
    refused(client, server, errors.AnswerTooLargeError, steps.many_headers())


def test_a_huge_header_field(server: MisbehavingServer, client: polymux.Client) -> None:
    """A header field of 1 MiB raises an error and does not use up memory (K14 and C16)."""
    refused(client, server, errors.AnswerTooLargeError, steps.huge_header(1 << 20), steps.close())


def test_endless_header_fields(server: MisbehavingServer, client: polymux.Client) -> None:
    """Headers that never end (K14)."""
    play = (steps.send(b"HTTP/1.1 200 OK\r\n"), steps.repeat_forever(b"X-Filler: yes\r\n"))
    refused(client, server, errors.AnswerTooLargeError, *play)


def test_an_endless_error(server: MisbehavingServer, client: polymux.Client) -> None:
    """A 500 with an endless body: the error has the status and reading stops (K14)."""
    server.script(
        steps.head(500, [("Content-Type", "text/plain")]), steps.repeat_forever(b"nothing works ")
    )
    with pytest.raises(errors.InternalServerError, match="nothing works") as caught:
        asking(client)
    assert caught.value.status == 500
    server.wait_closed(server.requests[-1].connection)


def test_encodings_in_a_chain(server: MisbehavingServer, client: polymux.Client) -> None:
    """Twenty content encodings, and unknown ones (C12)."""
    refused(client, server, errors.DecodeError, steps.gzip_bomb(1 << 20, layers=20))
    unknown = steps.answer(200, b"{}", [("Content-Encoding", "rot13")])
    refused(client, server, errors.DecodeError, unknown, steps.close())
    broken = steps.answer(200, b"no gzip at all", [("Content-Encoding", "gzip")])
    refused(client, server, errors.DecodeError, broken, steps.close())


CHOICE = b'{"index": 0, "message": {"role": "assistant", "content": "x"}, "finish_reason": "stop"},'
ENDLESS_FIELDS = steps.repeat_forever(b"X-Filler: %b\r\n" % (b"x" * 1000))
MEASURED = """
client = polymux.Client(url, key, retry=0, timeout=60)
client.free_chat("hello")
before = status("VmHWM") * 1024
try:
    client.free_chat("hello")
except polymux.PolymuxError as error:
    kind = type(error).__name__
say(json.dumps([kind, status("VmHWM") * 1024 - before, client.free_chat("hello").text]))
"""


@pytest.mark.parametrize(
    ("name", "play"),
    [
        ("endless", [steps.head(200), steps.repeat_forever(b" ")]),
        ("choices", [steps.head(200), steps.send(b'{"choices": ['), steps.repeat_forever(CHOICE)]),
        ("trailers", [steps.chunked_head(), steps.send(b"0\r\n"), ENDLESS_FIELDS]),
        ("gzip bomb twice packed", [steps.gzip_bomb(1 << 30, layers=2)]),
    ],
)
def test_memory_under_answers_without_end(
    name: str, play: list[Step], server: MisbehavingServer
) -> None:
    """The client rejects endless responses with at most 64 MiB more memory and remains usable (K14,
    C11, C12 and C13).

    The limit includes pages that the interpreter and its allocator use meanwhile.
    """
    for one in ([FINE], play, [FINE]):
        server.script(*one)
    kind, growth, text = run_json(MEASURED, server.url)
    assert kind in ("AnswerTooLargeError", "DecodeError"), name
    assert text == "fine"
    assert SANITIZED or growth <= 65 * MIB, f"{growth / MIB:.1f} MiB"
    assert not server.unscripted
