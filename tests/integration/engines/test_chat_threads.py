"""The number of threads of a chat beside other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from contextlib import ExitStack
from typing import TYPE_CHECKING

from support.chat_model import model_path

if TYPE_CHECKING:
    from pathlib import Path

_CHAT = """
import json, os, sys
from pathlib import Path
from polymux.engines.base import Request, Token
from polymux.engines.chat.engine import ChatEngine
from support.sinks import HeardSink

def seconds():
    found = {}
    for task in Path("/proc/self/task").iterdir():
        fields = (task / "stat").read_text().rpartition(")")[2].split()
        found[task.name] = (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    return found

engine = ChatEngine()
engine.load({"model": sys.argv[1]})
values = {"model": "default", "messages": [{"role": "user", "content": "Tell me a story."}],
          "max_completion_tokens": 48, "temperature": 0.0}
for _ in range(2):
    before = seconds()
    engine.run(Request("chat", "", "", values, frozenset(values)), HeardSink(Path(sys.argv[2])),
               Token())
spent = [after - before.get(thread, 0) for thread, after in seconds().items()]
print(json.dumps(sorted(spent)), flush=True)
os._exit(0)
"""


def test_threads_do_not_wait_for_a_busy_processor(tmp_path: Path) -> None:
    """A thread that shares its processor would hold up all others at each step."""
    threads = str(len(os.sched_getaffinity(0)))
    environment = os.environ | {
        "POLYMUX_THREADS": threads, "OMP_NUM_THREADS": threads,
        "PYTHONPATH": os.pathsep.join(sys.path),
    }  # fmt: skip
    with ExitStack() as stack:
        for _ in range(int(threads)):
            process = subprocess.Popen([sys.executable, "-c", "while True: pass"])
            stack.callback(process.wait)
            stack.callback(process.kill)
        done = subprocess.run(
            [sys.executable, "-c", _CHAT, str(model_path()), str(tmp_path)], env=environment,
            check=True, capture_output=True, text=True, timeout=300,
        )  # fmt: skip
    *others, most = json.loads(done.stdout.splitlines()[-1])
    assert most > 0.2
    assert all(one < most / 2 for one in others)
