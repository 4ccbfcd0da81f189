"""extras_check.py EXTRA FOLDER: checks an installed extra. Run by scripts/check-extras.

The Python of an environment that has only this extra runs it. FOLDER contains media and weights.
"""

import asyncio
import contextlib
import io
import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

import polymux
from polymux.fetch.fetcher import FetchPolicy
from polymux.runtime.settings import EngineSettings

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = [sys.executable, "-I", "-m", "polymux"]
SIGN = ["harbour", "office", "1893", "boats", "leave", "at", "nine"]
TRACE = "0af7651916cd43dd8448eb211c80319c"
_STREAM = b"""data: {"choices": [{"index": 0, "delta": {"content": "A beam."}}]}

data: {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}

data: [DONE]

"""


def main() -> None:
    extra, folder = sys.argv[1], Path(sys.argv[2])
    assert Path(polymux.__file__).is_relative_to(folder / "venv"), polymux.__file__
    sys.path += [str(ROOT / "tests"), str(folder / "weights")]
    names = sorted(_extras_of_all()) if extra == "all" else [extra]
    for name in names:
        _import_packages(name)
    lines = _run("doctor").splitlines()
    for name in names:
        # It names an extra only to say how to install it.
        missing = [line for line in lines if f"polymux[{name}]" in line]
        assert not missing, missing
    for name in names:
        began = time.monotonic()
        found = CALLS[name](folder)
        print(f"   {name} ({time.monotonic() - began:.1f} s): {found}", flush=True)


def _requirements(extra: str) -> list[str]:
    """The requirements of an extra, such as ``numpy>=2``."""
    lines = metadata.requires("polymux") or []
    mark = re.compile(rf"""extra == ['"]{extra}['"]""")
    return [line.partition(";")[0].strip() for line in lines if mark.search(line)]


def _extras_of_all() -> set[str]:
    words = " ".join(_requirements("all"))
    return {
        name for found in re.findall(r"polymux\[([\w,]+)\]", words) for name in found.split(",")
    }


def _import_packages(extra: str) -> None:
    """Import every package that the extra names."""
    modules = metadata.packages_distributions()
    for requirement in _requirements(extra):
        found = re.match(r"[\w.-]+", requirement)
        assert found is not None, requirement
        name = re.sub(r"[-_.]+", "-", found[0]).lower()
        own = [
            module
            for module, packages in modules.items()
            if name in {re.sub(r"[-_.]+", "-", one).lower() for one in packages}
            and module.isidentifier()
        ]
        assert own, f"{requirement} is not installed"
        for module in own:
            # In a separate process, because modules such as torch change the process.
            subprocess.run([sys.executable, "-I", "-c", f"import {module}"], check=True)


def _run(*words: str | Path, given: str | None = None) -> str:
    done = subprocess.run(
        [*PROGRAM, *words], input=given, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{words} returned {done.returncode}:\n{done.stdout}{done.stderr}"
    return done.stdout


def _words(text: str) -> list[str]:
    return re.findall(r"[a-z0-9]+", text.lower())


@contextlib.contextmanager
def _local(family: str, options: dict[str, Any], **others: Any) -> "Iterator[polymux.Local]":
    """A `Local` with one engine, which reads media too."""
    engines = {"media": EngineSettings("media"), family: EngineSettings(family, options)}
    with polymux.Local(engines=engines, **others) as local:
        yield local


def _read_sign(engine: str, folder: Path) -> str:
    with _local(engine, {}) as local:
        text = local.read_text(folder / "media/sign.png").text
    assert _words(text) == SIGN, text
    return f"{engine} reads {text!r}"


def batch(folder: Path) -> str:
    from pyarrow import parquet

    report = Path("report.parquet").absolute()
    done = polymux.batch(
        "convert_to_mp3", folder / "media/music", output_dir="batch", report=report
    )
    rows = parquet.read_table(report).to_pylist()
    assert {row["state"] for row in rows} == {"done"}, rows
    assert len(rows) == done.total == 4, rows
    return f"a Parquet report with {len(rows)} rows"


def chat(_: Path) -> str:
    from support.chat_model import model_path

    with _local("chat", {"model": str(model_path())}) as local:
        answer = local.chat("Name three boats.", temperature=0, max_completion_tokens=20)
        text = answer.choices[0].message.content or ""
        # Tools are checked with a JSON schema.
        schema = {
            "type": "object",
            "properties": {"boat": {"type": "string"}},
            "required": ["boat"],
        }
        form = {"type": "json_schema", "json_schema": {"name": "boat", "schema": schema}}
        shaped = local.chat("Name a boat.", response_format=form, max_completion_tokens=60)
    assert text.strip(), "the answer is empty"
    assert isinstance(json.loads(shaped.choices[0].message.content or "")["boat"], str)
    return " ".join(text.split())


def completion(_: Path) -> str:
    script = _run("completion", "bash")
    shell = "source /dev/stdin && complete -p polymux"
    done = subprocess.run(
        ["bash", "-c", shell], input=script, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def diffusion(_: Path) -> str:
    options = {"models": {"picture:B": str(ROOT / "models/pictures-mini")}}
    with _local("diffusion", options) as local:
        done = local.generate_image("a green star", width=64, height=64, num_inference_steps=5)
        return f"an image of {len(done.images[0].read()):,} bytes"


def download(folder: Path) -> str:
    from support.video_site import Site

    with Site(folder / "media/site").server() as site:
        policy = FetchPolicy(allowed_hosts=(site.authority,))
        with polymux.Local(fetch=policy) as local:
            video = local.download_video(site.url("/silent/talk.mp4")).save("page.mp4")
    kinds = sorted(stream.type for stream in polymux.probe(video).streams)
    assert kinds == ["audio", "video"], kinds
    return f"a video of {video.stat().st_size:,} bytes from a page"


def images(folder: Path) -> str:
    return _read_sign("tesseract", folder)


def mcp(_: Path) -> str:
    """Speak the protocol's lines: JSON-RPC over standard input and output."""
    about = {"protocolVersion": "2025-06-18", "capabilities": {},
             "clientInfo": {"name": "check", "version": "1"}}  # fmt: skip
    asked: list[dict[str, Any]] = [
        {"id": 1, "method": "initialize", "params": about},
        {"method": "notifications/initialized"},
        {"id": 2, "method": "tools/list"},
    ]
    with subprocess.Popen(
        [*PROGRAM, "mcp"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for one in asked:
            print(json.dumps({"jsonrpc": "2.0", **one}), file=process.stdin, flush=True)
        # The end of standard input ends the server, so it stays open until the answer is there.
        answers = (json.loads(line) for line in process.stdout)
        tools = next(one["result"]["tools"] for one in answers if one.get("id") == 2)
        process.stdin.close()
    assert tools
    return f"{len(tools)} tools, such as {tools[0]['name']}"


def notebook(folder: Path) -> str:
    from IPython.core.interactiveshell import InteractiveShell
    from support.http_server import Exchange, Server

    async def answer(exchange: Exchange) -> None:
        await exchange.answer(200, _STREAM, "Content-Type: text/event-stream")

    shell = InteractiveShell()
    shell.run_line_magic("load_ext", "polymux.notebook")
    source = folder / "media/dictation.wav"
    cell = (
        "import polymux\nfrom polymux.notebook import progress\n"
        f"song = polymux.convert_to_mp3({str(source)!r}, on_progress=progress('converting'))"
    )
    assert shell.run_cell(cell).success
    os.environ["POLYMUX_API_KEY"] = "key"
    shown = io.StringIO()
    with Server(answer) as site, contextlib.redirect_stdout(shown):
        shell.run_cell_magic("polymux", f"--server {site.url('')}", "What is a keel?")
    assert shown.getvalue() == "A beam.\n", shown.getvalue()
    return "a bar showed a conversion, and %%polymux an answer"


def ocr(folder: Path) -> str:
    return _read_sign("rapidocr", folder)


def ray(folder: Path) -> str:
    from support.ray_cluster import own_network

    with own_network():  # Otherwise, Ray listens on the address of this machine.
        done = polymux.batch(
            "convert_to_mp3", folder / "media/music", output_dir="ray", ray="local"
        )
    assert (done.total, done.done) == (4, 4), done
    return f"{done.done} files converted by a cluster on this machine"


def server(folder: Path) -> str:
    words = [*PROGRAM, "serve", "--port", "0"]
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True) as process:
        try:
            url = _address(process)
            key = next(Path.home().rglob("local-key")).read_text().split()[0]
            with polymux.Client(url, key) as client:
                song = client.convert_to_mp3(folder / "media/dictation.wav").save("served.mp3")
        finally:
            process.terminate()
    return f"an MP3 of {song.stat().st_size:,} bytes from {url}"


def _address(process: "subprocess.Popen[str]") -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://127\.0\.0\.1:\d+", line):
            return found[0]
    raise AssertionError("the server ended")


def songs(folder: Path) -> str:
    import apsw

    with polymux.SongIndex("songs") as index:
        index.add(folder / "media/music")
        match = index.identify(folder / "media/snippet.wav")
    assert match is not None
    assert match.song.title == "Harbour Lights", match
    with contextlib.closing(apsw.Connection("songs/songs.sqlite3")) as database:
        mode = database.pragma("journal_mode")
    assert mode == "wal", mode  # Only apsw creates it.
    return f"identified {match.song.title}, with SQLite {apsw.sqlite_lib_version()}"


def speech(folder: Path) -> str:
    from support import weights

    with _local("speech", {"model": str(weights.whisper(folder / "joined"))}) as local:
        text = local.transcribe(folder / "media/dictation.wav", language="en").text
    assert "train" in _words(text), text
    return text.strip()


def telemetry(_: Path) -> str:
    """Requests continue the trace of their client, which an SDK exports."""
    from opentelemetry import trace
    from polymux.server.observability.tracing import tracing

    seen: list[int] = []

    async def application(*_: object) -> None:
        seen.append(trace.get_current_span().get_span_context().trace_id)

    made = tracing([])
    assert made is not None
    header = (b"traceparent", f"00-{TRACE}-b7ad6b7169203331-01".encode())
    scope = {"type": "http", "method": "GET", "path": "/", "headers": [header]}
    asyncio.run(made(application, scope, None, None))
    assert seen == [int(TRACE, 16)], seen
    return "a request continues its client's trace"


def upscale(folder: Path) -> str:
    from PIL import Image
    from support import weights

    with _local("upscale", {"model": str(weights.upscaler())}) as local:
        done = local.upscale_image(folder / "media/drawing.png", scale=2)
        large = done.images[0].save("large.png")
    with Image.open(large) as image:
        assert image.size == (320, 240), image.size
        return "an image of {} x {} pixels".format(*image.size)


def sdcpp(folder: Path) -> str:
    from PIL import Image
    from support import sdcpp_models

    model = sdcpp_models.write(folder / "random")
    with _local("sdcpp", {"models": {"picture:A": str(model)}}) as local:
        made = local.generate_image("a house", width=256, height=256, num_inference_steps=1)
        made.images[0].save("house.png")
    with Image.open("house.png") as image:
        return "an image of {} x {} pixels of random weights".format(*image.size)


CALLS: dict[str, Callable[[Path], str]] = {
    "batch": batch, "chat": chat, "completion": completion, "diffusion": diffusion,
    "download": download, "images": images, "mcp": mcp, "notebook": notebook, "ocr": ocr,
    "ray": ray, "sdcpp": sdcpp, "server": server, "songs": songs, "speech": speech,
    "telemetry": telemetry, "upscale": upscale,
}  # fmt: skip


if __name__ == "__main__":
    main()
