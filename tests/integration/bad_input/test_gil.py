"""Other Python threads continue during a conversion."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

# One thread counts. "kept" is the share of time in which it ran or waited for a core: in the
# remaining time it waited for the GIL. Other programs disturb single slices, but a held GIL
# disturbs all of them.
COUNTING = """
import json, os, sys, threading, time
import polymux

def schedule():
    ran, waited, _ = open(f"/proc/self/task/{threading.get_native_id()}/schedstat").read().split()
    return (int(ran) + int(waited)) / 1e9

def kept(slice_s=0.3):
    begun, before = time.monotonic(), schedule()
    while (now := time.monotonic()) - begun < slice_s:
        for _ in range(1000):
            pass
    return (schedule() - before) / (now - begun)

source = open(sys.argv[1], "rb")
thread = threading.Thread(target=polymux.convert_to_mp3, args=(source,), daemon=True)
thread.start()
time.sleep(0.3)
seen = []
while len(seen) < 15 and max(seen, default=0) < 0.95:
    seen.append(kept())
assert thread.is_alive(), "the conversion has ended"
print(json.dumps(seen), flush=True)
os._exit(0)
"""


def test_a_python_thread_keeps_its_speed(long_wave: Path) -> None:
    command = [sys.executable, "-c", COUNTING, long_wave]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    seen = json.loads(done.stdout)
    assert max(seen) >= 0.95, seen
