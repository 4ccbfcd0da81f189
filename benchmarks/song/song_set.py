"""A set on disk: masters, the encoded files to index, and a manifest of both."""

from __future__ import annotations

import json
import multiprocessing
import os
import shutil
from dataclasses import asdict, dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from benchmarks.song import beds, media, names, tracks
from benchmarks.song.signals import RATE_HZ, Sound, from_int16, generator, power, to_int16

if TYPE_CHECKING:
    from pathlib import Path

    from benchmarks.song.tracks import Plan

FORMAT = 1  # of the manifest and of the generator's output for a seed
PROCESSES = 2
BED_S = 60
BEDS = 4  # per kind
# Encodings of the indexed files: file extension, ffmpeg's arguments.
CODECS: dict[str, tuple[str, ...]] = {
    "mp3-128": ("mp3", "-c:a", "libmp3lame", "-b:a", "128k"),
    "mp3-192": ("mp3", "-c:a", "libmp3lame", "-b:a", "192k"),
    "mp3-vbr": ("mp3", "-c:a", "libmp3lame", "-q:a", "4"),
    "aac": ("m4a", "-c:a", "aac", "-b:a", "128k", "-movflags", "+faststart"),
    "vorbis": ("ogg", "-c:a", "libvorbis", "-q:a", "4"),
    "opus": ("opus", "-c:a", "libopus", "-b:a", "96k"),
    "flac": ("flac", "-c:a", "flac"),
}


@dataclass(frozen=True)
class Track:
    """A track of a set.

    Attributes:
        name: Unique name, which a recognizer returns.
        style: Key of `styles.STYLES`.
        relation: `song`, `sibling`, `live`, `loop`, `remaster` or `edit`; whether it is in the
            index is `inside`.
        partner: Related track, or empty.
        group: Name of the recording: remasters and edits have that of their source.
        inside: Whether it is in the index.
        seconds: Length.
        channels: 1 or 2.
        master: File of its samples below the set's folder.
        encoded: Indexed file; empty if it is outside.
        codec: Codec of that file.
        title: Title tag.
        artist: Artist tag.
        album: Album tag.
        year: Year tag.
    """

    name: str
    style: str
    relation: str
    partner: str
    group: str
    inside: bool
    seconds: float
    channels: int
    master: str
    encoded: str
    codec: str
    title: str
    artist: str
    album: str
    year: int


class SongSet:
    """A set on disk.

    Args:
        folder: Folder that `generate` has written.

    Raises:
        FileNotFoundError: The folder has no set.

    Example:
        >>> songs = SongSet(Path("set"))  # doctest: +SKIP
        >>> songs.master(songs.indexed[0]).shape  # doctest: +SKIP
        (1984500, 2)
    """

    def __init__(self, folder: Path) -> None:
        manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text())
        self.folder = folder
        self.seed: int = manifest["seed"]
        self.tracks = [Track(**one) for one in manifest["tracks"]]
        self.by_name = {one.name: one for one in self.tracks}

    @property
    def indexed(self) -> list[Track]:
        """Return the tracks in the index, in order."""
        return [one for one in self.tracks if one.inside]

    def outside(self, relation: str) -> list[Track]:
        """Return the tracks outside the index with this relation; `song` is an unrelated song."""
        return [one for one in self.tracks if not one.inside and one.relation == relation]

    def master(self, track: Track) -> npt.NDArray[np.int16]:
        """Return the samples at RATE_HZ, shape (frames, channels), as a memory map."""
        return np.load(self.folder / track.master, mmap_mode="r")  # type: ignore[no-any-return]

    def bed(self, kind: str, number: int) -> Sound:
        """Return a minute of `babble`, `street` or `speech` with unit power."""
        path = self.folder / "beds" / f"{kind}-{number % BEDS}.npy"
        sound: Sound = np.load(path, mmap_mode="r")
        return sound


def generate(folder: Path, seed: int, count: int, share: float = 1.0) -> SongSet:
    """Generate a set, unless the folder already has the same one.

    Args:
        folder: Output directory; created if missing.
        seed: Seed of the whole set.
        count: Tracks in the index, including related ones; at least 15.
        share: Share of the normal track length of 60 to 120 s.

    Raises:
        ValueError: Too few tracks, or the folder has a different set.
    """
    wanted = {"format": FORMAT, "seed": seed, "count": count, "share": share}
    manifest = folder / "manifest.json"
    if manifest.exists():
        known = json.loads(manifest.read_text())
        if {key: known.get(key) for key in wanted} != wanted:
            raise ValueError(
                f"{folder} contains a different set (or one of an older generator). Remove it"
            )
        return SongSet(folder)
    plans = tracks.drawn_up(seed, count, share)
    for name in ("masters", "indexed", "beds"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    described = [
        describe(seed, number, one, tags)
        for number, (one, tags) in enumerate(zip(plans, names.tags(seed, len(plans)), strict=True))
    ]
    sources = {one.name: one for one in plans}
    with multiprocessing.get_context("fork").Pool(PROCESSES) as pool:
        minutes = [(kind, number) for kind in beds.KINDS for number in range(BEDS)]
        pool.map(partial(make_bed, folder, seed), minutes, chunksize=1)
        first = [one for one in plans if one.relation not in {"remaster", "edit"}]
        for number, _ in enumerate(pool.imap_unordered(partial(make_master, folder, {}), first)):
            if (number + 1) % 50 == 0:
                print(f"{number + 1} of {len(first)} masters ...", flush=True)
        changed = [one for one in plans if one.relation in {"remaster", "edit"}]
        pool.map(partial(make_master, folder, sources), changed, chunksize=1)
        pool.map(partial(encode, folder), [one for one in described if one.inside], chunksize=1)
    found = [with_length(folder, one) for one in described]
    text = json.dumps(
        {**wanted, "tracks": [asdict(one) for one in found]}, ensure_ascii=False, indent=0
    )
    partly = folder / "manifest.partly"
    partly.write_text(text)
    partly.replace(manifest)
    return SongSet(folder)


def describe(seed: int, number: int, plan: Plan, tags: names.Tags) -> Track:
    """Return the track for a plan, before it is generated."""
    same = plan.relation in {"remaster", "edit"}
    codec = str(generator(seed, "codec", number).choice(list(CODECS)))
    ending = CODECS[codec][0]
    return Track(
        plan.name, plan.style, plan.relation, plan.partner, plan.partner if same else plan.name,
        plan.inside, plan.seconds, plan.channels, f"masters/{plan.name}.npy",
        f"indexed/{plan.name}.{ending}" if plan.inside else "", codec if plan.inside else "",
        tags.title, tags.artist, tags.album, tags.year,
    )  # fmt: skip


def with_length(folder: Path, track: Track) -> Track:
    """Return the track with its final length: edits are shorter than planned."""
    frames = np.load(folder / track.master, mmap_mode="r").shape[0]
    return Track(**{**asdict(track), "seconds": round(frames / RATE_HZ, 3)})


def make_master(folder: Path, sources: dict[str, Plan], plan: Plan) -> None:
    """Write the samples of a track.

    Remasters and edits are made from tracks that are already written.
    """
    target = folder / "masters" / f"{plan.name}.npy"
    if target.exists():
        return
    if plan.relation in {"remaster", "edit"}:
        source = sources[plan.partner]
        samples = np.load(folder / "masters" / f"{source.name}.npy")
        master = (samples.T / np.float32(32767)).astype(np.float32)
        if plan.relation == "remaster":
            sound = tracks.remastered(plan, master)
        else:
            sound = tracks.edited(generator(plan.seeds.take, "edit"), master)
    else:
        sound = tracks.render(plan)
    partly = target.with_suffix(f".{os.getpid()}.npy")
    np.save(partly, to_int16(sound))
    partly.replace(target)


def encode(folder: Path, track: Track) -> None:
    """Encode a master as a file to index, with tags. Most files have 44.1 kHz."""
    target = folder / track.encoded
    if target.exists():
        return
    samples = np.load(folder / track.master)
    rate = generator(0, track.name, "rate").choice(["22050", "44100", "44100", "48000"])
    rate = "48000" if track.codec == "opus" else rate  # Opus supports no other rate
    tags = {
        "title": track.title,
        "artist": track.artist,
        "album": track.album,
        "date": str(track.year),
    }
    metadata = [
        word for key, value in tags.items() if value for word in ("-metadata", f"{key}={value}")
    ]
    partly = folder / f"partly-{os.getpid()}{target.suffix}"
    media.ffmpeg(*media.raw_input(channels=track.channels), *metadata, "-ar", str(rate),
                 *CODECS[track.codec][1:], partly, given=samples.tobytes())  # fmt: skip
    shutil.move(partly, target)


def make_bed(folder: Path, seed: int, which: tuple[str, int]) -> None:
    """Write a minute of a slowly generated noise."""
    kind, number = which
    target = folder / "beds" / f"{kind}-{number}.npy"
    if target.exists():
        return
    random = generator(seed, "bed", kind, number)
    sound = beds.KINDS[kind](random, BED_S * RATE_HZ)
    partly = target.with_suffix(f".{os.getpid()}.npy")
    np.save(partly, (sound / np.sqrt(power(sound))).astype(np.float32))
    partly.replace(target)


def cut(songs: SongSet, track: Track, start: int, frames: int) -> Sound:
    """Return a piece of a master as mono."""
    return from_int16(np.asarray(songs.master(track)[start : start + frames]))
