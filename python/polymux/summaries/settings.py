"""What an operator says of summaries."""

from __future__ import annotations

from dataclasses import dataclass

from polymux._util.deprecation import renamed_arguments
from polymux.errors import InvalidRequestError

_MIN_PART_CHARACTERS, _MAX_PART_CHARACTERS = 500, 200_000
_MAX_PARTS = 10_000


@renamed_arguments(most_parts="max_parts")
@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Summaries of videos.

    Attributes:
        model: The chat model that writes them, as chats call it. Default: the first.
        language: What they are written in, such as ``"English"``. Default: the video's own.
        words: About how long they are. Default: 200.
        part_characters: Of a transcript, the most that the model reads at once; a token is three to
            four of them. Default: what the model's window holds beside its answer where that is
            known, as of engines of this machine, else 6000. Where it is known no part is longer.
        captions: Whether a video's own captions are read where it has any, which is quicker than
            its speech. Default: true.
        max_parts: Of one video, so many are read; a transcript that has more is refused. Default:
            256.
        total_s: Longest time for one, in seconds: its download, its speech and all chats, with
            their waiting. Default: 1800.

    Raises:
        InvalidRequestError: A number out of its range.

    Example:
        >>> SummaryOptions(words=80).language
        ''
    """

    model: str = "default"
    language: str = ""
    words: int = 200
    part_characters: int | None = None
    captions: bool = True
    max_parts: int = 256
    total_s: float = 1800.0

    def __post_init__(self) -> None:
        """Checks what has a range."""
        given = self.part_characters
        if given is not None and not _MIN_PART_CHARACTERS <= given <= _MAX_PART_CHARACTERS:
            raise InvalidRequestError(
                f"part_characters={given}: must be from {_MIN_PART_CHARACTERS} to "
                f"{_MAX_PART_CHARACTERS}"
            )
        if not 10 <= self.words <= 5000:
            raise InvalidRequestError(f"words={self.words}: must be from 10 to 5000")
        if not 1 <= self.max_parts <= _MAX_PARTS:
            raise InvalidRequestError(f"max_parts={self.max_parts}: must be from 1 to {_MAX_PARTS}")
        if not self.total_s > 0:
            raise InvalidRequestError(f"total_s={self.total_s}: must be above 0")
