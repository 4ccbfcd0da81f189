"""polymux itself, measured exactly as every other Python package is."""

from benchmarks.mp3.peers.base import Convert, Mode, Peer, serve

PEER = Peer(
    name="polymux",
    settings=(
        '`convert_to_mp3(..., bitrate="128k")` or `vbr_quality=2`, preset "ffmpeg"; one encoder;'
        " waits until the file is safe on the disk, as nobody else does"
    ),
    module=__name__,
)


def load() -> Convert:
    import polymux
    import polymux._media  # the first conversion would do it; here it belongs to loading

    def convert(source: str, destination: str, mode: Mode) -> None:
        if mode == "cbr128":
            polymux.convert_to_mp3(source, destination, bitrate="128k")
        else:
            polymux.convert_to_mp3(source, destination, vbr_quality=2)

    return convert


if __name__ == "__main__":
    serve(load)
