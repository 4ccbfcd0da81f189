"""Sends part of the URL corpus to operations inside an isolated network; see `decoy_network`.

Every field of the kind ``url`` gets these URLs, directly and through redirects. `decoy_network` and
`decoy_proxy` test the code below with the whole corpus.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polymux import contract
from polymux.service.errors import described
from polymux.service.model import OperationRequest, Upload
from polymux.service.service import Service, is_job
from polymux.service.store import Store

from support import decoy_network
from support.decoy_backends import PROXY, backends
from support.decoy_network import ADDRESS, CODES, NAMES, started, tell
from support.url_corpus import PUBLIC, SAMPLE, proxies

if TYPE_CHECKING:
    from support.decoy_network import Decoys

#: A file for requests that need one. Nothing opens it.
_FILE = Upload(Path(os.devnull), "a.png", "image/png", 0)
_PICTURE = {"type": "image_url", "image_url": {"url": "URL"}}
_SAYING = [{"role": "user", "content": "x"}]
#: Field, named like in `test_ssrf`, to a request in which ``URL`` is replaced.
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
#: Operations that are called with a form, and the model that selects their variant.
_FORMS = {
    "convert_to_mp3": None,
    "transcribe": None,
    "generate_image": "lorenzomarines/astra",
    "upscale_image": "philz1337x/clarity-upscaler",
}
#: Fields with separate code for fetching; these also get the resolver's names.
NAMED = (
    "convert_to_mp3.url", "download_video.url", "chat.messages.content.image_url.url",
    "upscale_image.lora_links",
)  # fmt: skip
#: Operations of the page downloader, which starts a process for each URL that looks valid.
PAGES = ("download_video.url", "summarize_video.url")
#: To save processes, the downloader gets every third redirect. All its requests go through the
#: proxy, which `decoy_proxy` tests completely.
PAGES_STEP = 3
#: Fields for a proxy, which is compared with an allowlist and never redirected.
PROXIES = ("search_music.proxy",)
#: Retries for requests that did not reach their redirect: 2 of 990 on a busy machine.
_AGAIN = 2
#: Fields that follow redirects, without a second field of the same downloader.
LED_FIELDS = [one for one in REQUESTS if one not in (*PROXIES, PAGES[1])]
#: URLs that redirect to the sample, each with one of the codes.
LED = [f"http://{PUBLIC}/redirect/{CODES[n % len(CODES)]}/{n}" for n in range(len(SAMPLE))]


def run() -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        found, errors = decoy_network.run(__name__, folder, timeout_s=590)
    return found | {"errors": errors}


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
    """The error code or "succeeded". A message that names an address is returned instead.

    Addresses from the request or from the redirect's location may be quoted.
    """
    try:
        work = work_of(field, url)
        if is_job(work.operation):
            job, _ = await service.submit(work)
            ended = await service.jobs.wait(job)
            result = ended.error or {"code": ended.status, "message": ""}
        else:
            await service.call(work)
            result = {"code": "succeeded", "message": ""}
    except Exception as error:
        result = described(error)
    message = str(result["message"])
    known = f"{url} {location} {PUBLIC}"
    named = {one for one in ADDRESS.findall(message) if one not in known}
    if named and result["code"] != "invalid_request":  # This error repeats the request.
        return f"an error that names an address: {message}"
    return str(result["code"])


async def asked(service: Service, decoys: Decoys) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for field in REQUESTS:
        began = time.monotonic()
        more = proxies() if field in PROXIES else []
        found[field] = await all_of(service, field, [*SAMPLE, *more])
        if field in LED_FIELDS:
            found[f"{field} redirected"] = await redirected(service, field, decoys)
        sys.stderr.write(f"{field}: {time.monotonic() - began:.1f} s\n")
    return found


async def redirected(service: Service, field: str, decoys: Decoys) -> dict[str, Any]:
    """The outcome for each URL, the sent redirects, and the retried requests."""
    decoys.redirects.clear()
    # The downloader's message may quote the location.
    locations = dict(zip(LED, SAMPLE, strict=True)) if field in PAGES else {}
    places = LED[::PAGES_STEP] if field in PAGES else LED
    codes = await all_of(service, field, places, locations)
    early: dict[str, str] = {}
    for _ in range(_AGAIN):
        sent = {f"http://{PUBLIC}{path}" for path in decoys.redirects}
        missing = [one for one in places if one not in sent]
        early |= {one: codes[one] for one in missing}
        codes |= await all_of(service, field, missing, locations)
    return {"led": codes, "served": sorted(decoys.redirects), "early": early}


async def all_of(
    service: Service, field: str, places: list[str], locations: dict[str, str] | None = None
) -> dict[str, str]:
    """The outcome for each URL at `field`, four at a time."""
    limit = asyncio.Semaphore(4)

    async def one(place: str) -> str:
        async with limit:
            return await outcome(service, field, place, (locations or {}).get(place, ""))

    codes = await asyncio.gather(*(one(place) for place in places))
    return dict(zip(places, codes, strict=True))


async def served(folder: Path, decoys: Decoys) -> dict[str, Any]:
    """The outcomes of all requests to a service with all operations that have a URL field."""
    store = Store(folder / "operations", max_bytes=1 << 30, life_s=3600)
    service = Service(backends(folder / "operations"), store, queue=100)
    await service.start()
    try:
        found = await asked(service, decoys)
        found["names"] = {
            f"{field} {name}": await outcome(service, field, f"http://{name}.example/")
            for field in NAMED
            for name in ("rebinding", *(NAMES[1::3] if field in PAGES else NAMES[1:]))
        }
        found["good"] = {
            field: await outcome(service, field, PROXY if field in PROXIES else f"http://{PUBLIC}/")
            for field in REQUESTS
        }
    finally:
        await service.close()
    return found


def main() -> None:
    folder = Path(sys.argv[1])
    decoys, _, knocked = started(list(SAMPLE))
    # From here on the folder is in memory, because storing jobs waits for the disk.
    subprocess.run(["mount", "-t", "tmpfs", "none", str(folder)], check=True)
    found = {"knocks": knocked} | asyncio.run(served(folder, decoys))
    tell(found | {"hits": dict(decoys.hits), "requests": decoys.served})


if __name__ == "__main__":
    main()
