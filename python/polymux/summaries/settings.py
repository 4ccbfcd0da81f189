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
        model: Chat model that writes the summaries. Default: the first chat model.
        language: Language of the summaries, such as ``"English"``. Default: that of the video.
        words: Approximate length of a summary. Default: 200.
        part_characters: Maximum characters of the transcript in one chat request. A token has three
            to four characters. Default: as many as fit the model's context window; 6,000 if that
            is unknown.
        captions: Use a video's captions, if it has some, instead of transcribing its speech.
            Default: true.
        max_parts: Maximum parts of one transcript; a longer one is refused. Default: 256.
        total_s: Maximum time of one summary, with download, transcription and chats. Default: 1800.

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
