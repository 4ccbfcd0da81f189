"""What songs of one's own look like in a notebook."""

from __future__ import annotations

from typing import TYPE_CHECKING

from polymux._util.text import clock, size
from polymux.errors import PolymuxError
from polymux.notebook.cards import cover, key_values
from polymux.notebook.markup import escaped, is_address, link, table

if TYPE_CHECKING:
    from polymux.songs.results import AddReport, CatalogueSong, CatalogueStatistics, Match

__all__ = ["add_report", "catalogue_song", "match", "statistics"]

_COVER_PIXELS = 160


def catalogue_song(song: CatalogueSong) -> str:
    """A card: cover, title, artist, album, length."""
    try:
        picture = song.read_cover()
    except PolymuxError:
        picture = None  # The file is gone; what is known of it is not.
    shown = "" if picture is None else cover(picture, _COVER_PIXELS)
    # The file's own address is not shown: no browser follows it, and it says who keeps it where.
    name = link(song.url, song.name) if is_address(song.url) else escaped(song.name)
    facts = [escaped(song.album)] if song.album else []
    facts += [str(song.year)] if song.year is not None else []
    facts.append(clock(song.duration_s))
    return f"<div>{shown}<div><b>{name}</b></div><div>{', '.join(facts)}</div></div>"


def match(one: Match) -> str:
    """The song that was recognised: where in it, and how surely."""
    facts = [("at", clock(one.offset_s)), ("confidence", f"{one.confidence:.0%}")]
    for name in ("speed", "tempo", "pitch"):
        factor = getattr(one, name)
        if factor != 1.0:
            facts.append((name, f"{factor:.3f} times"))
    if one.runner_up is not None:
        second = one.runner_up
        facts.append(("next best", f"{second.song.name} ({second.confidence:.0%})"))
    return f"<div>{catalogue_song(one.song)}{key_values(facts)}</div>"


def add_report(report: AddReport) -> str:
    """What became of the files, and why some are not there."""
    names = ("added", "updated", "moved", "duplicates", "unchanged")
    facts = [(name, str(getattr(report, name))) for name in names if getattr(report, name)]
    facts += [("missing", str(len(report.missing)))] if report.missing else []
    facts.append(("listened to", f"{clock(report.audio_s)} in {report.elapsed_s:.1f} s"))
    if report.cancelled:
        facts.append(("ended", "before its end"))
    failed = [(escaped(one.path.name), escaped(one.error)) for one in report.failed]
    return key_values(facts) + (table(failed, ("failed", "why")) if failed else "")


def statistics(one: CatalogueStatistics) -> str:
    """How much a catalogue holds."""
    return key_values(
        [
            ("songs", one.songs),
            ("recordings", one.recordings),
            ("groups", one.groups),
            ("length", clock(one.duration_s)),
            ("database", f"{size(one.database_bytes)}, {one.library}"),
            *((f"index, {name}", number) for name, number in one.index.items()),
        ]
    )
