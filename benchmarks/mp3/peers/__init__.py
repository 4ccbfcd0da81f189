"""The converters that are compared: one small file each, saying what makes it comparable."""

from importlib import import_module

from benchmarks.mp3.peers.base import Peer

NAMES = (
    "ffmpeg",
    "polymux",
    "newest_ffmpeg",
    "lame",
    "pyav",
    "pydub",
    "torchcodec",
    "pedalboard",
    "lameenc",
)


def every() -> tuple[Peer, ...]:
    """All of them, in the order of the tables. Their packages are not imported by this."""
    modules = (import_module(f"{__name__}.{name}") for name in NAMES)
    return tuple(peer for module in modules for peer in module.PEERS)
