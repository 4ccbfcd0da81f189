"""pydub: runs the ffmpeg program twice, with all PCM in memory and on disk in between."""

from benchmarks.mp3.peers.base import Convert, Mode, Peer, serve

PEERS = (
    Peer(
        name="pydub",
        settings=(
            '`AudioSegment.from_file(...).export(format="mp3", ...)` with `bitrate="128k"` or'
            " `-q:a 2`; it runs the same ffmpeg program"
        ),
        packages=("pydub",),
        module=__name__,
    ),
)


def load() -> Convert:
    import pydub

    def convert(source: str, destination: str, mode: Mode) -> None:
        wanted = {"bitrate": "128k"} if mode == "cbr128" else {"parameters": ["-q:a", "2"]}
        pydub.AudioSegment.from_file(source).export(destination, format="mp3", **wanted)

    return convert


if __name__ == "__main__":
    serve(load)
