"""What is passed over without its expression being compiled: nothing that is its site's."""

from __future__ import annotations

import pytest
from polymux.downloads.ytdlp import words_of


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"https?://(?:www\.)?Films\.example/(?P<id>\d+)", ("http", "films", "example")),
        (r"(?x)https? :// films [.] example{0} (?:/(?P<kind>clips))?", ("http", "films", "exampl")),
        (r"(?!https?://no)(?:https?://(?P<host>(?:films)))\x41bc\d{100}", ("http", "films")),
        (r"films:|https?://films\.example", ()),
        (r"(?x)https?://films  # not music", ()),
    ],
)
def test_words_of_an_expression(pattern: str, words: tuple[str, ...]) -> None:
    assert words_of(pattern) == words


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.long), 40])
def test_every_site_has_its_own_addresses(step: int) -> None:
    """Those that yt-dlp tests its extractors by."""
    from yt_dlp.extractor import lazy_extractors
    from yt_dlp.utils import variadic

    checked = 0
    for name in sorted(dir(lazy_extractors))[::step]:
        if not name.endswith("IE"):
            continue
        site = getattr(lazy_extractors, name).real_class
        for case in site.get_testcases(include_onlymatching=True):
            if site._match_valid_url(case["url"]):
                address = case["url"].casefold()
                words = [words_of(one) for one in variadic(site._VALID_URL)]
                assert any(all(word in address for word in one) for one in words), (name, address)
                checked += 1
    assert checked > 4000 / step
