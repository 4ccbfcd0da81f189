"""`scripts/bench imports`: instructions until a client is usable, above those of a bare
interpreter."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.floors.programs import floor_server
from benchmarks.measure import BUILD, ROOT, Usage, first_line, run
from benchmarks.verdicts import Figure, Goal, plain

MILLIONS = Figure("instructions, M", plain("instructions", 1e-6))
WALL = Figure("wall under valgrind, s", plain("wall_s"), 2)
VALGRIND = ("valgrind", "--tool=callgrind", "--callgrind-out-file=/dev/null")
IMPORT, CLIENT, REQUEST = "import", "import and first client", "and its first request"
CHAT = "chat.completions.create(model='m', messages=[{'role': 'user', 'content': 'Hi'}])"

#: Contender to its import, its first client, and its first request to the server at `url`.
PROGRAMS = {
    OURS: (
        "import polymux",
        "client = polymux.Client(url, 'key', chat_model='m')",
        "client.chat('Hi')",
    ),
    "httpx": (
        "import httpx",
        "client = httpx.Client()",
        "client.post(url, json={'messages': []}).json()",
    ),
    "requests": (
        "import requests",
        "client = requests.Session()",
        "client.post(url, json={'messages': []}).json()",
    ),
    "httpx2": (
        "import httpx2",
        "client = httpx2.Client()",
        "client.post(url, json={'messages': []}).json()",
    ),
    "urllib3": (
        "import urllib3",
        "client = urllib3.PoolManager()",
        "client.request('POST', url, json={'messages': []}).json()",
    ),
    "pycurl": (
        "import pycurl",
        "client = pycurl.Curl()",
        "import io, json\n"
        "answer = io.BytesIO()\n"
        "client.setopt(client.URL, url)\n"
        "client.setopt(client.POSTFIELDS, json.dumps({'messages': []}).encode())\n"
        "client.setopt(client.WRITEDATA, answer)\n"
        "client.perform()\n"
        "json.loads(answer.getvalue())",
    ),
    "curl_cffi": (
        "from curl_cffi import requests",
        "client = requests.Session()",
        "client.post(url, json={'messages': []}).json()",
    ),
    "aiohttp": (
        "import asyncio, aiohttp",
        "async def main(ask):\n"
        "    async with aiohttp.ClientSession() as client:\n"
        "        if ask:\n"
        "            async with client.post(url, json={'messages': []}) as answer:\n"
        "                await answer.json()\n"
        "asyncio.run(main(False))",
        "asyncio.run(main(True))",
    ),
    "openai": ("import openai", "client = openai.OpenAI(base_url=url, api_key='key')",
               f"client.{CHAT}"),
    "groq": ("import groq", "client = groq.Groq(base_url=url, api_key='key')", f"client.{CHAT}"),
}  # fmt: skip


def instructions(usage: Usage, *, bare: int = 0) -> dict[str, Any]:
    """Return the instructions of the whole process, without those of a bare interpreter.

    Raises:
        SystemExit: valgrind did not count.
    """
    found = re.search(r"Collected : (\d+)", usage.stderr)
    if found is None:
        raise SystemExit(f"valgrind: {usage.error}")
    return {"instructions": int(found[1]) - bare, "wall_s": usage.wall_s, "count": 1}


#: Environment of every counted process. Byte code is cached from the first run on.
ENVIRONMENT = {
    "PYTHONPYCACHEPREFIX": str(BUILD / "byte-code"),
    "PYTHONDONTWRITEBYTECODE": "",
    "PYTHONHASHSEED": "0",
    "NO_PROXY": "*",
}


def installed() -> str:
    """Return the Python of an environment with polymux installed from a wheel, like the peers.

    The benchmarks run from an editable package, whose import hook costs more than importing
    polymux.

    Raises:
        subprocess.CalledProcessError: pip could not build the wheel; its output has the reason.
    """
    folder = BUILD.parent / "bench-imports-own-venv"
    python = str(folder / "bin" / "python")
    if not folder.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    with tempfile.TemporaryDirectory() as wheels:
        made = ["wheel", "--no-build-isolation", "--no-deps", "-w", wheels, str(ROOT)]
        subprocess.run([*pip, *made], check=True)
        (wheel,) = Path(wheels).iterdir()
        subprocess.run(
            [*pip, "--python", python, "install", "--no-deps", "--force-reinstall", str(wheel)],
            check=True,
        )
    return python


def bare_instructions(python: str) -> int:
    """Return the instructions of an interpreter that does nothing."""
    run([python, "-c", "pass"], env=ENVIRONMENT)
    usage = run([*VALGRIND, python, "-c", "pass"], env=ENVIRONMENT)
    count: int = instructions(usage)["instructions"]
    return count


def variant(name: str, python: str, lines: tuple[str, ...], bare: int, url: str) -> Variant:
    """Return a contender. It is run once before, to cache its byte code."""
    program = "\n".join((f"url = {url!r}", *lines))
    run([python, "-c", program], env=ENVIRONMENT)
    command = (*VALGRIND, python, "-c", program)
    return Variant(name, command, name == OURS, ENVIRONMENT, partial(instructions, bare=bare))


def cases(environment: Environment, url: str, names: list[str]) -> list[Case]:
    """Return three stages, each of which includes the earlier ones."""
    pythons = dict.fromkeys(names, environment.python) | {OURS: installed()}
    bare = {python: bare_instructions(python) for python in set(pythons.values())}
    found = []
    for depth, title in enumerate((IMPORT, CLIENT, REQUEST), start=1):
        variants = tuple(
            variant(name, python, PROGRAMS[name][:depth], bare[python], url)
            for name, python in pythons.items()
        )
        bound = {IMPORT: 5, CLIENT: 28}.get(title)
        goals = [] if bound is None else [
            Goal("millions of instructions", bound, figure=MILLIONS, at_most=True)
        ]  # fmt: skip
        found.append(Case(title, variants, (MILLIONS, WALL), tuple(goals)))
    return found


def main() -> None:
    """Measure. A few rounds are enough, because instruction counts hardly vary."""
    options = arguments("imports", __doc__)
    if shutil.which("valgrind") is None:
        raise SystemExit("valgrind is not installed: sudo apt-get install valgrind")
    environment = Environment("imports")
    if options.with_peers:
        environment.prepare()
    names = list(PROGRAMS) if options.with_peers else [OURS]
    with floor_server() as server:
        versions = environment.versions() if options.with_peers else {}
        versions["valgrind"] = first_line(["valgrind", "--version"])
        compete("imports", cases(environment, server.url, names), options, versions)


if __name__ == "__main__":
    main()
