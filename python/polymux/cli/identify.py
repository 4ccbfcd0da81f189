"""`polymux identify-song` and `polymux search-music` on the catalogue of this computer."""

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
from polymux.songs.catalogue import Catalogue
from polymux.songs.settings import served_folder

if TYPE_CHECKING:
    from polymux.cli.operation_arguments import Command
    from polymux.songs.results import CatalogueSong, Match

OPERATIONS = ("identify_song", "search_music")
HELP = """\
With --local, --catalogue or --listen the catalogue of this computer is asked, which 'polymux songs
add' fills; --json then has all that it knows of a song, and of identify-song also offset_s, speed,
tempo, pitch, confidence and runner_up.

"""
_MAX_LISTENING_S = 600.0


def add_arguments(parser: argparse.ArgumentParser, command: Command) -> None:
    """Adds what the catalogue needs to an operation's own arguments."""
    group = parser.add_argument_group("catalogue")
    songs.add_catalogue_argument(group, "ask the catalogue in this folder")  # type: ignore[arg-type]
    if command.operation == "identify_song":
        group.add_argument(
            "--listen",
            dest="listen_s",
            type=_seconds,
            metavar="SECONDS",
            help="ask about what the microphone hears, in the place of a file",
        )
        confidence = group.add_argument(
            "--min-confidence",
            type=float,
            metavar="SHARE",
            help="from which confidence on the catalogue names a song, 0.5 to 0.99 (default: 0.85)",
        )
        add_old_option(group, "--least-confidence", confidence)


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 1 <= seconds <= _MAX_LISTENING_S:
        raise argparse.ArgumentTypeError(f"{shown(text)} is no number of seconds from 1 to 600")
    return seconds


def run(command: Command, options: argparse.Namespace) -> int:
    """Asks the catalogue of this computer, or what every operation asks; the exit code."""
    listens = getattr(options, "listen_s", None) is not None
    if not (options.local or options.catalogue is not None or listens):
        if getattr(options, "min_confidence", None) is not None:
            raise InvalidRequestError(
                "--min-confidence is for the catalogue of this computer: add --local, --catalogue "
                "or --listen"
            )
        return calls.run(command, options)
    # Of a catalogue that nobody has made, `Local` says what else could be asked.
    if not listens and served_folder(options.catalogue) is None:
        return calls.run(command, options)
    instead = "the catalogue of this computer is asked, and no server"
    if options.server is not None:
        raise InvalidRequestError(f"no use for --server: {instead}")
    # Of the time too: the search is one call, which nothing ends in its midst.
    server.refuse_without_server(options, instead, has_deadline=False)
    if extra_body_of(options):
        raise InvalidRequestError("the catalogue of this computer takes no --extra-body")
    errors.is_done_here()
    values = values_of(command, options)
    screen = Screen(quiet=options.quiet)
    with Catalogue(options.catalogue) as catalogue:
        act = _identify if command.operation == "identify_song" else _search
        return act(options, values, catalogue, screen)


def _identify(
    options: argparse.Namespace, values: dict[str, Any], catalogue: Catalogue, screen: Screen
) -> int:
    source: Any = values.get("file")
    if (source is None) == (options.listen_s is None):
        raise InvalidRequestError("give either a file or --listen SECONDS")
    if source is None:
        from polymux.cli.record import recorded

        source = recorded(options.listen_s, screen)
    elif isinstance(source, tuple):
        source = standard_input()
    match = catalogue.identify(source, min_confidence=options.min_confidence)
    if match is None:
        words = "no song of the catalogue is like this"
        if next(catalogue.songs(), None) is None:
            words = "the catalogue is empty: 'polymux songs add FOLDER' fills it"
        raise NoMatchError(words)
    if options.as_json:
        write_json(match.to_dict())
    else:
        _show(match.song)
        _explain(match, screen)
    return ExitCode.SUCCESS


def _show(song: CatalogueSong) -> None:
    """As songs of servers are shown, with the file in the place of a page."""
    write_text(f"{printable(song.name)}\t{display_name(os.fsencode(song.path))}\n")


def _explain(match: Match, screen: Screen) -> None:
    facts = [f"from {clock(match.offset_s)} on", f"confidence {match.confidence:.2f}"]
    for name in ("tempo", "pitch"):
        factor = getattr(match, name)
        if round(factor, 3) != 1:
            facts.append(f"{name} {factor - 1:+.1%}")
    screen.say(", ".join(facts))


def _search(
    options: argparse.Namespace, values: dict[str, Any], catalogue: Catalogue, screen: Screen
) -> int:
    if "song" not in values:
        raise InvalidRequestError("give what to look for: a title, an artist, or both")
    found = catalogue.search(values["song"], values.get("limit", 5))
    if options.as_json:
        write_json([song.to_dict() for song in found])
        return ExitCode.SUCCESS
    for song in found:
        _show(song)
    if not found:
        screen.say("nothing was found")
    return ExitCode.SUCCESS
