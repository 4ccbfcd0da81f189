"""torchcodec: reads and writes tensors with the system's FFmpeg libraries."""

from benchmarks.mp3.peers.base import Convert, Mode, NotOfferedError, Peer, serve

PEERS = (
    Peer(
        name="torchcodec",
        settings=(
            "whole input to one tensor, `AudioEncoder.to_file(bit_rate=128_000)`; with a CPU torch"
            " and the system's FFmpeg and LAME; 0.13 is the newest release that loads with a CPU"
            " torch; offers no VBR"
        ),
        packages=("torch", "torchcodec"),
        module=__name__,
    ),
)


def load() -> Convert:
    from torchcodec.decoders import AudioDecoder
    from torchcodec.encoders import AudioEncoder

    def convert(source: str, destination: str, mode: Mode) -> None:
        if mode != "cbr128":
            raise NotOfferedError("offers no VBR")
        samples = AudioDecoder(source).get_all_samples()
        encoder = AudioEncoder(samples.data, sample_rate=samples.sample_rate)
        encoder.to_file(destination, bit_rate=128_000)

    return convert


if __name__ == "__main__":
    serve(load)
