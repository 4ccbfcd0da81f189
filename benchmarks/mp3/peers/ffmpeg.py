"""The ffmpeg program: the reference, whose MP3 frames polymux must reproduce."""

from benchmarks.mp3.peers.base import Peer

QUIET = ("ffmpeg", "-nostdin", "-v", "error", "-y", "-i", "{input}", "-vn")
FAST = (*QUIET, "-compression_level", "7")
VERSION = ("ffmpeg", "-version")

REFERENCE = Peer(
    name="ffmpeg",
    settings=(
        "`-b:a 128k` or `-q:a 2`, otherwise its defaults, which leave LAME at quality 3;"
        " one encoder thread"
    ),
    program={
        "cbr128": (*QUIET, "-b:a", "128k", "{output}"),
        "v2": (*QUIET, "-q:a", "2", "{output}"),
    },
    version_command=VERSION,
)

FAST_REFERENCE = Peer(
    name="ffmpeg -compression_level 7",
    settings='the same with LAME at quality 7, which polymux\'s preset "fast" is compared with',
    program={
        "cbr128": (*FAST, "-b:a", "128k", "{output}"),
        "v2": (*FAST, "-q:a", "2", "{output}"),
    },
    version_command=VERSION,
    frames_of="ffmpeg -compression_level 7",
)

PEERS = (REFERENCE, FAST_REFERENCE)
