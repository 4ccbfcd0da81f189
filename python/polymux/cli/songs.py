"""`polymux songs`: manage the index of your music library."""

from __future__ import annotations

import argparse
import os
from functools import partial
from typing import TYPE_CHECKING, Any

from polymux._util.deprecation import notice
from polymux._util.text import clock, display_name, shown, size
from polymux.cli import JSON, JSON_LINES, add_action
from polymux.cli.deprecation import add_old_option
from polymux.cli.errors import EPILOG, ExitCode, say
from polymux.cli.terminal import Screen, write_json, write_line, write_text
from polymux.songs.export import pieces
from polymux.songs.song_index import SongIndex

if TYPE_CHECKING:
    from collections.abc import Callable

    from polymux.cli import Parser
    from polymux.songs.results import AddProgress, AddReport, IndexedSong

WHERE = """\
The song index is stored in the directory of --song-index, else POLYMUX_SONG_INDEX, else
'index_dir' in [songs] of the configuration file, else polymux/songs in $XDG_DATA_HOME or
~/.local/share.

"""
_ADD_EPILOG = """\
Hidden files, and files with the suffixes of images and texts, are skipped. After an interruption,
run the same command again to add the rest. 'polymux identify-song --local' and 'polymux
search-music --local' search the index.

With --json, each line of standard output is one object:
  {"status": "added" | "updated" | "moved" | "duplicate" | "unchanged" | "missing", "path"}
  {"status": "failed", "path", "error": {"type", "code", "message", ...}}
  {"status": "summary", "added", "updated", "moved", "duplicates", "unchanged", "missing", "failed",
   "audio_s", "elapsed_s"}                                                     (the last line)

"""


def describe(parser: Parser) -> None:
    parser.description = "Manage the index of your music library, for recognition and search."
    parser.epilog = WHERE + EPILOG
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    added = _add(
        actions, "add", _add_files, "add songs from files and directories", _ADD_EPILOG, JSON_LINES
    )
    added.add_argument("sources", metavar="FILE_OR_DIR", nargs="+", help="File or directory")
    rescan = _add(
        actions, "rescan", _rescan, "update the index after file changes", _ADD_EPILOG, JSON_LINES
    )
    for one in (added, rescan):
        one.add_argument(
            "-j",
            "--workers",
            type=int,
            metavar="N",
            help="Number of files to process in parallel (default: the number of available cores)",
        )
    _add(actions, "list", _list, "list all songs", json_help=JSON_LINES)
    gone = _add(actions, "rm", _remove, "remove songs from the index (files are kept)")
    gone.add_argument(
        "songs", metavar="SONG", nargs="+", help="Number shown by 'list', a file, or a directory"
    )
    _add(actions, "check", _check, "check the index for damage and missing files")
    _add(actions, "stats", _stats, "show statistics of the index")
    exported = _add(actions, "export", _export, "export the data of all songs", json_help=None)
    exported.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        default="-",
        help="Output file; - is standard output (default: -)",
    )
    exported.add_argument("old_output", metavar="FILE", nargs="?", help=argparse.SUPPRESS)
    exported.add_argument(
        "--format", choices=("json", "csv"), default="json", help="Output format (default: json)"
    )
    exported.add_argument(
        "--overwrite", action="store_true", help="Replace an existing output file"
    )


def _add(
    actions: Any,
    name: str,
    act: Callable[..., int],
    summary: str,
    more: str = "",
    json_help: str | None = JSON,
) -> argparse.ArgumentParser:
    parser = add_action(
        actions, name, partial(_run, act), summary, more=more + WHERE, json_help=json_help
    )
    add_song_index_argument(parser)
    return parser


def add_song_index_argument(parser: argparse._ActionsContainer, words: str = "") -> None:
    option = parser.add_argument(
        "--song-index", metavar="DIR", help=words or "Directory of the song index; see below"
    )
    add_old_option(parser, "--catalogue", option)


def _run(act: Callable[..., int], options: argparse.Namespace) -> int:
    with SongIndex(options.song_index) as index:
        return act(options, index, Screen(quiet=options.quiet))


def _tell(screen: Screen, now: AddProgress, *, as_json: bool) -> None:
    """Report the result for a file, and the overall progress."""
    path = display_name(os.fsencode(now.path))
    if as_json:
        line: dict[str, Any] = {"status": now.outcome, "path": path}
        if now.error is not None:
            line["error"] = now.error.to_dict()
        write_json(line)
    elif now.error is not None:
        words = str(now.error).removeprefix(f"{path}: ")
        screen.complain(f"polymux: {path}: not added: {words}")
    elif now.outcome == "missing":
        screen.complain(f"polymux: {path}: file not found")
    elif now.outcome != "unchanged":
        screen.say(f"{path}: {now.outcome}")
    speed = f"  {now.audio_s / now.elapsed_s:.0f}x" if now.elapsed_s > 0 else ""
    share = now.done / max(1, now.total)
    screen.draw(f"{now.done} of {now.total} files  {share:4.0%}{speed}")


def _add_files(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:
    return _indexed(partial(index.add, options.sources), options, screen)


def _rescan(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:
    return _indexed(index.rescan, options, screen)


def _indexed(update: Callable[..., AddReport], options: argparse.Namespace, screen: Screen) -> int:
    """Update the index and report each file. Files that are not music do not count as failed."""
    try:
        report = update(
            workers=options.workers,
            on_progress=partial(_tell, screen, as_json=options.as_json),
        )
    finally:
        screen.clear()
    counts = {
        "added": report.added,
        "updated": report.updated,
        "moved": report.moved,
        "duplicates": report.duplicates,
        "unchanged": report.unchanged,
        "missing": len(report.missing),
        "failed": len(report.failed),
    }
    if options.as_json:
        times = {"audio_s": round(report.audio_s, 3), "elapsed_s": round(report.elapsed_s, 3)}
        write_json({"status": "summary", **counts, **times})
    else:
        summary = ", ".join(f"{count} {word}" for word, count in counts.items() if count)
        screen.say(f"{summary or 'no files'} in {report.elapsed_s:.1f} s")
    return ExitCode.FAILURE if report.failed else ExitCode.SUCCESS


def _list(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:
    count = 0
    for song in index.songs():
        count += 1
        if options.as_json:
            write_json(song.to_dict())
        else:
            write_line(line_of(song))
    if count == 0:
        screen.say("the song index is empty. Run 'polymux songs add DIR' to add your music")
    return ExitCode.SUCCESS


def line_of(song: IndexedSong) -> str:
    """Return a line with number, duration, name and file of a song."""
    path = display_name(os.fsencode(song.path))
    return f"{song.id:>6}  {clock(song.duration_s):>7}  {song.name}  ({path})"


def _remove(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:
    removed, code = 0, ExitCode.SUCCESS
    for one in options.songs:
        is_number = one.isascii() and one.isdigit() and not os.path.lexists(one)
        count = index.remove(int(one) if is_number else one)
        removed += count
        if count == 0:
            screen.complain(f"polymux: song not found in the index: {shown(one)}")
            code = ExitCode.NOT_FOUND
    if options.as_json:
        write_json({"removed": removed})
    else:
        screen.say(f"{removed} removed")
    return code


def _check(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:
    report = index.check()
    found = {
        "problems": list(report.problems),
        "damaged_segments": list(report.damaged_segments),
        "missing": [song.to_dict() for song in report.missing],
        "stale": [song.to_dict() for song in report.stale],
    }
    if options.as_json:
        write_json({"is_whole": report.is_whole, **found})
        return ExitCode.SUCCESS if report.is_whole else ExitCode.FAILURE
    for problem in report.problems:
        write_line(f"damaged: {problem}")
    for segment in report.damaged_segments:
        write_line(f"damaged, rebuilt: {segment}")
    for song in report.missing:
        write_line(f"file not found: {line_of(song)}")
    for song in report.stale:
        write_line(f"out of date, run 'polymux songs rescan': {line_of(song)}")
    if report.is_whole:
        screen.say("the song index is valid")
    return ExitCode.SUCCESS if report.is_whole else ExitCode.FAILURE


def _stats(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:  # noqa: ARG001
    found = index.stats()
    if options.as_json:
        plain = {name: getattr(found, name) for name in found.__slots__}
        write_json({"folder": display_name(os.fsencode(index.path)), **plain})
        return ExitCode.SUCCESS
    write_line(f"directory   {display_name(os.fsencode(index.path))}")
    write_line(f"songs       {found.songs} ({clock(found.duration_s)})")
    write_line(f"recordings  {found.recordings}, in {found.groups} groups")
    write_line(f"database    {size(found.database_bytes)}, {found.library}")
    native = found.index
    write_line(f"index       {size(native['bytes'])} in {native['segments']} segments")
    return ExitCode.SUCCESS


def _export(options: argparse.Namespace, index: SongIndex, screen: Screen) -> int:
    output = options.output
    if options.old_output is not None:
        say(notice("'polymux songs export FILE'", "--output FILE"))
        output = options.old_output
    if output == "-":
        for text in pieces(index.songs(), options.format):
            write_text(text)
        return ExitCode.SUCCESS
    index.export(output, options.format, overwrite=options.overwrite)
    screen.say(f"written: {display_name(output)}")
    return ExitCode.SUCCESS
