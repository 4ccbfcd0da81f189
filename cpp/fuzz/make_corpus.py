#!/usr/bin/env python3
"""make_corpus.py FOLDER: write small seed inputs of every kind for the fuzz targets.

- FOLDER/convert, FOLDER/frame and FOLDER/remux: files of a fraction of a second from the ffmpeg
  program, and damaged ones from the test suite's generators
- FOLDER/stream: chat streams in the formats of several servers
- FOLDER/query, FOLDER/segment and FOLDER/tags: a few byte strings, because the input of these
  targets is a list of choices and not a file
- FOLDER/http1: requests and responses
- FOLDER/json: request bodies
- FOLDER/url: the test suite's hostile URLs
- FOLDER/video: short videos

Existing files stay, which keeps a corpus that has grown.
"""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))

from support import chat_streams, hostile_cases, url_corpus
from support.cache import Cache
from support.hostile import Clips, Site, noise

TARGETS = (
    "convert",
    "frame",
    "headers",
    "http1",
    "json",
    "query",
    "remux",
    "retry",
    "segment",
    "stream",
    "tags",
    "url",
    "video",
)
MOST_BYTES = 16 * 1024
SECONDS = "0.05"
TONE = "sine=frequency=440:duration=0.05:sample_rate=44100"


def write(path: Path, content: bytes) -> None:
    """Add one input, unless it is too long for efficient mutation."""
    if len(content) <= MOST_BYTES and not path.exists():
        path.write_bytes(content)


def real_files(folder: Path) -> None:
    """Write one very short file for every format of the test suite."""
    for name, (ending, arguments) in Clips.FORMATS.items():
        path = folder / f"{name}.{ending}"
        if path.exists():
            continue
        command = ["ffmpeg", "-nostdin", "-v", "error", "-f", "lavfi", "-i", TONE]
        subprocess.run([*command, *arguments, "-t", SECONDS, str(path)], check=True)


def moving_pictures(folder: Path) -> None:
    """Write one very short file with video and audio for each pair of container and codecs."""
    picture = ["-f", "lavfi", "-i", "testsrc2=size=32x32:rate=25:duration=0.2"]
    for name, codecs in (
        ("h264.ts", ("libx264", "aac")),
        ("h264.mkv", ("libx264", "libmp3lame")),
        ("mpeg4.mp4", ("mpeg4", "aac")),
        ("vp9.webm", ("libvpx-vp9", "libopus")),
    ):
        path = folder / name
        if path.exists():
            continue
        command = ["ffmpeg", "-nostdin", "-v", "error", *picture, "-f", "lavfi", "-i", TONE]
        video, audio = codecs
        subprocess.run([*command, "-c:v", video, "-c:a", audio, str(path)], check=True)


def films(folder: Path) -> None:
    """Write one very short file without audio for each video decoder."""
    for name, codec in (
        ("h264.mp4", ("-c:v", "libx264", "-movflags", "faststart")),
        ("hevc.mov", ("-c:v", "libx265")),
        ("vp8.webm", ("-c:v", "libvpx")),
        ("vp9.webm", ("-c:v", "libvpx-vp9")),
        ("mpeg4.avi", ("-c:v", "mpeg4")),
        ("mjpeg.avi", ("-c:v", "mjpeg")),
        ("mpeg1.mpg", ("-c:v", "mpeg1video")),
        ("mpeg2.ts", ("-c:v", "mpeg2video")),
        ("gif.gif", ()),
    ):
        path = folder / name
        if path.exists():
            continue
        source = ["-f", "lavfi", "-i", "testsrc2=size=32x32:rate=25:duration=0.2"]
        command = ["ffmpeg", "-nostdin", "-v", "error", *source, *codec, str(path)]
        subprocess.run(command, check=True)


def broken_files(folder: Path) -> None:
    """Write the test suite's hostile files that are small enough."""
    with tempfile.TemporaryDirectory() as workshop:
        clips = Clips(Cache(folder.parent / "clips"))
        for case in hostile_cases.cases():
            if case.id in ("V12", "V13", "V14"):
                continue  # Bombs are long on purpose and unsuitable as seeds.
            place = Path(workshop) / str(case)
            place.mkdir()
            source = case.build(Site(place, place / "canary.wav", 9, clips))
            write(folder / f"{case}.bin", source.read_bytes())


#: Retry-After, Date and retry-after-ms, one per line.
RETRIES = (
    b"120",
    b"0.5",
    b"Sun, 06 Nov 1994 08:49:37 GMT\nSun, 06 Nov 1994 08:49:07 GMT",
    b"Sunday, 06-Nov-94 08:49:37 GMT\nSun Nov  6 08:49:37 1994",
    b"\n\n1500",
)
CONTENT_TYPES = (
    b"application/json",
    b' Application/JSON ;a="x;y\\\\\\"";charset="UTF-8"',
    b"application/json; charset=utf-7",
    b"multipart/form-data; boundary=----x",
    b'multipart/form-data; boundary="',
    b"text/plain",
)


def json_bodies(folder: Path) -> None:
    """Write valid and broken request bodies, each after the byte that selects the operation."""
    bodies = [
        b'{"model":"m","messages":[{"role":"user","content":"x"}]}',
        b'{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":'
        b'{"url":"data:image/png;base64,AA=="}}]}],"tools":[{"type":"function","function":{"name":"f"}}]}',
        b'{"song":"\\ud83d\\ude00","limit":"5"}',
        b'{"prompt":"x","width":512,"height":1e3,"seed":-9223372036854775808}',
        b'{"url":"https://user:secret@video.example/","resolution":"720p"}',
        b'{"a":[1e999,NaN,"\\ud800",{"q":1,"q":2}]}',
        b"[" * 199 + b"]" * 199,
    ]
    for number, body in enumerate(bodies):
        for operation in (0, 2, 3):
            write(folder / f"body-{number}-{operation}", bytes([operation]) + body)


def messages(folder: Path) -> None:
    """Write HTTP/1.1 messages after the bytes that select their kind and how they are divided."""
    get = b"GET /a?b HTTP/1.1\r\nHost: h:80\r\nAccept: */*\r\n\r\n"
    chunks = b"5;a=b\r\nhello\r\n0\r\nDigest: x\r\n\r\n"
    chunked = b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    requests = (
        get + get,
        b"POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx" + get,
        b"POST http://h/x HTTP/1.1\r\nHost: h\r\n" + chunked + get,
        b"OPTIONS * HTTP/1.0\r\nConnection: keep-alive\r\n\r\n" + get,
        b"GET / HTTP/1.1\r\nHost: [::1]\r\nConnection: upgrade\r\nUpgrade: h2c\r\n\r\n",
    )
    responses = (
        b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\n" + chunked + b"HTTP/1.1 204 \r\n\r\n",
        b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\nHTTP/1.1 200 OK\r\n\r\nuntil the close",
        b"HTTP/1.1 404 Not Found\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi",
    )
    for kind, given in enumerate((requests, responses)):
        for number, message in enumerate(given):
            for choice in (kind, kind | 2, kind | 4):
                name = f"message-{choice}-{number}"
                write(folder / name, bytes([choice, 0, 7, 63]) + message)


def urls(folder: Path) -> None:
    """Write raw addresses, and hostile and valid URLs after the byte that selects the parser."""
    good = [
        "https://media.example/a?b=c#d",
        "http://m\u00fcnchen.example:443/\u00e9",
        "/b",
        "//a.b/",
    ]
    for number, url in enumerate([*good, *url_corpus.urls()]):
        write(folder / f"url-{number}", bytes([1 + number % 3]) + url.encode())
    for size in (4, 16):
        write(folder / f"address-{size}", bytes([0]) + noise(size, "address"))


def main() -> None:
    """Write the seed inputs to the folder named on the command line."""
    root = Path(sys.argv[1])
    for target in TARGETS:
        (root / target).mkdir(parents=True, exist_ok=True)
    real_files(root / "convert")
    broken_files(root / "convert")
    moving_pictures(root / "remux")
    broken_files(root / "remux")
    films(root / "video")
    json_bodies(root / "json")
    messages(root / "http1")
    urls(root / "url")
    for path in (root / "convert").glob("mp3*"):
        write(root / "frame" / path.name, path.read_bytes())
    for name, stream in chat_streams.SERVERS.items():
        body = stream(chat_streams.words(6))
        write(root / "stream" / f"{name}.bin", b"\x00\x20\x03\xff" + body)
        write(root / "stream" / f"{name}-crlf.bin", b"\x40" * 4 + body.replace(b"\n", b"\r\n"))
    for number, content_type in enumerate(CONTENT_TYPES):
        write(root / "headers" / f"content-type-{number}", content_type)
    for number, asked in enumerate(RETRIES):
        write(root / "retry" / f"retry-{number}", asked)
    for size in (16, 200, 3000):
        write(root / "query" / f"{size}.bin", noise(size, "query"))
        write(root / "segment" / f"{size}.bin", noise(size, "segment"))
        write(root / "tags" / f"{size}.bin", noise(size, "tags"))


if __name__ == "__main__":
    main()
