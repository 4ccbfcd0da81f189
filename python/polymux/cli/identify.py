"""`polymux identify-song` and `polymux search-music` on the local song index."""

from __future__ import annotations

import argparse
import math
import os
from typing import TYPE_CHECKING, Any

from polymux._util.text import clock, display_name, printable, shown
from polymux.cli import calls, errors, server, songs
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import ExitCode
from polymux.cli.operation_arguments import extra_body_of, values_of
from polymux.cli.terminal import Screen, standard_input, write_json, write_text
from polymux.errors import InvalidRequestError, NoMatchError
from polymux.songs.settings import served_folder
from polymux.songs.song_index import SongIndex

if TYPE_CHECKING:
    from polymux.cli.operation_arguments import Command
    from polymux.songs.results import IndexedSong, Match

OPERATIONS = ("identify_song", "search_music")
HELP = """\
With --local, --song-index or --listen, the command uses the local song index, which 'polymux songs
add' creates. --json then prints all data of a song; identify-song adds offset_s, speed, tempo,
pitch, confidence and runner_up.

"""
_MAX_LISTENING_S = 600.0


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Add the options of the song index to an operation's arguments."""
    group = parser.add_argument_group("song index")
    songs.add_song_index_argument(group, "Directory of the song index to use")
    if command.operation == "identify_song":
        group.add_argument(
            "--listen",
            dest="listen_s",
            type=_seconds,
            metavar="SECONDS",
            help="Record from the microphone for 1 to 600 seconds, instead of reading a file",
        )
        confidence = group.add_argument(
            "--min-confidence",
            type=float,
            metavar="SHARE",
            help="Minimum confidence of a match, 0.5 to 0.99 (default: 0.85)",
        )
        add_old_option(group, "--least-confidence", confidence)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= _MAX_LISTENING_S:
        raise argparse.ArgumentTypeError(
            f"invalid value (got {shown(text)}, allowed a number of seconds from 1 to 600)"
        )
    return seconds


def run(command: Command, options: argparse.Namespace) -> int:
    """Use the local song index if requested, else a server. Return the exit code."""
    listens = getattr(options, "listen_s", None) is not None
    if not (options.local or options.song_index is not None or listens):
        if getattr(options, "min_confidence", None) is not None:
            raise InvalidRequestError(
                "--min-confidence: requires the local song index. Add --local, --song-index or "
                "--listen"
            )
        return calls.run(command, options)
    folder = served_folder(options.song_index)
    # Without a song index, `Local` reports the alternatives.
    if not listens and folder is None:
        return calls.run(command, options)
    why = (
        "cannot be used with --local, --song-index or --listen, which search the local song index. "
        "Omit one of them"
    )
    if options.server is not None:
        raise InvalidRequestError(f"--server: {why}")
    # This includes --timeout, because the search is one call that cannot be interrupted.
    server.refuse_without_server(options, why, has_deadline=False)
    if extra_body_of(options):
        raise InvalidRequestError("--extra-body: not supported by the local song index")
    errors.is_done_here()
    values = values_of(command, options)
    screen = Screen(quiet=options.quiet)
    with SongIndex(folder) as index:
        act = _identify if command.operation == "identify_song" else _search
        return act(options, values, index, screen)


def _identify(
    options: argparse.Namespace, values: dict[str, Any], index: SongIndex, screen: Screen
) -> int:
    source: Any = values.get("file")
    if source is None and options.listen_s is None:
        raise InvalidRequestError("SOURCE: missing. Pass a file, or use --listen SECONDS")
    if source is not None and options.listen_s is not None:
        raise InvalidRequestError("SOURCE and --listen cannot be used together")
    if source is None:
        from polymux.cli.record import recorded

        source = recorded(options.listen_s, screen)
    elif isinstance(source, tuple):
        source = standard_input()
    match = index.identify(source, min_confidence=options.min_confidence)
    if match is None:
        words = "no song in the song index matches this recording"
        if next(index.songs(), None) is None:
            words = "the song index is empty. Run 'polymux songs add DIR' to add your music"
        raise NoMatchError(words)
    if options.as_json:
        write_json(match.to_dict())
    else:
        _show(match.song)
        _explain(match, screen)
    return ExitCode.SUCCESS


def _show(song: IndexedSong) -> None:
    """Print a song like one from a server, with its file instead of a URL."""
    write_text(f"{printable(song.name)}\t{display_name(os.fsencode(song.path))}\n")


def _explain(match: Match, screen: Screen) -> None:
    facts = [f"offset {clock(match.offset_s)}", f"confidence {match.confidence:.2f}"]
    for name in ("tempo", "pitch"):
        factor = getattr(match, name)
        if round(factor, 3) != 1:
            facts.append(f"{name} {factor - 1:+.1%}")
    screen.say(", ".join(facts))


def _search(
    options: argparse.Namespace, values: dict[str, Any], index: SongIndex, screen: Screen
) -> int:
    if "song" not in values:
        raise InvalidRequestError("SONG: missing. Pass a title, an artist, or both")
    found = index.search(values["song"], values.get("limit", 5))
    if options.as_json:
        write_json([song.to_dict() for song in found])
        return ExitCode.SUCCESS
    for song in found:
        _show(song)
    if not found:
        screen.say("no results")
    return ExitCode.SUCCESS
