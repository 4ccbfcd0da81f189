from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from polymux.downloads.url_inputs import UrlFetcher, addressed
from polymux.fetch.fetcher import FetchPolicy
from polymux.service.model import ProgressSink
from support.services import Scripted, chat_of, running, work_of

if TYPE_CHECKING:
    from pathlib import Path

    from polymux.service.backend import Backend


def both(*operations: str) -> tuple[Scripted, Backend]:
    inner = Scripted("own", operations)
    inner.models = ("mine",)
    return inner, addressed(inner, UrlFetcher(FetchPolicy(), 1 << 20))


def test_what_has_no_file_is_left_alone() -> None:
    inner, outer = both("chat", "read_text")
    assert outer is inner


def test_chats_of_an_engine_that_hears_too(tmp_path: Path) -> None:
    async def asked() -> None:
        inner, outer = both("chat", "transcribe")
        inner.chunks = [{"choices": []}]
        async with running(tmp_path / "s", outer) as service:
            assert service.routes.chat_models() == ["mine"]
            assert (await service.call(chat_of(model="mine"))).output == {"text": "read"}
            streamed = chat_of(model="mine", stream=True)
            assert [one async for one in service.stream(streamed)] == [{"choices": []}]
        assert [one.operation for one in inner.began] == ["chat", "chat"]
        assert all("audio" not in one.values for one in inner.began)

    asyncio.run(asked())


def test_what_comes_from_an_address_is_prepared() -> None:
    _, outer = both("chat", "convert_to_mp3")
    sink = ProgressSink(lambda: None, lambda _: None)  # type: ignore[arg-type,return-value]
    assert outer.prepared(work_of(), sink) is not None
    assert outer.prepared(chat_of(), sink) is None
