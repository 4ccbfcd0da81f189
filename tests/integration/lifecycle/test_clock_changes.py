"""The system clock changes while a server runs and between two servers (D10)."""

from __future__ import annotations

import mmap
import re
import struct
import time
from datetime import datetime
from typing import TYPE_CHECKING, Any

import pytest
from support.kill_rounds import JOBS, path_of, sound
from support.preloads import compiled, preloaded

if TYPE_CHECKING:
    from pathlib import Path

    from support.serve_command import ServeCommand

YEAR_S = 365 * 86400
#: Shifts only the wall clock, by the seconds in the file MOVED_BY.
MOVED = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
static int64_t moved(void) {
    static const volatile int64_t* seconds;
    if (!seconds) {
        const char* path = getenv("MOVED_BY");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        if (file < 0) return 0;
        void* found = mmap(0, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0);
        if (found == MAP_FAILED) return 0;
        seconds = found;
    }
    return *seconds;
}
int clock_gettime(clockid_t clock, struct timespec* now) {
    static int (*real)(clockid_t, struct timespec*);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, now);
    if (!result && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec += moved();
    return result;
}
int gettimeofday(struct timeval* restrict now, void* restrict zone) {
    static int (*real)(struct timeval*, void*);
    if (!real) *(void**)&real = dlsym(RTLD_NEXT, "gettimeofday");
    int result = real(now, zone);
    if (!result) now->tv_sec += moved();
    return result;
}
time_t time(time_t* now) {
    struct timespec found;
    clock_gettime(CLOCK_REALTIME, &found);
    if (now) *now = found.tv_sec;
    return found.tv_sec;
}
"""


class TimeOfDay:
    """The wall clock of a server that is started with `start`."""

    def __init__(self, program: ServeCommand, folder: Path) -> None:
        self.program = program
        self.moved_s = 0
        self._library = compiled(MOVED, folder, "moved")
        self._path = folder / "moved"
        self._path.write_bytes(bytes(8))
        with self._path.open("r+b") as file:
            self._seconds = mmap.mmap(file.fileno(), 8)

    def move(self, seconds: int) -> None:
        self.moved_s += seconds
        self._seconds[:] = struct.pack("=q", self.moved_s)

    def now(self) -> float:
        return time.time() + self.moved_s

    def start(self) -> None:
        own = preloaded(self._library) | {"MOVED_BY": str(self._path)}
        self.program.start(environment=self.program.environment | own)

    def start_again(self) -> None:
        assert self.program.stop() == 0, self.program.log_text
        self.start()


@pytest.fixture
def clock(program: ServeCommand, tmp_path_factory: pytest.TempPathFactory) -> TimeOfDay:
    made = TimeOfDay(program, tmp_path_factory.mktemp("clock"))
    made.start()
    return made


def job(program: ServeCommand, name: str) -> dict[str, Any]:
    answer = program.request("GET", f"{JOBS}/{name}")
    assert answer.status == 200, answer.body
    found: dict[str, Any] = answer.json()
    assert found["status"] == "succeeded"
    return found


def moments(found: dict[str, Any]) -> list[float]:
    names = ("created_at", "started_at", "completed_at")
    return [datetime.fromisoformat(found[one]).timestamp() for one in names]


def check_is_fresh(clock: TimeOfDay, name: str) -> None:
    """Check that the job and its file exist and have the right age by today's clock."""
    program = clock.program
    found = job(program, name)
    before = clock.now()
    created, started, completed = moments(found)
    assert before - 300 < created <= started <= completed <= before
    assert program.request("GET", path_of(found["output"])).body[:1] == b"\xff"


def test_the_clock_is_set_and_set_right_again(program: ServeCommand, clock: TimeOfDay) -> None:
    asked = program.convert(sound(0.2, 1))
    assert asked.status == 200, asked.body
    link = path_of(asked.json()["response"])
    (first,) = program.request("GET", JOBS).json()["results"]
    check_is_fresh(clock, first["id"])

    clock.move(YEAR_S)  # While it runs, nothing expires and new jobs sort after older ones.
    assert program.request("GET", link).status == 200
    assert program.convert(sound(0.2, 2)).status == 200
    second, again = program.request("GET", JOBS).json()["results"]
    assert again == first
    assert 0 <= moments(second)[0] - moments(first)[0] < 300

    # After a restart it uses the new clock and the jobs have the same age as before.
    clock.start_again()
    check_is_fresh(clock, first["id"])
    check_is_fresh(clock, second["id"])

    assert program.stop() == 0
    clock.move(-YEAR_S)  # While no server runs.
    clock.start()
    check_is_fresh(clock, first["id"])
    check_is_fresh(clock, second["id"])
    assert program.request("GET", link).status == 200
    assert program.stop() == 0
    lines = [one for one in program.log if re.search(r"WARNING polymux\.service: .*\d{8} s", one)]
    assert len(lines) == 2, program.log_text
