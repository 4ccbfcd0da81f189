"""Runs every operation of polymux once, through its own server. Run by scripts/demo --all."""

import argparse
import signal
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import polymux
from demo_media import ROOT, Media, make_all
from demo_served import DemoError, DemoServer, fetch_models, models_folder, served
from demo_steps import STEPS, Tour

FOLDER = ROOT / "build/demo/all"
_INDENT = " " * 6


def _filled(line: str) -> str:
    """Wrap a line, but not within the name of a command."""
    return textwrap.fill(
        line, 110, initial_indent=_INDENT, subsequent_indent=_INDENT, break_on_hyphens=False
    )


def main() -> int:
    parser = argparse.ArgumentParser(prog="scripts/demo --all", description=__doc__)
    parser.add_argument("--keep", action="store_true", help="keep the server running until Ctrl-C")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="folder for all files")
    given = parser.parse_args()
    # Signals that end this program also stop the server.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGHUP, signal.default_int_handler)

    folder = given.folder.absolute()
    folder.mkdir(parents=True, exist_ok=True)
    models = models_folder(folder)
    began = time.monotonic()
    fetched = fetch_models(models)
    _tell(f"downloaded models: {', '.join(fetched) or 'none, all are present'}", began)
    began = time.monotonic()
    media = make_all(folder / "media")
    _tell("made speech, images, music and a video on this machine", began)
    began = time.monotonic()
    with polymux.SongIndex(folder / "songs"):
        pass  # The server opens the song index only when it starts, so the index must exist.
    with served(folder, media, models) as server:
        _tell(f"started a server at {server.url}", began)
        failed = _show(server, folder, media)
        return _end(server, failed, keep=given.keep)


def _show(server: DemoServer, folder: Path, media: Media) -> list[str]:
    """Run all steps; return the names of those that failed."""
    results = folder / "results"
    results.mkdir(exist_ok=True)
    failed = []
    began = time.monotonic()
    with server.client() as client:
        tour = Tour(client, server, media, results)
        for number, (name, meaning, doing) in enumerate(STEPS, 1):
            print(f"\n{number:2d}  {name}: {meaning}", flush=True)
            step_began = time.monotonic()
            try:
                lines = doing(tour)
            except (DemoError, polymux.PolymuxError) as error:
                failed.append(name)
                lines = [f"FAILED: {error}"]
            lines.append(f"took {time.monotonic() - step_began:.1f} s")
            for line in filter(None, lines):
                print(_filled(line))
            sys.stdout.flush()
    print(f"\n{len(STEPS)} steps in {time.monotonic() - began:.0f} s; files are in {results}")
    return failed


def _end(server: DemoServer, failed: list[str], *, keep: bool) -> int:
    print(f"web UI: {server.url}/ (API key: the first line of {server.key_file})")
    if failed:
        print(f"failed: {', '.join(failed)}", file=sys.stderr)
    if keep:
        with suppress(KeyboardInterrupt):
            print("the server runs until Ctrl-C", flush=True)
            server.wait()
    else:
        print("stopping the server; scripts/demo --all --keep keeps it running")
    return 1 if failed else 0


def _tell(what: str, began: float) -> None:
    print(f"{what} ({time.monotonic() - began:.1f} s)", flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(130)
    except (DemoError, polymux.PolymuxError) as error:
        sys.exit(f"demo: {error}")
