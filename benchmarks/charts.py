"""The charts and tables of docs/benchmarks.md, and the published results that each one shows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Column(NamedTuple):
    """A column of the results, and its title on the page.

    Attributes:
        source: Title in the results file.
        title: Title on the page, if it differs.
        per_second: Show microseconds per item as items per second.
        as_text: Show the cell without changes.
    """

    source: str
    title: str = ""
    per_second: bool = False
    as_text: bool = False


class Row(NamedTuple):
    """A row of the results.

    Attributes:
        name: First cell in the results file.
        label: First cell on the page, if it differs.
        table: Table of the results file, if it is not the chart's.
        bar: Whether the chart shows it too.
    """

    name: str
    label: str = ""
    table: str = ""
    bar: bool = True


@dataclass(frozen=True)
class Chart:
    """A table of the page, with an SVG chart if `value` names its column.

    Attributes:
        name: Name of the mark in the page and of the SVG file.
        results: Name of the results file.
        table: Title of the table in the results file.
        columns: Columns of the page.
        rows: Rows of the page, in order.
        title: Title of the chart.
        unit: Unit of the bars, and which direction is better.
        value: Column of the bars; None for a table alone.
        first: Title of the first column.
        conditions: Whether versions and the command follow the table.
        ours: Whether every bar is polymux's; otherwise those whose label begins with "polymux".
    """

    name: str
    results: str
    table: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    title: str = ""
    unit: str = ""
    value: Column | None = None
    first: str = "client"
    conditions: bool = False
    ours: bool = False


class Slower(NamedTuple):
    """A figure in which polymux is behind.

    Attributes:
        what: The measurement and its unit.
        results: Name of the results file.
        table: Title of its table.
        column: Column of the figure.
        other: Row of the faster program.
        label: Its name on the page, if it differs.
        ours: Row of polymux.
    """

    what: str
    results: str
    table: str
    column: str
    other: str
    label: str = ""
    ours: str = "polymux"


CPU = Column("CPU, µs each", "CPU per request, µs")
RATE = Column("wall, µs each", "requests per second", per_second=True)
CPU_RATIO = Column("times polymux", "CPU relative to polymux")
TOKEN_CPU = Column("CPU, µs each", "CPU per token, µs")
LOOP = Column("CPU of the loop's thread", "of which in the event loop's thread")
UVLOOP = Row("polymux + uvloop", "polymux with uvloop")
FLOOR = Row("sockets and epoll, no library", "sockets in C++, no HTTP library", bar=False)

CLIENT = (
    Chart(
        name="requests",
        results="requests",
        table="one after another",
        title="Chat requests per second, one after another",
        unit="requests per second on one connection, higher is better",
        value=RATE,
        columns=(RATE, CPU, CPU_RATIO),
        rows=(
            Row("polymux"),
            Row("pycurl"),
            Row("urllib3"),
            Row("curl_cffi"),
            Row("httpx2"),
            Row("httpx"),
            Row("requests"),
            Row("groq"),
            Row("openai"),
            Row("libcurl in C, one handle", "libcurl in C, response not parsed", bar=False),
            FLOOR,
        ),
    ),
    Chart(
        name="requests-asyncio",
        results="requests",
        table="64 at once, asyncio",
        columns=(RATE, CPU, LOOP, CPU_RATIO),
        rows=(
            Row("polymux"),
            UVLOOP,
            Row("aiohttp"),
            Row("aiohttp + uvloop", "aiohttp with uvloop"),
            Row("curl_cffi"),
            Row("httpx2"),
            Row("openai"),
            Row("libcurl in C, many handles", "libcurl in C, responses not parsed"),
        ),
    ),
    Chart(
        name="requests-1000",
        results="requests",
        table="1,000 at once, asyncio",
        columns=(RATE, CPU, LOOP, CPU_RATIO),
        rows=(
            Row("polymux"),
            UVLOOP,
            Row("aiohttp"),
            Row("aiohttp + uvloop", "aiohttp with uvloop"),
            Row("curl_cffi"),
            Row("libcurl in C, many handles", "libcurl in C, responses not parsed"),
        ),
        conditions=True,
    ),
    Chart(
        name="tls",
        results="requests",
        table="new TLS connections",
        title="CPU time of a request on a new TLS connection",
        unit="CPU time in µs, lower is better",
        value=Column("CPU, µs each"),
        columns=(CPU, Column("wall, µs each", "wall time, µs"), CPU_RATIO),
        rows=(
            Row("polymux"),
            Row("httpx2"),
            Row("httpx"),
            Row("urllib3"),
            Row("requests"),
            Row("libcurl in C, no folder of certificates", "libcurl in C, CA file only"),
            Row("libcurl in C, as it comes", "libcurl in C, default settings"),
        ),
        conditions=True,
    ),
    Chart(
        name="streams",
        results="streams",
        table="200 streams of 10 tokens a second",
        title="CPU time per streamed token, 200 streams at 10 tokens/s",
        unit="CPU time in µs, lower is better",
        value=Column("CPU, µs each"),
        columns=(TOKEN_CPU, LOOP, CPU_RATIO),
        rows=(
            Row("polymux"),
            Row("aiohttp"),
            Row("httpx2"),
            Row("openai"),
            Row("groq"),
            FLOOR,
        ),
    ),
    Chart(
        name="streams-1000",
        results="streams",
        table="1,000 streams of 10 tokens a second",
        columns=(TOKEN_CPU, LOOP, CPU_RATIO),
        rows=(
            Row("polymux"),
            UVLOOP,
            Row("aiohttp"),
            Row("aiohttp + uvloop", "aiohttp with uvloop"),
            FLOOR,
        ),
    ),
    Chart(
        name="streams-lag",
        results="streams",
        table="1,000 streams of 50 tokens a second",
        columns=(
            Column("lag p50, ms", "delay p50, ms"),
            Column("lag p99, ms", "delay p99, ms"),
            TOKEN_CPU,
            CPU_RATIO,
        ),
        rows=(
            Row("polymux"),
            UVLOOP,
            Row("aiohttp"),
            Row("aiohttp + uvloop", "aiohttp with uvloop"),
        ),
    ),
    Chart(
        name="streams-memory",
        results="streams",
        table="4,000 open streams",
        columns=(Column("KiB a stream", "memory per open stream, KiB"),),
        rows=(Row("polymux"), Row("aiohttp")),
    ),
    Chart(
        name="streams-cancel",
        results="streams",
        table="200 cancelled of 1,000 streams",
        columns=(Column("closed p50, ms", "closed p50, ms"), Column("closed p99, ms")),
        rows=(Row("polymux"), Row("aiohttp")),
        conditions=True,
    ),
    Chart(
        name="sse",
        results="sse",
        table="Python",
        title="CPU time to decode a chunk of a chat stream in Python",
        unit="ns per chunk, lower is better",
        value=Column("ns a chunk"),
        columns=(
            Column("ns a chunk", "ns per chunk"),
            Column("times polymux", "relative to polymux (lower quartile)"),
        ),
        rows=(
            Row("polymux"),
            Row("msgspec", "msgspec, typed"),
            Row("orjson", "orjson, line by line"),
            Row("pydantic", "pydantic 2"),
            Row("httpx-sse"),
            Row("groq"),
            Row("openai", "openai-python"),
        ),
        first="decoder",
        conditions=True,
    ),
    Chart(
        name="upload",
        results="upload",
        table="1,024 MiB in a form",
        title="CPU time to upload 1 GiB in a form",
        unit="CPU seconds, lower is better",
        value=Column("CPU, s a GiB"),
        columns=(
            Column("CPU, s a GiB", "CPU, s"),
            Column("wall, s a GiB", "wall time, s"),
            Column("more memory, MiB", "additional memory, MiB"),
            CPU_RATIO,
        ),
        rows=(
            Row("polymux"),
            Row("curl program, -F", "curl -F"),
            Row("curl_cffi"),
            Row("pycurl"),
            Row("httpx"),
            Row("httpx2"),
            Row("aiohttp"),
            Row("urllib3"),
            Row("requests"),
            Row("requests-toolbelt"),
            Row("libcurl in C, body read as it is sent", "libcurl in C, file streamed", bar=False),
        ),
        conditions=True,
    ),
    Chart(
        name="json",
        results="json",
        table="writing",
        title="Speed of writing request JSON relative to orjson",
        unit="orjson's time divided by polymux's, higher is better, 1 is equal",
        value=Column("orjson"),
        columns=(
            Column("polymux, us", "polymux, µs"),
            Column("orjson", "times as fast as orjson"),
            Column("msgspec", "as msgspec"),
            Column("json.dumps", "as json.dumps"),
        ),
        rows=tuple(
            Row(name)
            for name in (
                "chat of 20 messages with tools",
                "1 MiB English prose",
                "1 MiB dense escapes",
                "1 MiB prose with emoji",
                "1 MiB Latin-1",
                "1 MiB Chinese",
            )
        ),
        first="input",
        conditions=True,
        ours=True,
    ),
    Chart(
        name="imports",
        results="imports",
        table="import and first client",
        title="Cost of importing the package and creating a client",
        unit="million CPU instructions, lower is better",
        value=Column("instructions, M"),
        columns=(
            Column("instructions, M", "million instructions"),
            Column("times polymux", "relative to polymux"),
        ),
        rows=tuple(
            Row(name)
            for name in (
                "polymux",
                "pycurl",
                "urllib3",
                "requests",
                "curl_cffi",
                "httpx",
                "httpx2",
                "aiohttp",
                "groq",
                "openai",
            )
        ),
    ),
    Chart(
        name="imports-first-request",
        results="imports",
        table="and its first request",
        columns=(
            Column("instructions, M", "million instructions"),
            Column("times polymux", "relative to polymux"),
        ),
        rows=tuple(
            Row(name)
            for name in (
                "polymux",
                "pycurl",
                "urllib3",
                "requests",
                "curl_cffi",
                "httpx",
                "httpx2",
                "aiohttp",
                "groq",
                "openai",
            )
        ),
        conditions=True,
    ),
    Chart(
        name="interrupts",
        results="interrupts",
        table="Ctrl-C in what waits",
        title="Time from Ctrl-C to KeyboardInterrupt",
        unit="median in ms, lower is better",
        value=Column("p50, ms"),
        columns=(Column("p50, ms", "median, ms"), Column("worst of the round, ms", "worst, ms")),
        rows=(
            Row("a call", "polymux, a call"),
            Row("a stream before its head", "polymux, before a stream"),
            Row("a stream between two chunks", "polymux, in a stream"),
            Row("an upload", "polymux, an upload"),
            Row("connecting", "polymux, connecting"),
            Row("looking up a name", "polymux, DNS lookup"),
            Row("between two tries", "polymux, between retries"),
            Row("a job between two looks", "polymux, polling a job"),
            Row("a fetch", "polymux, fetching a URL"),
            Row("a fetch, looking up a name", "polymux, fetching a URL: DNS"),
            Row("time.sleep"),
        ),
        first="waiting in",
        conditions=True,
    ),
)

SECONDS = Column("seconds", "seconds, whole process")
SPEED = Column("times as fast as ffmpeg, whole process", "times as fast as ffmpeg")
INSIDE = Column("times as fast, without start and imports", "without start and imports")
MP3_CPU = Column("CPU ÷ ffmpeg's, whole process", "CPU relative to ffmpeg")
MP3_COLUMNS = (SECONDS, SPEED, INSIDE, MP3_CPU)
CONVERTERS = (
    Row("polymux", "polymux, two threads"),
    Row("polymux, one thread"),
    Row("polymux, preset fast", "polymux, two threads, preset fast"),
    Row("ffmpeg"),
    Row("ffmpeg -compression_level 7"),
    Row("newest ffmpeg", "newest ffmpeg (static build)"),
    Row("lame"),
    Row("pydub"),
    Row("pedalboard, two threads"),
    Row("pedalboard"),
    Row("lameenc"),
    Row("torchcodec"),
    Row("PyAV"),
)

MP3 = (
    Chart(
        name="mp3",
        results="mp3",
        table="3 min WAV to CBR 128",
        title="Convert 3 minutes of WAV to MP3 at 128 kbit/s",
        unit="seconds for the whole process with quartiles, lower is better",
        value=SECONDS,
        columns=MP3_COLUMNS,
        rows=CONVERTERS,
        first="converter",
    ),
    Chart(
        name="mp3-vbr",
        results="mp3",
        table="3 min WAV to VBR V2",
        columns=MP3_COLUMNS,
        rows=tuple(row for row in CONVERTERS if row.name != "torchcodec"),
        first="converter",
    ),
    Chart(
        name="mp3-long",
        results="mp3",
        table="",
        columns=(SECONDS, SPEED, MP3_CPU),
        rows=tuple(
            Row(who, f"{label}: {who}", table)
            for table, label in (
                ("3 min AAC in MP4 with video to CBR 128", "3 min MP4, CBR"),
                ("3 min AAC in MP4 with video to VBR V2", "3 min MP4, VBR"),
                ("10 min WAV to CBR 128", "10 min WAV, CBR"),
                ("10 min WAV to VBR V2", "10 min WAV, VBR"),
                ("60 min AAC in MP4 with video to CBR 128", "60 min MP4, CBR"),
            )
            for who in ("polymux", "ffmpeg")
        ),
        first="input: converter",
    ),
    Chart(
        name="mp3-clips",
        results="mp3",
        table="200 clips of 1 s, WAV to CBR 128, on two cores",
        title="Convert 200 WAV clips of one second to MP3",
        unit="seconds on two cores with quartiles, lower is better",
        value=Column("seconds"),
        columns=(
            Column("seconds"),
            Column("times as fast as one ffmpeg each", "times as fast as ffmpeg, one at a time"),
            Column("CPU ÷ one ffmpeg each", "CPU relative to ffmpeg, one at a time"),
        ),
        rows=(
            Row("polymux.convert_many"),
            Row("polymux.convert_to_mp3 in a loop"),
            Row("ffmpeg, one process each, two at a time (xargs -P2)", "ffmpeg, two at a time"),
            Row("ffmpeg, one process each, one after the other", "ffmpeg, one at a time"),
        ),
        first="method",
    ),
    Chart(
        name="mp3-memory",
        results="mp3",
        table="Memory, CBR 128",
        columns=(
            Column("ffmpeg"),
            Column("polymux, one thread"),
            Column("polymux, two threads"),
            Column("polymux from C++, one thread"),
        ),
        rows=(
            Row("3 min WAV"),
            Row("60 min WAV"),
            Row("3 min MP4 with video"),
            Row("60 min MP4 with video"),
        ),
        first="peak memory, MB",
        conditions=True,
    ),
)

SERVER_CPU = Column("CPU, µs each", "CPU per request, µs")
SERVERS = (
    Row("polymux"),
    Row("polymux, engine in its process", "polymux, without an engine process"),
    Row("FastAPI + pydantic"),
    Row("FastAPI + pydantic + uvloop"),
    Row("raw ASGI"),
)

SERVER = (
    Chart(
        name="server",
        results="server",
        table="32 connections",
        title="Small requests per second, 32 connections",
        unit="requests per second on two cores shared with the load generator, higher is better",
        value=Column("requests a second"),
        columns=(
            Column("requests a second", "requests per second"),
            SERVER_CPU,
            CPU_RATIO,
        ),
        rows=SERVERS,
        first="server",
    ),
    Chart(
        name="server-latency",
        results="server",
        table="300 requests a second",
        columns=(Column("p50, ms"), Column("p99, ms"), SERVER_CPU, CPU_RATIO),
        rows=SERVERS,
        first="server",
    ),
    Chart(
        name="server-streams",
        results="server",
        table="100 streams of 100 tokens a second",
        columns=(TOKEN_CPU, Column("lag p99, ms", "delay p99, ms"), CPU_RATIO),
        rows=(*SERVERS[:2], Row("Starlette", "Starlette StreamingResponse"), SERVERS[-1]),
        first="server",
    ),
    Chart(
        name="server-uploads",
        results="server",
        table="50 uploads of 50 MiB",
        columns=(
            Column("MB a second", "MB per second"),
            Column("more memory, MB", "additional memory, MB"),
            CPU_RATIO,
        ),
        rows=(SERVERS[0], SERVERS[2], SERVERS[4]),
        first="server",
    ),
    Chart(
        name="server-wrong-key",
        results="server",
        table="100 MB behind a wrong key",
        columns=(
            Column("answered, longest, ms", "401 sent after, ms"),
            Column("KiB read before", "body read before, KiB"),
            Column("more memory, MB", "additional memory, MB"),
        ),
        rows=(SERVERS[0], SERVERS[2], SERVERS[4]),
        first="server",
    ),
    Chart(
        name="server-flood",
        results="server",
        table="a flood of wrong keys",
        columns=(
            Column("401 a second", "401 responses per second"),
            Column("good p50, ms", "valid request p50, ms"),
            Column("longest, ms", "valid request, slowest, ms"),
        ),
        rows=(SERVERS[0], SERVERS[2], SERVERS[4]),
        first="server",
    ),
    Chart(
        name="server-disconnect",
        results="server",
        table="callers who leave",
        columns=(
            Column("queued, ms"),
            Column("in a stream, ms", "during a stream, ms"),
            Column("at work, ms", "during the work, ms"),
        ),
        rows=(Row("polymux"), Row("raw ASGI"), Row("llama.cpp's own server", "llama.cpp server")),
        first="server",
    ),
    Chart(
        name="server-prompt",
        results="server",
        table="callers who leave real engines",
        columns=(Column("while a prompt is read, ms", "while a model reads the prompt, ms"),),
        rows=(Row("polymux"), Row("llama.cpp's own server", "llama.cpp server")),
        first="server",
    ),
    Chart(
        name="server-start",
        results="server",
        table="start",
        columns=(Column("ready, ms", "ready after, ms"), Column("longest, ms", "slowest, ms")),
        rows=(
            *(SERVERS[0], SERVERS[2], SERVERS[4]),
            Row("llama.cpp's own server", "llama.cpp server, model loaded"),
        ),
        first="server",
        conditions=True,
    ),
    Chart(
        name="models",
        results="server",
        table="chat, 96 tokens",
        title="Tokens per second of a chat model behind the server",
        unit="tokens per second on two cores, higher is better",
        value=Column("tokens a second"),
        columns=(
            Column("tokens a second", "tokens per second"),
            Column("CPU, µs each", "CPU per token, µs"),
            CPU_RATIO,
        ),
        rows=(
            Row("polymux"),
            Row("the library, called directly", "xllamacpp directly"),
            Row("llama.cpp's own server", "llama.cpp server"),
        ),
        first="program",
    ),
    Chart(
        name="models-speech",
        results="server",
        table="speech",
        columns=(
            Column("seconds for a second", "seconds per second of audio"),
            Column("CPU, s each", "CPU, s"),
            CPU_RATIO,
        ),
        rows=(
            Row("polymux"),
            Row("the library, called directly", "faster-whisper directly"),
        ),
        first="program",
        conditions=True,
    ),
    Chart(
        name="models-images",
        results="diffusion",
        table="image",
        columns=(Column("picture, s", "seconds per image"), Column("steps/s", "steps per second")),
        rows=(Row("polymux, with previews"), Row("diffusers")),
        first="program",
        conditions=True,
    ),
    Chart(
        name="gateway",
        results="gateway",
        table="300 requests a second",
        title="Latency that a gateway adds at 300 requests per second",
        unit="median (p50) in ms, lower is better",
        value=Column("overhead p50, ms"),
        columns=(
            Column("overhead p50, ms", "added p50, ms"),
            Column("overhead p99, ms", "added p99, ms"),
            SERVER_CPU,
            CPU_RATIO,
        ),
        rows=(Row("polymux"), Row("plain proxy: FastAPI + httpx2", "proxy of FastAPI and httpx2")),
        first="gateway",
    ),
    Chart(
        name="gateway-200",
        results="gateway",
        table="200 requests a second",
        columns=(
            Column("overhead p50, ms", "added p50, ms"),
            Column("overhead p99, ms", "added p99, ms"),
            SERVER_CPU,
            CPU_RATIO,
        ),
        rows=(Row("polymux"), Row("plain proxy: FastAPI + httpx2", "proxy of FastAPI and httpx2")),
        first="gateway",
    ),
    Chart(
        name="gateway-streams",
        results="gateway",
        table="1,000 streams of 10 tokens a second",
        columns=(
            Column("gap p50, ms"),
            Column("gap p99, ms"),
            Column("lag p99, ms", "delay p99, ms"),
            TOKEN_CPU,
            Column("peak RSS, MB", "peak memory, MB"),
        ),
        rows=(
            Row("polymux"),
            Row("plain proxy: FastAPI + httpx2", "proxy of FastAPI and httpx2"),
            Row("direct, without a gateway", "no gateway"),
        ),
        first="gateway",
        conditions=True,
    ),
    Chart(
        name="ray",
        results="ray",
        table="batch",
        title="Convert WAV clips of one second to MP3 in a batch",
        unit="files per second on one machine, higher is better",
        value=Column("files per second"),
        columns=(Column("files per second"),),
        rows=(Row("polymux batch, without Ray"), Row("polymux batch, with Ray")),
        first="program",
    ),
    Chart(
        name="ray-engine",
        results="ray",
        table="engine",
        columns=(
            Column("p50, ms"),
            Column("requests per second, 8 at once"),
        ),
        rows=(Row("child process"), Row("Ray Serve")),
        first="idle engine as",
        conditions=True,
    ),
)

OTHERS = (
    Chart(
        name="songs",
        results="song",
        table="recognition",
        title="Recordings whose song is named, 44 kinds of damage",
        unit="percent of 5 s and 10 s recordings, higher is better",
        value=Column("named, %"),
        columns=(Column("named, %", "named, %"),),
        rows=(
            Row("polymux, 10 s"),
            Row("Chromaprint, 10 s"),
            Row("polymux, 5 s"),
            Row("Chromaprint, 5 s"),
        ),
        first="program, length of the recording",
        conditions=True,
    ),
    Chart(
        name="songs-costs",
        results="song",
        table="costs",
        columns=(Column("measured", as_text=True),),
        rows=(
            Row("fingerprint, one core, without decoding"),
            Row("query of 5 s in 7 hours of music, found"),
            Row("query of 5 s in 7 hours of music, not found"),
            Row("index files"),
            Row("opening an index of 300 hours"),
        ),
        first="cost of polymux",
    ),
    Chart(
        name="spectrogram",
        results="spectrogram",
        table="",
        title="Turn a spectrogram image of 5.12 s into audio",
        unit="seconds, lower is better",
        value=Column("wall, s"),
        columns=(
            Column("wall, s", "wall time, s"),
            Column("CPU, s", "CPU, s"),
            Column("convergence in mel bands", "distance to the image, mel bands"),
            Column("times polymux", "time relative to polymux"),
        ),
        rows=tuple(
            Row(who, f"{who}, {kind}", f"{kind} of 5.12 s, played")
            for kind in ("chords", "speech", "drums")
            for who in ("polymux", "librosa")
        ),
        first="library, sound",
    ),
    Chart(
        name="spectrogram-drawn",
        results="spectrogram",
        table="chords of 5.12 s, drawn",
        columns=(
            Column("wall, s", "wall time, s"),
            Column("CPU, s", "CPU, s"),
            Column("times polymux", "time relative to polymux"),
        ),
        rows=(Row("polymux"), Row("librosa")),
        first="library",
        conditions=True,
    ),
)

CHARTS: tuple[Chart, ...] = (*CLIENT, *MP3, *SERVER, *OTHERS)

_TOKENS_10 = "1,000 streams of 10 tokens a second"
_TOKENS_50 = "1,000 streams of 50 tokens a second"
_CBR = "3 min WAV to CBR 128"
_VBR = "3 min WAV to VBR V2"
_ONE = "polymux, one thread"
_FASTAPI = "FastAPI + pydantic"
_TOKEN = "CPU per streamed token, µs"

SLOWER: tuple[Slower, ...] = (
    Slower("CPU per chat request, µs", "requests", "one after another", "CPU, µs each", "pycurl"),
    Slower(
        "CPU of a new TLS connection, µs",
        "requests",
        "new TLS connections",
        "CPU, µs each",
        "libcurl in C, no folder of certificates",
        "libcurl in C",
    ),
    Slower(_TOKEN, "streams", _TOKENS_10, "CPU, µs each", "aiohttp + uvloop"),
    Slower(f"{_TOKEN}, overloaded", "streams", _TOKENS_50, "CPU, µs each", "aiohttp"),
    Slower(
        "memory per open stream, KiB", "streams", "4,000 open streams", "KiB a stream", "aiohttp"
    ),
    Slower(
        "closing a canceled stream, p99, ms",
        "streams",
        "200 cancelled of 1,000 streams",
        "closed p99, ms",
        "aiohttp",
    ),
    Slower(
        "million instructions of import and first request",
        "imports",
        "and its first request",
        "instructions, M",
        "pycurl",
    ),
    Slower("3 min WAV to MP3, 128 kbit/s, s", "mp3", _CBR, "seconds", "pedalboard, two threads"),
    Slower("3 min WAV to MP3, V2, s", "mp3", _VBR, "seconds", "pedalboard, two threads"),
    Slower(
        "the same, 128 kbit/s, one thread, s", "mp3", _CBR, "seconds", "newest ffmpeg", ours=_ONE
    ),
    Slower("the same, V2, one thread, s", "mp3", _VBR, "seconds", "pedalboard", ours=_ONE),
    Slower("the same, V2, one thread, s", "mp3", _VBR, "seconds", "ffmpeg", ours=_ONE),
    Slower("requests per second", "server", "32 connections", "requests a second", _FASTAPI),
    Slower(
        "latency at 300 requests/s, p50, ms", "server", "300 requests a second", "p50, ms", _FASTAPI
    ),
    Slower(
        "latency at 300 requests/s, p99, ms", "server", "300 requests a second", "p99, ms", _FASTAPI
    ),
    Slower(
        "CPU per streamed token in the server, µs",
        "server",
        "100 streams of 100 tokens a second",
        "CPU, µs each",
        "Starlette",
    ),
    Slower("uploads, MB per second", "server", "50 uploads of 50 MiB", "MB a second", _FASTAPI),
    Slower("401 responses per second", "server", "a flood of wrong keys", "401 a second", _FASTAPI),
    Slower("refusing with a full queue, p99, ms", "server", "a full queue", "p99, ms", _FASTAPI),
    Slower(
        "memory after 10,000 mixed requests, MB",
        "server",
        "10,000 mixed requests",
        "MB at the end",
        _FASTAPI,
    ),
    Slower("start of the server, ms", "server", "start", "ready, ms", _FASTAPI),
    Slower(
        "noticing a disconnect in a stream, ms",
        "server",
        "callers who leave",
        "in a stream, ms",
        "llama.cpp's own server",
        "llama.cpp server",
    ),
    Slower(
        "chat model, tokens per second",
        "server",
        "chat, 96 tokens",
        "tokens a second",
        "llama.cpp's own server",
        "llama.cpp server",
    ),
    Slower(
        "speech, seconds per second of audio",
        "server",
        "speech",
        "seconds for a second",
        "the library, called directly",
        "faster-whisper directly",
    ),
    Slower(
        "peak memory of the gateway with 1,000 streams, MB",
        "gateway",
        _TOKENS_10,
        "peak RSS, MB",
        "plain proxy: FastAPI + httpx2",
        "proxy of FastAPI and httpx2",
    ),
    Slower(
        "batch on one machine, files per second",
        "ray",
        "batch",
        "files per second",
        "polymux batch, without Ray",
        "polymux without Ray",
        ours="polymux batch, with Ray",
    ),
)
