"""What an operator says of summaries."""

from __future__ import annotations

from dataclasses import dataclass

from polymux.errors import InvalidRequestError

_LEAST_PART, _MOST_PART = 500, 200_000


@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Summaries of videos.

    Attributes:
        model: The chat model that writes them, as chats call it. Default: the first.
        language: What they are written in, such as ``"English"``. Default: the video's own.
        words: About how long they are. Default: 200.
        part_characters: Of a transcript, what the model reads at once; a token is three to four of
            them, and the model's window holds the part and what it answers. Default: 6000.
        captions: Whether a video's own captions are read where it has any, which is quicker than
            its speech. Default: true.

    Raises:
        InvalidRequestError: A number out of its range.

    Example:
        >>> SummaryOptions(words=80).part_characters
        6000
    """

    model: str = "default"
    language: str = ""
    words: int = 200
    part_characters: int = 6000
    captions: bool = True

    def __post_init__(self) -> None:
        """Checks what has a range."""
        if not _LEAST_PART <= self.part_characters <= _MOST_PART:
            raise InvalidRequestError(
                f"part_characters={self.part_characters}: must be from {_LEAST_PART} to "
                f"{_MOST_PART}"
            )
        if not 10 <= self.words <= 5000:
            raise InvalidRequestError(f"words={self.words}: must be from 10 to 5000")
