from __future__ import annotations

import pytest
from polymux import errors
from polymux.downloads.engine import _failure
from yt_dlp.utils import DownloadError, ExtractorError


def failure_of(words: str) -> errors.APIStatusError:
    inner = ExtractorError(words, expected=True)
    found = _failure(DownloadError(f"ERROR: {words}", (ExtractorError, inner, None)))
    assert isinstance(found, errors.APIStatusError)
    return found


@pytest.mark.parametrize(
    ("words", "status", "code"),
    [
        ("[site] a1: Private video. Sign in if you've been granted access to it", 404, "gone"),
        ("[site] a1: Video unavailable", 404, "gone"),
        ("[site] a1: This video has been removed by the uploader", 404, "gone"),
        ("[site] a1: Unable to download webpage: HTTP Error 410: Gone", 404, "gone"),
        ("[site] a1: Sign in to confirm your age", 502, "upstream_failed"),
        ("[site] a1: HTTP Error 403: Forbidden", 502, "upstream_failed"),
        ("[site] a1: This video is DRM protected", 422, "encrypted"),
        ("Unsupported URL: http://a.example/", 415, "unsupported_media"),
    ],
)
def test_what_a_site_says(words: str, status: int, code: str) -> None:
    """A private or removed video is `gone`; any other refusal is the site's failure."""
    error = failure_of(words)
    assert (error.status, error.code, error.param) == (status, code, "url")


def test_the_site_s_own_words() -> None:
    words = "Only members of the club may watch this video"
    assert words in str(failure_of(words))


@pytest.mark.parametrize(
    "words",
    [
        "Unable to extract title",
        "This video needs a login. Use --cookies-from-browser or --cookies for the authentication. "
        "See  https://github.com/yt-dlp/yt-dlp/wiki/FAQ  for how to manually pass cookies",
        "An extractor error has occurred. (caused by KeyError('formats'))",
        "Unable to download webpage: <urlopen error [Errno -2] Name or service not known>",
        "Requested format is not available. Use --list-formats for a list of available formats",
        "HTTP Error 503: Service Unavailable",
    ],
)
@pytest.mark.parametrize("expected", [True, False])
def test_no_word_of_yt_dlp_reaches_clients(
    words: str, capsys: pytest.CaptureFixture[str], *, expected: bool
) -> None:
    """The server's log has them."""
    inner = ExtractorError(words, expected=expected, video_id="a1", ie="generic")
    error = _failure(DownloadError(f"ERROR: {inner}", (ExtractorError, inner, None)))
    for internal in (
        "--",
        "[generic]",
        "github",
        "report",
        "ERROR",
        "caused by",
        "Errno",
        "extract",
    ):
        assert internal not in str(error)
    assert words[:20] in capsys.readouterr().err


@pytest.mark.parametrize("page", ["gift-certificate", "login", "redirect", "private"])
def test_the_name_of_the_page_is_no_reason(page: str) -> None:
    errors = [
        _failure(DownloadError(f"ERROR: {inner}", (ExtractorError, inner, None)))
        for inner in (
            ExtractorError("HTTP Error 503: Service Unavailable", video_id=name, ie="site")
            for name in (page, "a1")
        )
    ]
    assert str(errors[0]) == str(errors[1])


def test_a_timeout_is_not_said_by_the_site() -> None:
    words = "Unable to download webpage: The read operation timed out"
    inner = ExtractorError(words, expected=True, video_id="a1", ie="site")
    error = _failure(DownloadError(f"ERROR: {inner}", (ExtractorError, inner, None)))
    assert words not in str(error)


def test_words_of_any_length_and_kind() -> None:
    error = failure_of("[site] a1: \x1b[31m" + "no\u202e" * 1000)
    assert len(str(error)) < 400
    assert str(error).isprintable()
    assert error.status == 502


def test_what_was_refused_within_is_raised_as_it_is() -> None:
    inner = errors.RequestTooLargeError("too long")
    assert _failure(DownloadError("ERROR: too long", (type(inner), inner, None))) is inner
