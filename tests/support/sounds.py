"""The sounds of the corpus, as 32-bit float WAV files."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from support import programs

if TYPE_CHECKING:
    from pathlib import Path

    from support.cache import Cache

#: FFmpeg's channel names of the used layouts.
CHANNELS = {
    "mono": 1, "stereo": 2, "2.1": 3, "3.0": 3, "4.0": 4, "quad": 4, "5.0": 5, "5.0(side)": 5,
    "5.1": 6, "5.1(side)": 6, "6.1": 7, "7.1": 8,
}  # fmt: skip

SPEECH_TEXT = (
    "The quick brown fox jumps over the lazy dog. She sells sea shells by the sea shore, and six "
    "hundred and sixty six thick thistles stick. Peter Piper picked a peck of pickled peppers."
)


@dataclass(frozen=True)
class Sound:
    """A sound; `kind` is music, speech, silence, tone, noise or quiet_noise."""

    kind: str = "music"
    samples: int = 66_150
    rate: int = 44_100
    layout: str = "stereo"

    @property
    def stem(self) -> str:
        layout = self.layout.replace("(", "_").replace(")", "")
        return f"{self.kind}-{self.rate}-{layout}-{self.samples}"


def _music(rate: int, channel: int) -> list[str]:
    """Beating tones, a slow chord and gated noise; every channel differs."""
    top = rate / 2
    low, high = min(196.0 + 27.5 * channel, top / 4), min(1244.5 + 61.7 * channel, top / 3)
    return [
        # Not ffmpeg's vibrato filter, because its delay line starts with uninitialized memory.
        f"aevalsrc='0.125*sin(2*PI*{low}*t+3*sin(2*PI*5.1*t))':s={rate},"
        f"tremolo=f={0.7 + 0.3 * channel}:d=0.8",
        f"sine=f={high}:r={rate},tremolo=f={2.3 + channel}:d=0.95",
        f"sine=f={low * 1.498}:r={rate},apulsator=hz=0.9,pan=mono|c0=c0",
        f"anoisesrc=r={rate}:c=pink:a=0.5:seed={11 + channel},"
        f"volume='if(lt(mod(t+{channel}*0.1,0.61),0.07),1.3,0.02)':eval=frame",
    ]


def _graph(sound: Sound) -> str:
    """The lavfi graph of an endless `sound`."""
    parts = []
    channels = CHANNELS[sound.layout]
    for channel in range(channels):
        if sound.kind == "music":
            sources = _music(sound.rate, channel)
            swell = "volume='0.35+0.3*sin(0.8*t)+0.3*lt(mod(t,1.7),0.2)':eval=frame"
        else:
            sources = [
                {
                    "silence": f"anullsrc=r={sound.rate}:cl=mono",
                    "tone": f"sine=f={997 + channel}:r={sound.rate},volume=6",
                    "noise": f"anoisesrc=r={sound.rate}:a=0.6:seed={21 + channel}",
                    "quiet_noise": f"anoisesrc=r={sound.rate}:a=0.001:seed={31 + channel}",
                }[sound.kind]
            ]
            swell = "anull"
        names = [f"[s{channel}_{number}]" for number in range(len(sources))]
        parts += [
            f"{source},aformat=sample_fmts=flt:channel_layouts=mono{name}"
            for source, name in zip(sources, names, strict=True)
        ]
        mix = f"amix=inputs={len(names)}:normalize=0," if len(names) > 1 else ""
        parts.append(f"{''.join(names)}{mix}{swell},aformat=sample_fmts=flt[c{channel}]")
    inputs = "".join(f"[c{channel}]" for channel in range(channels))
    # The mapping is explicit, because join may use one input's channel for two outputs.
    mapping = "|".join(
        f"{channel}.0-{name}" for channel, name in enumerate(_channel_names(sound.layout))
    )
    join = f"join=inputs={channels}:channel_layout={sound.layout}:map={mapping}"
    parts.append(f"{inputs}{join},atrim=end_sample={sound.samples}")
    return ";".join(parts)


def _channel_names(layout: str) -> list[str]:
    names = {
        "mono": "FC", "stereo": "FL FR", "2.1": "FL FR LFE", "3.0": "FL FR FC",
        "4.0": "FL FR FC BC", "quad": "FL FR BL BR", "5.0": "FL FR FC BL BR",
        "5.0(side)": "FL FR FC SL SR", "5.1": "FL FR FC LFE BL BR",
        "5.1(side)": "FL FR FC LFE SL SR", "6.1": "FL FR FC LFE BC SL SR",
        "7.1": "FL FR FC LFE BL BR SL SR",
    }  # fmt: skip
    return names[layout].split()


def _build_speech(sound: Sound, path: Path) -> None:
    spoken = path.with_name("spoken.wav")
    programs.run("espeak-ng", "-v", "en-us", "-s", "160", "-w", spoken, SPEECH_TEXT)
    chain = (
        f"aresample={sound.rate},aformat=channel_layouts={sound.layout},"
        f"apad,atrim=end_sample={sound.samples}"
    )
    programs.ffmpeg("-stream_loop", "-1", "-i", spoken, "-af", chain, "-bitexact",
                    "-c:a", "pcm_f32le", path)  # fmt: skip
    spoken.unlink()


def sound_file(cache: Cache, sound: Sound) -> Path:

    def build(path: Path) -> None:
        if sound.kind == "speech":
            _build_speech(sound, path)
        else:
            programs.ffmpeg("-filter_complex", _graph(sound), "-bitexact", "-c:a", "pcm_f32le",
                            path, timeout_s=300)  # fmt: skip

    recipe = SPEECH_TEXT if sound.kind == "speech" else _graph(sound)
    return cache.make(sound.stem, ".wav", f"{sound}\n{recipe}", build)
