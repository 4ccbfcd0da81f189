"""Whose turn it is in an engine's process: it takes up as much as it has slots, as it comes."""

from __future__ import annotations

from itertools import islice


class Turns:
    """The work that has not ended in one process, by number, in the order in which it came."""

    def __init__(self) -> None:
        """There is none."""
        self._outstanding: dict[int, None] = {}
        self._leaving: set[int] = set()

    def add(self, number: int) -> None:
        """This has come."""
        self._outstanding[number] = None

    def leave(self, number: int) -> None:
        """Nobody waits for its end any more, but for it to stop."""
        if number in self._outstanding:
            self._leaving.add(number)

    def end(self, number: int) -> None:
        """It has ended, or is given up."""
        self._outstanding.pop(number, None)
        self._leaving.discard(number)

    def begun(self, slots: int) -> list[int]:
        """What was taken up; the rest waits in the process."""
        return list(islice(self._outstanding, slots))

    def wanted(self, slots: int) -> int:
        """How much of that somebody waits for."""
        return sum(one not in self._leaving for one in self.begun(slots))
