"""`clients NAME URL FILE`: send a file in a form (multipart/form-data); prints the cost."""

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from benchmarks.usage import Meter, peak_rss_bytes, reset_peak, rss_bytes

FIELDS = {"task": "transcribe"}
#: Sends the file; returns the number of bytes that the server received.
Send = Callable[[Path], int]


def _taken(answer: dict[str, Any]) -> int:
    count: int = answer["received_bytes"]
    return count


def polymux(url: str) -> Send:
    from polymux import Client

    client = Client(url, paths={"transcribe": "/sink"})
    return lambda path: _taken(client.transcribe(path, task="transcribe").json())


def _httpx(package: Any, url: str) -> Send:
    client = package.Client(timeout=None, trust_env=False)

    def send(path: Path) -> int:
        with path.open("rb") as file:
            answer = client.post(f"{url}/sink", data=FIELDS, files={"audio": file})
        return _taken(answer.json())

    return send


def httpx(url: str) -> Send:
    import httpx as package

    return _httpx(package, url)


def httpx2(url: str) -> Send:
    import httpx2 as package

    return _httpx(package, url)


def urllib3(url: str) -> Send:
    import urllib3 as package

    pool = package.PoolManager()

    def send(path: Path) -> int:
        # This client can send a form with a file only from memory.
        fields = {**FIELDS, "audio": (path.name, path.read_bytes())}
        return _taken(pool.request("POST", f"{url}/sink", fields=fields, timeout=None).json())

    return send


def pycurl(url: str) -> Send:
    import json
    from io import BytesIO

    import pycurl as package

    curl = package.Curl()
    curl.setopt(package.URL, f"{url}/sink")
    curl.setopt(package.HTTPHEADER, ["Expect:"])
    curl.setopt(package.NOPROXY, "*")

    def send(path: Path) -> int:
        answer = BytesIO()
        curl.setopt(package.HTTPPOST, [*FIELDS.items(), ("audio", (package.FORM_FILE, str(path)))])
        curl.setopt(package.WRITEDATA, answer)
        curl.perform()
        return _taken(json.loads(answer.getvalue()))

    return send


def aiohttp(url: str) -> Send:
    import asyncio

    import aiohttp as package

    async def post(path: Path) -> int:
        async with package.ClientSession(timeout=package.ClientTimeout(total=None)) as session:
            with path.open("rb") as file:
                form = package.FormData(FIELDS)
                form.add_field("audio", file, filename=path.name)
                async with session.post(f"{url}/sink", data=form) as answer:
                    return _taken(await answer.json())

    return lambda path: asyncio.run(post(path))


def curl_cffi(url: str) -> Send:
    from curl_cffi import CurlMime
    from curl_cffi import requests as package

    session = package.Session(trust_env=False, timeout=600)

    def send(path: Path) -> int:
        form = CurlMime()
        form.addpart(name="task", data=b"transcribe")
        form.addpart(name="audio", filename=path.name, local_path=str(path))
        return _taken(session.post(f"{url}/sink", multipart=form).json())

    return send


def requests(url: str) -> Send:
    import requests as package

    session = package.Session()
    session.trust_env = False

    def send(path: Path) -> int:
        with path.open("rb") as file:
            return _taken(session.post(f"{url}/sink", data=FIELDS, files={"audio": file}).json())

    return send


def requests_toolbelt(url: str) -> Send:
    import requests as package
    from requests_toolbelt import MultipartEncoder

    session = package.Session()
    session.trust_env = False

    def send(path: Path) -> int:
        with path.open("rb") as file:
            form = MultipartEncoder({**FIELDS, "audio": (path.name, file)})
            headers = {"Content-Type": form.content_type}
            return _taken(session.post(f"{url}/sink", data=form, headers=headers).json())

    return send


CLIENTS: dict[str, Callable[[str], Send]] = {
    "polymux": polymux,
    "curl_cffi": curl_cffi,
    "pycurl": pycurl,
    "httpx": httpx,
    "httpx2": httpx2,
    "aiohttp": aiohttp,
    "urllib3": urllib3,
    "requests": requests,
    "requests-toolbelt": requests_toolbelt,
}


def main() -> None:
    name, url, path = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    send = CLIENTS[name](url)
    send(Path(__file__))
    size_bytes = path.stat().st_size
    reset_peak()
    before = rss_bytes()
    meter = Meter()
    taken = send(path)
    if not size_bytes < taken < size_bytes + 4096:
        raise SystemExit(
            f"the server took {taken} bytes, not the {size_bytes} of the file and form"
        )
    meter.report(1, gibibytes=size_bytes / 2**30, rss_bytes=peak_rss_bytes() - before)


if __name__ == "__main__":
    main()
