"""How often a prediction is asked after: less and less, by a clock that a test keeps."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from polymux import errors
from polymux.service.errors import status_error
from polymux.upstreams.replicate import predictions


class Server:
    """Answers what it is told to, then that all is well."""

    name = "models"

    def __init__(self, *answers: Any) -> None:
        self._answers = list(answers)

    async def read(self, operation: str, path: str) -> dict[str, Any]:
        assert (operation, path) == ("generate_image", "/predictions/abc")
        answer = self._answers.pop(0)
        if isinstance(answer, Exception):
            raise answer
        found: dict[str, Any] = answer
        return found


def paused(monkeypatch: pytest.MonkeyPatch, *answers: Any) -> list[float]:
    """The seconds between the questions."""
    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    class Told:
        def is_end(self, value: dict[str, Any]) -> bool:
            return bool(value["status"] == "succeeded")

    monkeypatch.setattr(predictions, "asyncio", SimpleNamespace(sleep=sleep))
    began = {"status": "starting"}
    server: Any = Server(*answers)
    told: Any = Told()
    asked = predictions._ended(server, "generate_image", "abc", began, told)
    assert asyncio.run(asked) == {"status": "succeeded"}
    return pauses


WORKING, DONE = {"status": "processing"}, {"status": "succeeded"}


def test_pauses_grow_to_their_longest(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses = paused(monkeypatch, *[WORKING] * 20, DONE)
    assert pauses[:4] == [0.25, 0.375, 0.5625, 0.84375]
    assert all(later == min(5.0, one * 1.5) for one, later in pairwise(pauses))
    assert pauses[-1] == 5.0
    assert len(pauses) == 21


def test_a_server_that_asks_for_patience_gets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the pause that comes anyway; and as often as it likes."""
    busy = status_error(errors.RateLimitError, "too many", retry_after_s=7)
    pauses = paused(monkeypatch, *[busy] * 10, DONE)
    assert pauses[:4] == [0.25, 7.0, 0.375, 7.0]
    assert pauses.count(7.0) == 10


def test_failures_in_a_row_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    broken = status_error(errors.InternalServerError, "no answer", status=502)
    seven = [broken] * 7
    assert len(paused(monkeypatch, *seven, WORKING, *seven, DONE)) == 16
    with pytest.raises(errors.InternalServerError, match="no answer"):
        paused(monkeypatch, *[broken] * 8)
