"""`math.inf` is no limit where libcurl has one of its own, which comes after minutes (C07)."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING

from servers.listeners import full_port
from support.client_children import finish, start
from support.preloads import compiled, preloaded

if TYPE_CHECKING:
    from pathlib import Path

#: Lets the clock of deadlines run five hundred times as fast.
HASTY = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *time) {
    static int (*real)(clockid_t, struct timespec *);
    static __int128 begun;
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, time);
    if (clock != CLOCK_MONOTONIC) return result;
    __int128 now = time->tv_sec * (__int128)1000000000 + time->tv_nsec;
    if (!begun) begun = now;
    now = begun + (now - begun) * 500;
    time->tv_sec = now / 1000000000;
    time->tv_nsec = now % 1000000000;
    return result;
}
"""


CODE = """
limits = polymux.Timeout(1000, connect=float(sys.argv[2]))
client = polymux.Client(url, key, retry=0, timeout=limits)
begun = time.monotonic()
try:
    client.free_chat("x")
except polymux.RequestTimeoutError as error:
    say(json.dumps([error.limit, time.monotonic() - begun]))
"""


def test_connecting_without_a_limit(tmp_path: Path) -> None:
    """A port that never answers is waited for until `total`, 1,000 s of that clock, not 300 s;
    nor is a limit beyond 32 bits of milliseconds cut."""
    library = preloaded(compiled(HASTY, tmp_path, "hasty"))
    with full_port() as port:
        url = f"http://127.0.0.1:{port}"
        limits = (math.inf, (2**32 + 50) / 1000)
        children = [start(CODE, url, one, environment=library) for one in limits]
        for child in children:
            limit, taken = json.loads(finish(child))
            assert (limit, taken >= 990) == ("total", True), taken
