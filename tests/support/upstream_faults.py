"""Faults of upstreams, and the errors that clients get for them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from servers import steps

if TYPE_CHECKING:
    from servers.steps import Step

    Fault = tuple[list[Step], tuple[int, str]]

FAILED, LATE = (502, "upstream_failed"), (504, "upstream_timeout")
#: Time limits of an upstream.
LIMITS: dict[str, float] = {"connect_s": 1, "first_byte_s": 1, "idle_s": 1, "total_s": 4}

#: Faults before the first byte of an answer.
NO_ANSWER: dict[str, Fault] = {
    "redirect": ([steps.redirect(307, "http://127.0.0.1:1/")], FAILED),
    "closed": ([steps.close()], FAILED),
    "reset": ([steps.reset()], FAILED),
    "half a head": ([steps.send(b"HTTP/1.1 200 OK\r\nConte"), steps.close()], FAILED),
    "no HTTP": ([steps.send(b"SSH-2.0-OpenSSH\r\n\r\n"), steps.close()], FAILED),
    "silent": ([steps.stall()], LATE),
    "many fields": ([steps.many_headers()], FAILED),
    "huge field": ([steps.huge_header()], FAILED),
}


def broken(good: bytes, content_type: str = "application/json") -> dict[str, Fault]:
    """Faulty answers: a truncated one, and wrong ones."""
    more = steps.wrong_content_length(len(good) + 1, good)
    begun = [steps.chunked_head(200, content_type), steps.chunk(good)]
    return {
        "shorter": ([more, steps.close()], FAILED),
        "reset within": ([more, steps.reset()], FAILED),
        "stalled": ([more, steps.stall()], LATE),
        "chunks cut": ([*begun, steps.close()], FAILED),
        "page": ([steps.answer(200, b"<html>", content_type=content_type)], FAILED),
        "empty": ([steps.answer(200, b"", content_type=content_type)], FAILED),
        "bomb": ([steps.gzip_bomb()], FAILED),
        "endless": (
            [steps.chunked_head(), steps.repeat_forever(b"1000\r\n" + b"x" * 4096 + b"\r\n")],
            FAILED,
        ),
    }


def of(faults: dict[str, Fault], *names: str) -> dict[str, Fault]:
    return {name: faults[name] for name in names}
