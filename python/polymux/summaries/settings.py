"""What an operator says of summaries."""

from __future__ import annotations

from dataclasses import dataclass, field

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import check, rule


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
    words: int = field(default=200, metadata=rule(min=10, max=5000))
    part_characters: int | None = field(default=None, metadata=rule(min=500, max=200_000))
    captions: bool = True
    max_parts: int = field(default=256, metadata=rule(min=1, max=10_000))
    total_s: float = 1800.0

    __post_init__ = check
