"""Asks operations for the whole corpus of URLs inside a network of its own; see `decoy_network`.

Every field of the contract's kind ``url`` is asked for directly and by redirects: with a sample, or
with the whole corpus. At the fields that a page's downloader reads each redirect takes a process of
yt-dlp's, about half a second of a processor: all of the corpus by one code took 5 to 11 minutes
beside other work.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.downloads.url_inputs import UrlFetcher, failure_of
from polymux.errors import PolymuxError
from polymux.fetch.fetcher import FetchPolicy
from polymux.server.compat.replicate.webhooks import Delivery
from polymux.service.errors import described
from polymux.service.model import OperationRequest, ProgressSink, Upload
from polymux.service.service import Service, is_job
from polymux.service.store import Store
from polymux.upstreams.client import UpstreamServer
from polymux.upstreams.files import fetched
from polymux.upstreams.polymux import PolymuxUpstream
from polymux.upstreams.replicate.backend import ReplicateUpstream
from polymux.upstreams.replicate.client import ReplicateServer

from support import decoy_network
from support.decoy_backends import PROXY, backends
from support.decoy_network import (
    ADDRESS,
    CODES,
    Decoys,
    Resolver,
    knocks,
    set_up_network,
)
from support.url_corpus import PUBLIC, SAMPLE, proxies, urls

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable

    from polymux.service.temporary_files import TempFile

#: A file of the request's own, where one must be; any will do, as nothing opens it.
_FILE = Upload(Path(os.devnull), "a.png", "image/png", 0)
_PICTURE = {"type": "image_url", "image_url": {"url": "URL"}}
_SAYING = [{"role": "user", "content": "x"}]
#: Field, as `test_decoys` walks to it in the contract, to what asks for it: ``URL`` stands for it.
REQUESTS: dict[str, dict[str, Any]] = {
    "convert_to_mp3.url": {"url": "URL"},
    "transcribe.url": {"url": "URL"},
    "download_video.url": {"url": "URL"},
    "summarize_video.url": {"url": "URL"},
    "chat.messages.content.image_url.url": {
        "model": "scripted", "messages": [{"role": "user", "content": [_PICTURE]}],
    },
    "free_chat.image_url": {"messages": _SAYING, "image_url": "URL"},
    "search_music.proxy": {"song": "x", "proxy": "URL"},
    "generate_image.replicate_weights": {"prompt": "x", "replicate_weights": "URL"},
    "upscale_image.lora_links": {"image": _FILE, "lora_links": "URL"},
    "upscale_image.custom_sd_model": {"image": _FILE, "custom_sd_model": "URL"},
}  # fmt: skip
#: Those that are asked for by a form, with the selector of their model.
_FORMS = {
    "convert_to_mp3": None,
    "transcribe": None,
    "generate_image": "lorenzomarines/astra",
    "upscale_image": "philz1337x/clarity-upscaler",
}
#: What they resolve to: `decoy_network.Resolver`.
NAMES = (
    "private", "private6", "mapped", "mixed", "mixed-other-order", "to-localhost", "chain",
    "127-0-0-1.wildcard", "many", "many-one-private", "servfail", "unknown", "rebinding",
)  # fmt: skip
#: Of names, what the fields are that fetch in ways of their own.
NAMED = (
    "convert_to_mp3.url", "download_video.url", "chat.messages.content.image_url.url",
    "upscale_image.lora_links",
)  # fmt: skip
#: The operations that a page's downloader does, which is a process for each that looks right.
PAGES = ("download_video.url", "summarize_video.url")
#: The one whose redirects a sample is tried at: the other asks the same downloader.
LED_PAGE = PAGES[0]
#: Of a proxy no redirect is followed: it is allowed by its name, or not.
PROXIES = ("search_music.proxy",)
#: How often what never came to its redirect is asked for again: beside much work 2 of 990 did not.
_AGAIN = 2


def run(*words: str) -> dict[str, Any]:
    """What the child found; fails with its words where the namespaces cannot be made.

    Args:
        *words: ``everything`` for the whole corpus through each redirect at all fields but `PAGES`,
            or one of those fields and a code. Default: the sample, at all fields.
    """
    with tempfile.TemporaryDirectory() as folder:
        found, said = decoy_network.run(__name__, folder, *words, timeout_s=7200 if words else 590)
    return found | {"said": said}


def with_url(value: Any, url: str) -> Any:
    if value == "URL":
        return url
    if isinstance(value, dict):
        return {name: with_url(one, url) for name, one in value.items()}
    return [with_url(one, url) for one in value] if isinstance(value, list) else value


def work_of(field: str, url: str) -> OperationRequest:
    operation = field.partition(".")[0]
    values = with_url(REQUESTS[field], url)
    if operation in _FORMS:
        fields = list(values.items())
        return OperationRequest.of(contract.read_form(operation, fields, model=_FORMS[operation]))
    body = json.dumps(values).encode("utf-8", "surrogatepass")
    return OperationRequest.of(contract.read_json(operation, body))


async def outcome(service: Service, field: str, url: str, location: str = "") -> str:
    """The failure's code, or that it was done; words that name an address are told.

    Not those of the request, or of the redirect's location, which a site may be quoted with.
    """
    try:
        work = work_of(field, url)
        if is_job(work.operation):
            job, _ = await service.submit(work)
            ended = await service.jobs.wait(job)
            told = ended.error or {"code": ended.status, "message": ""}
        else:
            await service.call(work)
            told = {"code": "succeeded", "message": ""}
    except Exception as error:
        told = described(error)
    told_words = str(told["message"])
    known = f"{url} {location} {PUBLIC}"
    named = {one for one in ADDRESS.findall(told_words) if one not in known}
    if named and told["code"] != "invalid_request":  # That repeats what was sent.
        return f"an error that names an address: {told_words}"
    return str(told["code"])


async def asked(service: Service, corpus: list[str], decoys: Decoys) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in REQUESTS:
        began = time.monotonic()
        more = proxies() if field in PROXIES else []
        found[field] = await all_of(service, field, corpus + more)
        is_led = field == LED_PAGE and corpus == list(SAMPLE)
        if field not in PROXIES and (field not in PAGES or is_led):
            found[f"{field} redirected"] = await redirected(
                service, field, decoys, corpus, through(corpus)
            )
        sys.stderr.write(f"{field}: {time.monotonic() - began:.1f} s\n")
    return found


def through(corpus: list[str]) -> list[str]:
    """Addresses that lead to all of it: of a sample to each by one code, else by every code."""
    if corpus != list(SAMPLE):
        return led_to(len(corpus))
    return [f"http://{PUBLIC}/redirect/{CODES[n % len(CODES)]}/{n}" for n in range(len(corpus))]


async def redirected(
    service: Service, field: str, decoys: Decoys, corpus: list[str], places: list[str]
) -> dict[str, Any]:
    """What came of each place, which redirects were sent, and what had to be asked for again."""
    decoys.redirects.clear()
    # A site may be quoted with the place that it names.
    locations = {one: corpus[int(one.rpartition("/")[2])] for one in places}
    locations = locations if field in PAGES else {}
    codes = await all_of(service, field, places, locations)
    early: dict[str, str] = {}
    for _ in range(_AGAIN if field in PAGES else 0):
        sent = {f"http://{PUBLIC}{path}" for path in decoys.redirects}
        missing = [one for one in places if one not in sent]
        early |= {one: codes[one] for one in missing}
        codes |= await all_of(service, field, missing, locations)
    return {"led": codes, "served": sorted(decoys.redirects), "early": early}


async def all_of(
    service: Service, field: str, places: list[str], locations: dict[str, str] | None = None
) -> dict[str, str]:
    """What comes of each at a field, some at once.

    Args:
        service: What is asked.
        field: The field.
        places: The addresses.
        locations: Where redirects lead that are quoted. Default: nowhere.
    """
    limit = asyncio.Semaphore(4)

    async def one(place: str) -> str:
        async with limit:
            return await outcome(service, field, place, (locations or {}).get(place, ""))

    codes = await asyncio.gather(*(one(place) for place in places))
    return dict(zip(places, codes, strict=True))


def led_to(count: int, codes: tuple[int, ...] = CODES) -> list[str]:
    """Addresses that lead to the first of the corpus, by each of these codes."""
    return [f"http://{PUBLIC}/redirect/{code}/{n}" for code in codes for n in range(count)]


async def unanswered(service: Service) -> dict[str, Any]:
    """A name that the resolver says nothing to, of every such field at once, and others meanwhile.

    Each field's code and the seconds until it came; how long good requests took until then.
    """
    began = time.monotonic()

    async def one(field: str) -> tuple[str, float]:
        return await outcome(service, field, "http://silent.example/"), time.monotonic() - began

    waiting = {field: asyncio.create_task(one(field)) for field in NAMED}
    meanwhile: list[tuple[str, float]] = []
    for field in itertools.cycle(field for field in NAMED if field not in PAGES):
        asked_at = time.monotonic()
        code = await outcome(service, field, f"http://{PUBLIC}/")
        if all(task.done() for task in waiting.values()):
            break
        meanwhile.append((code, time.monotonic() - asked_at))
        await asyncio.sleep(0.1)
    return {"fields": {field: await task for field, task in waiting.items()}, "others": meanwhile}


async def called(corpus: list[str], folder: Path) -> dict[str, Any]:
    """The same of what fetches without an operation's field for it."""
    policy = FetchPolicy(allowed_networks=("203.0.113.0/24",))
    delivery = Delivery(policy)
    url_fetcher = UrlFetcher(policy, 1 << 20)
    upstream = UpstreamServer("upstream", "https://upstream.example/v1")
    models = ReplicateUpstream(ReplicateServer("models", f"http://{PUBLIC}/v1"), policy=policy)
    other = PolymuxUpstream(UpstreamServer("other", f"http://{PUBLIC}", ours=True), policy=policy)
    with closing(Store(folder, cap_bytes=1 << 30, life_s=3600)) as store:
        (folder / "a.png").write_bytes(b"picture")
        sent = Upload(folder / "a.png", "a.png", "image/png", 7)

        async def webhook(url: str) -> str:
            return f"status {await delivery.post(url, b'{}', [])}"

        async def file_of_a_prediction(url: str) -> str:
            drafts: list[TempFile] = []
            try:
                await url_fetcher.fetch(url, sink(), drafts)
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
            await models.run(OperationRequest.of(checked), sink())
            return "succeeded"

        async def fields_for_another_polymux(url: str) -> str:
            codes = {await code_of(field_for_another(field, url)) for field in REQUESTS}
            return " ".join(sorted(codes))

        async def field_for_another(field: str, url: str) -> str:
            work = work_of(field, url)
            # A device is no file that can be sent.
            values = {name: sent if one is _FILE else one for name, one in work.values.items()}
            await other.run(replace(work, values=values), sink())
            return "succeeded"

        def sink() -> ProgressSink:
            return ProgressSink(lambda: None, store.media.draft)

        found: dict[str, Any] = {}
        for call in (
            webhook, file_of_a_prediction, output_of_an_upstream, weights,
            fields_for_another_polymux,
        ):  # fmt: skip
            began = time.monotonic()
            found[call.__name__] = {url: await code_of(call(url)) for url in corpus}
            found[f"{call.__name__} redirected"] = {
                url: await code_of(call(url)) for url in through(corpus)
            }
            sys.stderr.write(f"{call.__name__}: {time.monotonic() - began:.1f} s\n")
    await delivery.close()
    await models.close()
    await other.close()
    return found


async def code_of(call: Awaitable[str]) -> str:
    try:
        return await call
    except Exception as error:
        told = failure_of(error) if isinstance(error, PolymuxError) else error
        return str(described(told)["code"])


@asynccontextmanager
async def serving(folder: Path) -> AsyncIterator[Service]:
    """A service whose backends do every operation that has such a field."""
    store = Store(folder, cap_bytes=1 << 30, life_s=3600)
    service = Service(backends(folder), store, queue=100)
    await service.start()
    try:
        yield service
    finally:
        await service.close()


async def served(corpus: list[str], folder: Path, decoys: Decoys) -> dict[str, Any]:
    async with serving(folder / "operations") as service:
        found = await asked(service, corpus, decoys)
        found["names"] = {
            f"{field} {name}": await outcome(service, field, f"http://{name}.example/")
            for field in NAMED
            for name in (NAMES[::3] if field in PAGES else NAMES)
        }
        found["silent"] = await unanswered(service)
        found["good"] = {
            field: await outcome(service, field, PROXY if field in PROXIES else f"http://{PUBLIC}/")
            for field in REQUESTS
        }
    found["calls"] = await called(corpus, folder / "calls")
    return found


async def led(field: str, code: int, folder: Path, decoys: Decoys) -> dict[str, Any]:
    """The whole corpus at one field, through one code of redirect."""
    corpus = urls()
    async with serving(folder / "operations") as service:
        places = led_to(len(corpus), (code,))
        return await redirected(service, field, decoys, corpus, places)


def network(folder: Path, corpus: list[str]) -> Decoys:
    """The decoys of a network that is ready, with redirects to the corpus.

    The folder is in memory from then on: tens of thousands of jobs are written down for good.
    """
    set_up_network()
    subprocess.run(["mount", "-t", "tmpfs", "none", str(folder)], check=True)
    decoys, resolver = Decoys(), Resolver()
    loop = asyncio.new_event_loop()
    threading.Thread(target=loop.run_forever, daemon=True).start()
    for server in (decoys, resolver):
        asyncio.run_coroutine_threadsafe(server.start(), loop).result(10)
    decoys.locations += [url.encode("utf-8", "surrogateescape") for url in corpus]
    return decoys


def main() -> None:
    folder, words = Path(sys.argv[1]), sys.argv[2:]
    corpus = urls() if words else list(SAMPLE)
    decoys = network(folder, corpus)
    found: dict[str, Any] = {"knocks": knocks(decoys)}
    if len(words) == 2:
        found |= asyncio.run(led(words[0], int(words[1]), folder, decoys))
    else:
        found |= asyncio.run(served(corpus, folder, decoys))
    json.dump(found | {"hits": dict(decoys.hits), "requests": decoys.served}, sys.stdout)
    sys.stdout.flush()
    os._exit(0)  # The servers run for ever on a thread of their own.


if __name__ == "__main__":
    main()
