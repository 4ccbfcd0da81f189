"""The HTTP/1.1 parser of the core, compared with h11 and httptools on generated connections."""

from __future__ import annotations

import random
from collections import Counter
from typing import TYPE_CHECKING

import pytest
from support.http1_parsers import (
    Message,
    Reading,
    read_natively,
    read_with_h11,
    read_with_httptools,
)
from support.native_build import http1_cases

if TYPE_CHECKING:
    from pathlib import Path

CASES = 6000
NAMES = [b"Accept", b"X_y", b"A", b"Digest", b"Connection", b"Expect", b"Upgrade", b"Host",
         b"Content-Length", b"Transfer-Encoding", b"Trailer"]  # fmt: skip
VALUES = [b"", b"x", b" a \t", b"close", b"keep-alive", b"100-continue", b"h2c", b"chunked",
          b"gzip", b"identity", b"h:80", b"5", b"0", b"05", b"+5", b"5, 5", b"\x80\xff",
          b"a,b"]  # fmt: skip
TARGETS = [b"/", b"/a?b=%20", b"*", b"http://h/x", b"h:80", b"/a#b", b"//x", b"/\\"]
#: Inserted anywhere.
PIECES = [b"\r", b"\n", b"\r\n", b"\0", b" ", b"\t", b":", b";", b",", b"\x7f", b"\x80", b"0", b"f",
          b"\r\n ", b"_", b"\x0b", b"=", b'"', b"Host: h\r\n", b"Content-Length: 3\r\n",
          b"Transfer-Encoding: chunked\r\n", b"0\r\n\r\n", b"HTTP/1.1", b"1.0"]  # fmt: skip

#: Parser and refusal: why polymux accepts what this parser refuses.
ACCEPTED = {
    # An empty line before a request (RFC 9112, section 2.2).
    ("h11", "no request line received"),
    # After an interim response: only the final response can end the connection.
    ("httptools", "Data after `Connection: close`"),
}


@pytest.fixture(scope="module")
def program() -> Path:
    return http1_cases()


def body(chance: random.Random) -> bytes:
    """The end of a head and a body."""
    content = chance.randbytes(chance.randrange(20))
    match chance.randrange(3):
        case 0:
            return b"\r\n"
        case 1:
            return b"Content-Length: %d\r\n\r\n%s" % (len(content), content)
    chunks = b""
    while content:
        size = chance.randrange(1, len(content) + 1)
        extension = chance.choice([b"", b"", b"", b";a", b";a=b", b';a="b c"'])
        chunks += b"%x%s\r\n%s\r\n" % (size, extension, content[:size])
        content = content[size:]
    trailers = b"".join(fields(chance, chance.choice([0, 0, 0, 1, 2])))
    return b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n" + trailers + b"\r\n"


def fields(chance: random.Random, count: int) -> list[bytes]:
    # Mostly harmless names: a connection with a wrong one ends early.
    names = NAMES if chance.random() < 0.1 else NAMES[:4]
    values = VALUES if chance.random() < 0.4 else VALUES[:3]
    return [chance.choice(names) + b": " + chance.choice(values) + b"\r\n" for _ in range(count)]


def message(chance: random.Random, kind: str) -> bytes:
    version = chance.choice([b"1.1"] * 5 + [b"1.0"])
    if kind == "request":
        target = TARGETS[0] if chance.random() < 0.95 else chance.choice(TARGETS)
        method = chance.choice([b"GET", b"POST", b"PUT", b"OPTIONS", b"HEAD", b"PATCH"])
        start = method + b" " + target + b" HTTP/" + version + b"\r\nHost: h\r\n"
    else:
        status = chance.choice(
            [b"200 OK", b"404 Not Found", b"100 Continue", b"204 ", b"304 x", b"500"]
        )
        start = b"HTTP/" + version + b" " + status + b"\r\n"
    return start + b"".join(fields(chance, chance.randrange(4))) + body(chance)


def mutated(chance: random.Random, case: bytes) -> bytes:
    at = chance.randrange(len(case))
    match chance.randrange(5):
        case 0:
            return case[:at] + chance.choice(PIECES) + case[at:]
        case 1:
            return case[:at] + chance.choice(PIECES) + case[at + 1 :]
        case 2:
            return case[:at] + case[at + chance.randrange(1, 4) :]
        case 3:
            return case[:at] + bytes([chance.randrange(256)]) + case[at + 1 :]
    lines = case.splitlines(keepends=True)
    lines.insert(chance.randrange(len(lines)), chance.choice(lines))
    return b"".join(lines)


def connections(kind: str) -> list[bytes]:
    """Valid connections, and those with one to three changes."""
    chance = random.Random(f"http1 {kind}")
    cases = []
    for number in range(CASES):
        case = b"".join(message(chance, kind) for _ in range(chance.randrange(1, 4)))
        for _ in range(number % 4):
            case = mutated(chance, case) or case
        cases.append(case)
    return cases


def lower(found: Message) -> Message:
    """In lower case what h11 changes: the name of the coding."""
    copy = Message(found.start, found.version, found.body, trailers=found.trailers)
    for name, value in found.fields:
        is_coding = name.lower() == b"transfer-encoding"
        copy.fields.append((name, value.lower() if is_coding else value))
    return copy


@pytest.mark.parametrize("kind", ["request", "response"])
@pytest.mark.parametrize("other", ["h11", "httptools"])
def test_agrees_with(program: Path, kind: str, other: str) -> None:
    """Each message that polymux accepts is read equally, or the difference has a known reason."""
    read = read_with_h11 if other == "h11" else read_with_httptools
    cases = connections(kind)
    outcomes: Counter[str] = Counter()
    unexplained: list[tuple[bytes, Reading, Reading]] = []
    for case, ours in zip(cases, read_natively(program, kind, cases), strict=True):
        theirs = read(kind, case)
        outcomes["refused" if ours.refusal else "accepted"] += 1
        shared = min(len(ours.messages), len(theirs.messages))
        same = [lower(one) for one in ours.messages[:shared]]
        agrees = same == [lower(one) for one in theirs.messages[:shared]]
        has_more = len(ours.messages) > shared
        if not agrees or (has_more and (other, theirs.refusal) not in ACCEPTED):
            unexplained.append((case, ours, theirs))
        outcomes["messages"] += shared
    assert not unexplained, unexplained[:3]
    # The cases test both sides.
    assert outcomes["accepted"] > CASES / 5
    assert outcomes["refused"] > CASES / 5
    assert outcomes["messages"] > CASES / 2
