"""Asks operations for the whole corpus of URLs inside a network of its own; see `decoy_network`.

Every field of the contract's kind ``url`` that a backend takes is asked for directly with each URL,
and through each code of redirect.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.downloads.backend import DownloadBackend
from polymux.downloads.bringing import Bringer, addressed, failure_of
from polymux.downloads.pages import PageDownloader
from polymux.downloads.settings import DownloadSettings
from polymux.engines.conversations import ChatBackend
from polymux.errors import PolymuxError
from polymux.fetching import FetchPolicy
from polymux.server.doors.replicate.delivery import Delivery
from polymux.service.dispatch import Service, is_job
from polymux.service.failures import described
from polymux.service.store import Store
from polymux.service.work import Sink, Work
from polymux.summaries.backend import SummaryBackend
from polymux.summaries.settings import SummaryOptions
from polymux.upstreams.replicate import ReplicateUpstream
from polymux.upstreams.replicate_server import ReplicateServer
from polymux.upstreams.results import fetched
from polymux.upstreams.server import UpstreamServer

from support.decoy_network import (
    ADDRESS,
    CODES,
    Decoys,
    Resolver,
    knocks,
    set_up_network,
)
from support.services import Scripted
from support.url_corpus import PUBLIC, urls

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from polymux.service.backend import Backend
    from polymux.service.media_store import Draft

#: Operation and field to what asks for it, the URL in the place of ``URL``.
REQUESTS: dict[str, tuple[str, dict[str, Any]]] = {
    "convert_to_mp3.url": ("convert_to_mp3", {"url": "URL"}),
    "transcribe.url": ("transcribe", {"url": "URL"}),
    "download_video.url": ("download_video", {"url": "URL"}),
    "summarize_video.url": ("summarize_video", {"url": "URL"}),
    "chat.image_url": (
        "chat",
        {"model": "scripted", "messages": [{"role": "user", "content": [
            {"type": "image_url", "image_url": {"url": "URL"}}]}]},
    ),
    "free_chat.image_url": (
        "free_chat", {"messages": [{"role": "user", "content": "x"}], "image_url": "URL"},
    ),
}  # fmt: skip
#: What they resolve to: `decoy_network.Resolver`.
NAMES = (
    "private", "private6", "mapped", "mixed", "mixed-other-order", "to-localhost", "chain",
    "127-0-0-1.wildcard", "many-one-private", "servfail", "unknown", "rebinding",
)  # fmt: skip
#: These start a process for what looks right at first: some of the corpus, for all codes.
SLOW = ("download_video.url", "summarize_video.url")
#: What is judged by the same code in the same place gets a part of the corpus.
STEPS = {
    "convert_to_mp3.url": 2, "transcribe.url": 8, "download_video.url": 4, "summarize_video.url": 8,
}  # fmt: skip
#: Of the corpus, which are led to by redirects: `test_fetching_network` has all of them.
_EVERY, _SLOW_EVERY = 12, 330


def run() -> dict[str, Any]:
    """What the child found; fails with its words where the namespaces cannot be made."""
    command = ["unshare", "--net", "--mount", sys.executable, "-m", "support.decoy_operations"]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[1], capture_output=True, text=True, timeout=500,
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"the decoy network does not work (is this root?): {done.stderr}"
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def backends(folder: Path) -> list[Backend]:
    policy = FetchPolicy(allowed_networks=("203.0.113.0/24",))
    pages = PageDownloader(DownloadSettings(total_s=60), policy, folder / "drafts", 3600)
    bringer = Bringer(policy, 1 << 20, pages=pages)
    media = Scripted("media", ("convert_to_mp3",), slots=8)
    chats = Scripted("chats", ("chat", "free_chat"), slots=8)
    return [
        addressed(media, bringer),
        addressed(Scripted("speech", ("transcribe",), slots=8), bringer),
        ChatBackend(chats, media, models=["scripted"], sees=True, policy=policy),
        DownloadBackend(pages, media),
        SummaryBackend(pages, SummaryOptions(model="scripted")),
    ]


def with_url(value: Any, url: str) -> Any:
    if value == "URL":
        return url
    if isinstance(value, dict):
        return {name: with_url(one, url) for name, one in value.items()}
    return [with_url(one, url) for one in value] if isinstance(value, list) else value


async def outcome(service: Service, field: str, url: str) -> str:
    """The failure's code, or that it was done; words that name an address are told."""
    operation, values = REQUESTS[field]
    try:
        body = json.dumps(with_url(values, url)).encode("utf-8", "surrogatepass")
        if operation in ("convert_to_mp3", "transcribe"):
            checked = contract.read_form(operation, [("url", url)])
        else:
            checked = contract.read_json(operation, body)
        work = Work.of(checked)
        if is_job(operation):
            job, _ = await service.begin(work)
            ended = await service.jobs.wait(job)
            told = ended.error or {"code": ended.status, "message": ""}
        else:
            await service.call(work)
            told = {"code": "succeeded", "message": ""}
    except Exception as error:
        told = described(error)
    told_words = str(told["message"])
    named = {one for one in ADDRESS.findall(told_words) if one not in url and one != PUBLIC}
    if named and told["code"] != "invalid_request":  # That repeats what was sent.
        return f"an error that names an address: {told_words}"
    return str(told["code"])


async def asked(service: Service, corpus: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in REQUESTS:
        began = time.monotonic()
        found[field] = {
            url: await outcome(service, field, url) for url in corpus[:: STEPS.get(field, 1)]
        }
        step = _SLOW_EVERY if field in SLOW else _EVERY
        numbers = range(0, len(corpus), step)
        places = [f"http://{PUBLIC}/redirect/{code}/{n}" for code in CODES for n in numbers]
        limit = asyncio.Semaphore(4)

        async def one(place: str, field: str = field, limit: Any = limit) -> str:
            async with limit:
                return await outcome(service, field, place)

        codes = await asyncio.gather(*map(one, places))
        found[f"{field} redirected"] = dict(zip(places, codes, strict=True))
        found[f"{field} s"] = time.monotonic() - began
    return found


async def called(corpus: list[str], folder: Path) -> dict[str, Any]:
    """The same of what fetches without an operation's field for it."""
    policy = FetchPolicy(allowed_networks=("203.0.113.0/24",))
    delivery = Delivery(policy)
    bringer = Bringer(policy, 1 << 20)
    upstream = UpstreamServer("upstream", "https://upstream.example/v1")
    models = ReplicateUpstream(ReplicateServer("models", f"http://{PUBLIC}/v1"), policy=policy)
    with closing(Store(folder, cap_bytes=1 << 30, life_s=3600)) as store:

        async def webhook(url: str) -> str:
            return f"status {await delivery.post(url, b'{}', [])}"

        async def file_of_a_prediction(url: str) -> str:
            drafts: list[Draft] = []
            try:
                await bringer.bring(url, sink(), drafts)
            finally:
                for one in drafts:
                    one.discard(beside=True)
            return "succeeded"

        async def output_of_an_upstream(url: str) -> str:
            (await fetched(upstream, url, sink(), policy, "made")).draft.discard()
            return "succeeded"

        async def weights(url: str) -> str:
            fields = [("prompt", "x"), ("replicate_weights", url)]
            checked = contract.read_form("generate_image", fields, model="lorenzomarines/astra")
            await models.run(Work.of(checked), sink())
            return "succeeded"

        def sink() -> Sink:
            return Sink(lambda: None, store.media.draft)

        found: dict[str, Any] = {}
        for call in (webhook, file_of_a_prediction, output_of_an_upstream, weights):
            numbers = range(0, len(corpus), _EVERY)
            led = [f"http://{PUBLIC}/redirect/{code}/{n}" for code in CODES for n in numbers]
            found[call.__name__] = {url: await code_of(call(url)) for url in corpus[::4]}
            found[f"{call.__name__} redirected"] = {url: await code_of(call(url)) for url in led}
    await delivery.close()
    await models.close()
    return found


async def code_of(call: Awaitable[str]) -> str:
    try:
        return await call
    except Exception as error:
        told = failure_of(error) if isinstance(error, PolymuxError) else error
        return str(described(told)["code"])


async def served(corpus: list[str]) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as name:
        store = Store(Path(name), cap_bytes=1 << 30, life_s=3600)
        service = Service(backends(Path(name)), store, queue=100)
        await service.start()
        try:
            found = await asked(service, corpus)
            found["names"] = {
                f"{field} {name}": await outcome(service, field, f"http://{name}.example/")
                for field in ("convert_to_mp3.url", "download_video.url", "chat.image_url")
                for name in NAMES
            }
            found["good"] = {
                field: await outcome(service, field, f"http://{PUBLIC}/") for field in REQUESTS
            }
        finally:
            await service.close()
    with tempfile.TemporaryDirectory() as name:
        found["calls"] = await called(corpus, Path(name))
    return found


def main() -> None:
    set_up_network()
    decoys, resolver = Decoys(), Resolver()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    for server in (decoys, resolver):
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    corpus = urls()
    decoys.locations += [url.encode("utf-8", "surrogateescape") for url in corpus]
    knocked = knocks(decoys)
    found = asyncio.run(served(corpus))
    found |= {"knocks": knocked, "hits": dict(decoys.hits), "requests": decoys.served}
    json.dump(found, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # The servers run for ever on a thread of their own.


if __name__ == "__main__":
    main()
