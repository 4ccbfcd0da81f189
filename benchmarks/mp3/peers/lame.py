"""The lame program, the front end of the encoder that all converters here use."""

from benchmarks.mp3.peers.base import Peer

QUIET = ("lame", "--silent", "--noreplaygain", "-q", "3")

PEERS = (
    Peer(
        name="lame",
        settings=(
            "`-q 3 --noreplaygain` with `--cbr -b 128` or `-V 2` (by default it also computes"
            " ReplayGain, which nobody else here does); takes an MP4 for raw PCM"
        ),
        program={
            "cbr128": (*QUIET, "--cbr", "-b", "128", "{input}", "{output}"),
            "v2": (*QUIET, "-V", "2", "{input}", "{output}"),
        },
        version_command=("lame", "--version"),
    ),
)
