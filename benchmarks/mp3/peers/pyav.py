"""PyAV: FFmpeg's libraries from Python, with the FFmpeg and LAME of its wheel."""

from benchmarks.mp3.peers.base import Convert, Mode, Peer, serve

PEERS = (
    Peer(
        name="PyAV",
        settings=(
            "decodes and encodes frame by frame as its documentation shows; `bit_rate` 128,000 or"
            " the qscale flag with quality 2; the FFmpeg and LAME in its wheel are not the system's"
        ),
        packages=("av",),
        module=__name__,
    ),
)

LAMBDA_PER_QUALITY = 118  # FF_QP2LAMBDA


def load() -> Convert:
    import av

    def convert(source: str, destination: str, mode: Mode) -> None:
        quality = {"flags": "+qscale", "global_quality": str(2 * LAMBDA_PER_QUALITY)}
        with av.open(source) as reader, av.open(destination, "w", format="mp3") as writer:
            audio = reader.streams.audio[0]
            stream = writer.add_stream(
                "libmp3lame", rate=audio.rate, options=quality if mode == "v2" else {}
            )
            stream.layout = "mono" if audio.channels == 1 else "stereo"
            stream.format = audio.format.planar
            if mode == "cbr128":
                stream.bit_rate = 128_000
            for frame in reader.decode(audio):
                writer.mux(stream.encode(frame))
            writer.mux(stream.encode(None))

    return convert


if __name__ == "__main__":
    serve(load)
