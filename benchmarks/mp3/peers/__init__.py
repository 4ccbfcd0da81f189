"""The converters to compare, one file each, with the settings that make them comparable."""

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
    """Return all peers in the order of the tables, without importing their packages."""
    modules = (import_module(f"{__name__}.{name}") for name in NAMES)
    return tuple(peer for module in modules for peer in module.PEERS)
