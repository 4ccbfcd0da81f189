"""Answers of servers on standard output: texts, addresses, saved files, or JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from polymux._util.text import display_name, printable
from polymux.cli import errors, exit_codes
from polymux.cli.terminal import write_json, write_line, write_text
from polymux.client.responses import ChatCompletion, Prediction, Song, SongList
from polymux.client.responses.prediction import files_of
from polymux.errors import PolymuxError
from polymux.media.media_file import MediaFile

if TYPE_CHECKING:
    from polymux.cli.download import Saver
    from polymux.cli.terminal import Screen


def show(result: Any, screen: Screen, *, as_json: bool = False, saver: Saver | None = None) -> int:
    """Prints a result of an operation, and saves its files.

    Args:
        result: What the client gave.
        screen: For what is no part of the answer.
        as_json: Print the whole answer as one JSON value.
        saver: Saves files, whose paths are printed then in the place of their addresses.

    Returns:
        The exit code.
    """
    files = files_of(result)
    lacks_files = saver is not None and not files and _should_have_files(result)
    if as_json:
        write_json({"url": str(result)} if isinstance(result, MediaFile) else result.json())
    elif not files:
        code = _text(result, screen)
        if not lacks_files:
            return code
    if saver is not None:
        if lacks_files:
            screen.complain("polymux: there is no file in the answer that could be saved")
            return exit_codes.SERVER_FAILED
        return _save(files, saver, screen, as_json=as_json)
    for _, file in files:
        if not as_json:
            write_line(str(file))
    return exit_codes.SUCCESS


def show_job(result: Any, screen: Screen, *, as_json: bool) -> bool:
    """Prints the id of a job that nobody waits for; False where the result is no job."""
    if not isinstance(result, Prediction):
        return False
    if as_json:
        write_json(result.json())
    else:
        write_line(result.id or "")
        screen.say(f"the job is {printable(result.status)}")
    return True


def _should_have_files(result: Any) -> bool:
    """Whether it is what an operation gives that makes files: a list of texts, or of nothing."""
    output = result.output if isinstance(result, Prediction) else None
    return isinstance(output, list) and all(isinstance(one, str) for one in output)


def _save(
    files: list[tuple[str, MediaFile]], saver: Saver, screen: Screen, *, as_json: bool
) -> int:
    """Fetches each file, whatever became of the others; the exit code of the first failure.

    The work is done and perhaps paid for: nobody shall have to ask for it again.
    """
    code = exit_codes.SUCCESS
    for number, (label, file) in enumerate(files):
        screen.draw(f"fetching {file}")
        try:
            path = display_name(str(saver.save(file, label)))
        except PolymuxError as error:
            screen.clear()
            screen.complain(f"polymux: the file is at {file}")
            code = code or errors.report(error)
            continue
        except BaseException:  # Ctrl-C too
            for _, left in files[number:]:
                screen.complain(f"polymux: the file is at {left}")
            raise
        screen.clear()
        screen.say(f"saved {path}") if as_json else write_line(path)
    return code


def _text(result: Any, screen: Screen) -> int:
    if isinstance(result, SongList):
        for song in result:
            _song(song)
        if not result:
            screen.say("nothing was found")
    elif isinstance(result, Song):
        _song(result)
    elif isinstance(result, ChatCompletion):
        _completion(result, screen)
    elif isinstance(result, Prediction):
        return _prediction(result, screen)
    else:
        write_whole(result.text)
    return exit_codes.SUCCESS


def write_whole(text: str) -> None:
    """A text with a line end at its end, for terminals and programs that read lines."""
    write_text(text if text.endswith("\n") else text + "\n")


def _song(song: Song) -> None:
    names = (song.name, song.url)
    write_text("\t".join(printable(name) for name in names if name) + "\n")


def _prediction(job: Prediction, screen: Screen) -> int:
    output = job.output
    if output is None:
        screen.complain("polymux: the job has come to its end and has made nothing")
        return exit_codes.SERVER_FAILED
    readable = isinstance(output, (str, list)) or (isinstance(output, dict) and "text" in output)
    if readable and not (isinstance(output, list) and any(isinstance(o, str) for o in output)):
        write_whole(job.text)
    else:
        write_json(output)
    return exit_codes.SUCCESS


def _completion(completion: ChatCompletion, screen: Screen) -> None:
    for number, choice in enumerate(completion.choices):
        message = choice.message
        if message.reasoning:
            screen.say_text(message.reasoning)
        if message.content:
            write_whole(("\n" if number else "") + message.content)
        tell_end(
            choice.finish_reason, [(one.name, one.arguments) for one in message.tool_calls], screen
        )


def tell_end(reason: str | None, calls: list[tuple[str, str]], screen: Screen) -> None:
    """Says how an answer ended, where that is more than its good end."""
    for name, arguments in calls:
        screen.say(f"the model asks for {display_name(name)}({printable(arguments)})")
    if reason == "length":
        screen.say("the answer is cut: it has reached its longest length")
    elif reason == "content_filter":
        screen.say("the answer is cut: the server's filter stopped it")
