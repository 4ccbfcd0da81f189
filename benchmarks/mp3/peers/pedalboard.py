"""pedalboard: JUCE's readers and LAME, both in its wheel; the only peer with several threads."""

import os

from benchmarks.mp3.peers.base import Convert, Mode, Peer, serve

THREADS = "BENCHMARK_THREADS"

PEERS = (
    Peer(
        name="pedalboard",
        settings=(
            'whole input to one array, `AudioFile.encode(quality=128 or "V2", num_threads=1)`; the'
            " LAME in its wheel is not the system's; its Linux build reads no MP4"
        ),
        packages=("pedalboard",),
        module=__name__,
        variables={THREADS: "1"},
    ),
    Peer(
        name="pedalboard, two threads",
        settings="the same with `num_threads=2`: pieces encoded apart, then spliced",
        packages=("pedalboard",),
        module=__name__,
        variables={THREADS: "2"},
    ),
)


def load() -> Convert:
    from pedalboard.io import AudioFile

    threads = int(os.environ[THREADS])

    def convert(source: str, destination: str, mode: Mode) -> None:
        with AudioFile(source) as reader:
            samples, rate_hz = reader.read(reader.frames), reader.samplerate
        data = AudioFile.encode(
            samples,
            rate_hz,
            "mp3",
            num_channels=samples.shape[0],
            quality=128 if mode == "cbr128" else "V2",
            num_threads=threads,
        )
        with open(destination, "wb") as file:  # noqa: PTH123
            file.write(data)

    return convert


if __name__ == "__main__":
    serve(load)
