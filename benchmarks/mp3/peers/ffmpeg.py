"""The ffmpeg program: the yardstick, whose MP3 frames polymux promises to equal."""

from benchmarks.mp3.peers.base import Peer

QUIET = ("ffmpeg", "-nostdin", "-v", "error", "-y", "-i", "{input}", "-vn")

PEER = Peer(
    name="ffmpeg",
    settings=(
        "`-b:a 128k` or `-q:a 2`, otherwise its defaults, which leave LAME at quality 3;"
        " one encoder thread"
    ),
    program={
        "cbr128": (*QUIET, "-b:a", "128k", "{output}"),
        "v2": (*QUIET, "-q:a", "2", "{output}"),
    },
    version_command=("ffmpeg", "-version"),
)
