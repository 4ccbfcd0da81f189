"""lameenc: LAME alone, for PCM that is already in memory."""

import wave

from benchmarks.mp3.peers.base import Convert, Mode, NotOfferedError, Peer, serve

PEERS = (
    Peer(
        name="lameenc",
        settings=(
            "`set_quality(3)` with `set_bit_rate(128)` or VBR quality 2; the WAV is read with"
            " Python's wave module; encodes only, so it reads no MP4; writes no Info tag"
        ),
        packages=("numpy", "lameenc"),
        module=__name__,
    ),
)


def load() -> Convert:
    import lameenc
    import numpy

    def convert(source: str, destination: str, mode: Mode) -> None:
        if not source.endswith(".wav"):
            raise NotOfferedError("only encodes: reads no files")
        with wave.open(source) as reader, open(destination, "wb") as file:  # noqa: PTH123
            encoder = lameenc.Encoder()
            encoder.silence()
            encoder.set_quality(3)
            encoder.set_channels(reader.getnchannels())
            encoder.set_in_sample_rate(reader.getframerate())
            if mode == "cbr128":
                encoder.set_bit_rate(128)
            else:
                encoder.set_vbr(4)  # vbr_mtrh, LAME's default method
                encoder.set_vbr_quality(2)
            while chunk := reader.readframes(44_100):
                samples = numpy.frombuffer(chunk, dtype="<i2").reshape(-1, reader.getnchannels())
                file.write(encoder.encode(samples))
            file.write(encoder.flush())

    return convert


if __name__ == "__main__":
    serve(load)
