from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from polymux import OutputExistsError, OutputFailedError
from polymux.cli.answers import Saver, name_in, stem_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.parametrize(
    ("text", "stem"),
    [
        ("A cat, asleep!", "a-cat-asleep"), ("../../etc/passwd", "etc-passwd"), ("", ""),
        ("...", ""), ("Blaue Donau à 3", "blaue-donau-à-3"), ("x" * 99, "x" * 60),
        ("one " * 30, "-".join(["one"] * 15)), ("\x1b[31m red\n", "31m-red"),
    ],
)  # fmt: skip
def test_a_text_as_a_name(text: str, stem: str) -> None:
    assert stem_of(text) == stem


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://a.example/m/out-0.png?sig=1#x", ("out-0", ".png")),
        ("http://a.example/m/..%2f..%2fetc%2fcron.d", ("cron", ".d")),
        ("http://a.example/.bashrc", ("bashrc", "")),
        ("http://a.example/-rf%20%0A.mp3", ("rf", ".mp3")),
        ("http://a.example/", ("", "")),
        ("data:image/png;base64,AAAA", ("png-base64-AAAA", "")),
    ],
)
def test_a_name_in_an_address(url: str, expected: tuple[str, str]) -> None:
    assert name_in(url) == expected


@given(st.text(max_size=300))
def test_no_name_leads_out_of_its_folder(text: str) -> None:
    for name in (stem_of(text), "".join(name_in(f"http://a.example/{text.replace(']', '')}"))):
        assert "/" not in name
        assert not name.startswith((".", "-")) or name in (".", "-") or name.count(".") == 1
        assert len(name.encode("utf-8", "surrogatepass")) <= 250
        assert name.isprintable()


class File:
    """A server's file. The first `taken` saves find that another process took the name."""

    def __init__(self, taken: int) -> None:
        self.taken = taken

    def __str__(self) -> str:
        return "http://a.example/x.png"

    def save(self, path: Path, *, overwrite: bool) -> Path:
        assert not overwrite
        if self.taken:
            self.taken -= 1
            raise OutputExistsError("somebody was quicker")
        path.write_bytes(b"x")
        return path


def test_a_name_that_is_taken_meanwhile(tmp_path: Path) -> None:
    file: Any = File(taken=2)
    assert Saver(str(tmp_path), "cat").save(file).name == "cat-3.png"
    assert Saver(str(tmp_path)).save(file, "label").name == "x-label.png"


def test_a_folder_that_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OutputFailedError, match="Not a directory"):
        Saver(str(tmp_path / "file/below")).prepare()
