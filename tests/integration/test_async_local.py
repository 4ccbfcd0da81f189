"""`AsyncLocal` alone: what it has nothing for, it says how to get."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import polymux
import pytest
from polymux import contract

if TYPE_CHECKING:
    from pathlib import Path

PICTURE = ("a.png", b"\x89PNG\r\n\x1a\n")
CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "chat": (("Hi",), {}),
    "free_chat": (("Hi",), {}),
    "search_music": (("waves",), {}),
    "generate_image": (("waves",), {}),
    "upscale_image": ((PICTURE,), {}),
    "transcribe": ((("a.wav", b"RIFF"),), {}),
    "generate_video": (("waves",), {}),
    "generate_music": (("waves",), {}),
    "identify_song": ((("a.wav", b"RIFF"),), {}),
    "summarize_video": (("http://videos.example/1",), {}),
    "read_text": ((PICTURE,), {}),
}
#: What needs no model, and is there where the extras of the tests are.
ALWAYS = {"convert_to_mp3", "download_video", "download_music"}


@pytest.mark.parametrize(
    ("name", "stream"), [*((one, False) for one in CALLS), ("chat", True), ("free_chat", True)]
)
def test_what_has_no_backend_says_how_to_get_one(tmp_path: Path, name: str, stream: bool) -> None:
    positional, named = CALLS[name]
    more = {"stream": True} if stream else {}

    async def main() -> None:
        async with polymux.AsyncLocal(tmp_path / "s", engines={}) as local:

            async def whole() -> None:
                async for _ in await getattr(local, name)(*positional, **named, **more):
                    pass

            with pytest.raises(polymux.NoBackendError) as refused:
                await whole()
            told = str(refused.value)
            assert (refused.value.status, refused.value.code) == (501, "no_backend")
            assert "polymux doctor" in told or "polymux models" in told, told
            assert "retry-after" not in refused.value.headers
        assert list((tmp_path / "s" / "drafts").iterdir()) == []

    asyncio.run(main())


def test_all_operations_are_here() -> None:
    assert {one.name for one in contract.operations()} == {*CALLS, *ALWAYS}
