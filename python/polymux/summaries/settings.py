"""Settings of summaries."""

from __future__ import annotations

from dataclasses import dataclass, field

from polymux._util.deprecation import renamed_arguments
from polymux._util.settings import check, rule


@renamed_arguments(most_parts="max_parts")
@dataclass(frozen=True, slots=True)
class SummaryOptions:
    """Summaries of videos.

    Attributes:
        model: Chat model that writes the summary. Default: the first one.
        language: Language of the summary, such as ``"English"``. Default: that of the video.
        words: Approximate length of the summary. Default: 200.
        part_characters: Maximum number of transcript characters per chat; a token has three to
            four characters. A known context window of the model limits it too. Default: the space
            that the window leaves beside the answer, or 6000 if the window is unknown.
        captions: Use captions of a video instead of its speech, which is faster. Default: true.
        max_parts: Maximum number of parts of one video; longer transcripts are rejected.
            Default: 256.
        total_s: Maximum time for one summary in seconds, including download, transcription and
            chats. Default: 1800.

    Raises:
        InvalidRequestError: A number is out of range.

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

    def __post_init__(self) -> None:
        check(self)
