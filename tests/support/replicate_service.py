"""Replicate's HTTP API on loopback, after its documentation. Scripted answers come first."""

from __future__ import annotations

import hashlib
import itertools
import json
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from polymux.runtime.upstream_settings import UpstreamSettings
from servers import http1, media
from servers.forms import body_of
from servers.misbehaving import MisbehavingServer

from support.upstreams import CANARY

if TYPE_CHECKING:
    from pathlib import Path

    from servers.forms import FilePart
    from servers.loopback import Exchange
    from servers.records import Request

BASE = "/v1"
LIGHTNING = "bytedance/sdxl-lightning-4step"
ASTRA = "lorenzomarines/astra"
PLAYGROUND = "playgroundai/playground-v2.5-1024px-aesthetic"
CLARITY = "philz1337x/clarity-upscaler"
ESRGAN = "nightmareai/real-esrgan"
SPEECH = "turian/insanely-fast-whisper-with-video"
VIDEO = "anotherjesse/zeroscope-v2-xl"
MUSIC = "riffusion/riffusion"
#: Version ids (first digits) that polymux's models follow (`contracts.md` 0.2).
PINNED = {
    LIGHTNING: "5f24084160c9", ASTRA: "6ce68112bcae", PLAYGROUND: "a45f82a1382b",
    CLARITY: "f11a4727f8f9", ESRGAN: "350d32041630", SPEECH: "4f41e90243af",
    VIDEO: "9f747673945c", MUSIC: "8cf61ea6c56a",
}  # fmt: skip
ENDED = ("succeeded", "failed", "canceled", "aborted")
#: Files below `/made/`: name to content type and bytes.
MADE = {
    "one.png": ("image/png", media.png(8, 8)),
    "two.png": ("image/png", media.png(4, 4)),
    "one.mp4": ("video/mp4", media.mp4()),
    "one.wav": ("audio/x-wav", media.wav()),
    "page": ("text/html", b"<html>"),
}

Stages = list[dict[str, Any]]


def whole(version: str) -> str:
    return version + hashlib.sha256(version.encode()).hexdigest()[len(version) :]


def replicate(folder: Path, service: MisbehavingServer, **more: Any) -> UpstreamSettings:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / "replicate.key"
    path.write_text(f"{CANARY}\n")
    return UpstreamSettings("replicate", f"{service.url}{BASE}", key_file=path, **more)


@dataclass
class Prediction:
    """A created prediction, with the number of its status requests."""

    id: str
    model: str
    version: str
    input: dict[str, Any]
    stages: Stages
    asked: int = 0
    canceled_at: float | None = None

    @property
    def canceled(self) -> bool:
        return self.canceled_at is not None

    def value(self, url: str) -> dict[str, Any]:
        now = self.stages[min(self.asked, len(self.stages) - 1)]
        if self.canceled and now["status"] not in ENDED:
            now = {"status": "canceled"}
        address = f"{url}{BASE}/predictions/{self.id}"
        return {
            "id": self.id, "model": self.model, "version": self.version, "input": self.input,
            "source": "api", "created_at": "2026-11-22T10:00:00Z", "output": None, "error": None,
            "logs": "", "urls": {"get": address, "cancel": f"{address}/cancel"}, **now,
        }  # fmt: skip


@dataclass
class Kept:
    """The requests of the files API."""

    sent: dict[str, FilePart] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)


class ReplicateService(MisbehavingServer):
    """Models, paged versions, files and predictions; a script replaces the answer to a request.

    Args:
        stages: The states of each prediction, one per status request; the last repeats. ``HOST``
            in them is this server's address.
        options: Those of `MisbehavingServer`.
    """

    kept_body_bytes = 64 << 20

    def __init__(self, stages: Stages | None = None, **options: Any) -> None:
        super().__init__(**options)
        self.stages: Stages = stages or [{"status": "starting"}]
        self.versions = {
            model: [whole("0" * 12), whole("1" * 12), whole(version), whole("2" * 12)]
            for model, version in PINNED.items()
        }
        self.page = 2
        self.files = Kept()
        self.predictions: list[Prediction] = []
        #: The URL of uploaded files. Empty: a URL of this server.
        self.file_address = ""
        #: The id of the next prediction. Empty: a new id.
        self.next_id = ""
        #: The delay of the answer to a creation, after the prediction exists, in seconds.
        self.creation_s = 0.0
        self._numbers = itertools.count(1)

    def output(self, output: Any, **more: Any) -> None:
        """Let predictions finish with this output at the first status request."""
        self.stages = [{"status": "starting"}, {"status": "succeeded", "output": output, **more}]

    def renew(self, next_id: str) -> None:
        """Reset scripts and outputs, and set the id of the next prediction."""
        self._by_path = {None: type(self._by_path[None])()}
        self.file_address, self.next_id = "", next_id
        self.output(["HOST/made/one.png"])

    @property
    def asked(self) -> list[str]:
        """Methods and targets of all requests, in order."""
        return [f"{one.method} {one.target.removeprefix(BASE)}" for one in self.requests]

    def wait_canceled(self) -> float:
        """Wait for the last prediction's cancellation; return its time or raise `TimeoutError`."""
        self.log.wait_for(lambda: self.predictions[-1].canceled, 5, "its end")
        return self.predictions[-1].canceled_at or 0.0

    def wait_request(self, path: str) -> Request:
        """Wait for the first request to a path; raise `TimeoutError` without one."""
        self.log.wait_for(lambda: any(one.path == path for one in self.requests), 10, path)
        return next(one for one in self.requests if one.path == path)

    async def answer(self, exchange: Exchange) -> None:
        path = exchange.request.path
        found = [self._by_path.get(path), self._by_path[None]]
        if any(one is not None and (one.waiting or one.always) for one in found):
            await super().answer(exchange)
            return
        await exchange.read_body()
        if path.startswith("/made/"):
            content_type, body = MADE[path.removeprefix("/made/")]
            await self._send(exchange, 200, body, content_type)
            return
        status, value = self._answered(exchange.request)
        if exchange.request.path == f"{BASE}/predictions":
            await exchange.wire.sleep(self.creation_s)
        text = json.dumps(value).replace("HOST", self.url)
        await self._send(exchange, status, b"" if status == 204 else text.encode())

    async def _send(
        self, exchange: Exchange, status: int, body: bytes, kind: str = "application/json"
    ) -> None:
        fields = [("Content-Type", kind), ("Content-Length", str(len(body)))]
        await exchange.wire.write(http1.head(status, fields) + body)

    def _answered(self, request: Request) -> tuple[int, Any]:
        if request.header("authorization") != f"Bearer {CANARY}":
            return problem(401, "Unauthenticated", "You did not pass a valid token")
        words = request.path.removeprefix(f"{BASE}/").split("/")
        match request.method, words:
            case "GET", ["models", owner, name, "versions"]:
                return self._versions_of(f"{owner}/{name}", request)
            case "POST", ["predictions"]:
                return self._predict(json.loads(request.body))
            case "POST", ["models", owner, name, "predictions"]:
                return self._made(f"{owner}/{name}", "hidden", json.loads(request.body))
            case "GET", ["predictions", name] if found := self._prediction(name):
                found.asked += 1
                self.log.changed()
                return 200, found.value(self.url)
            case "POST", ["predictions", name, "cancel"] if found := self._prediction(name):
                found.canceled_at = time.monotonic()
                self.log.changed()
                return 200, found.value(self.url)
            case "POST", ["files"]:
                return self._keep(request)
            case "DELETE", ["files", name]:
                self.files.removed.append(name)
                return 204, None
        return problem(404, "Not found", "there is nothing here")

    def _versions_of(self, model: str, request: Request) -> tuple[int, Any]:
        if model not in self.versions:
            return problem(404, "Not found", "no such model")
        start = int(parse_qs(request.query).get("cursor", ["0"])[0])
        own = self.versions[model]
        after = start + self.page
        more = f"HOST{BASE}/models/{model}/versions?cursor={after}" if after < len(own) else None
        page = [{"id": one, "openapi_schema": {}} for one in own[start:after]]
        return 200, {"next": more, "previous": None, "results": page}

    def _predict(self, body: dict[str, Any]) -> tuple[int, Any]:
        for model, own in self.versions.items():
            if body.get("version") in own:
                return self._made(model, body["version"], body)
        return problem(
            422, "Invalid version or not permitted", "The specified version does not exist"
        )

    def _made(self, model: str, version: str, body: dict[str, Any]) -> tuple[int, Any]:
        name = self.next_id or f"p{next(self._numbers)}abc"
        made = Prediction(name, model, version, body["input"], self.stages)
        self.predictions.append(made)
        return 201, made.value(self.url)

    def _prediction(self, name: str) -> Prediction | None:
        """The newest prediction with this id."""
        return next((one for one in reversed(self.predictions) if one.id == name), None)

    def _keep(self, request: Request) -> tuple[int, Any]:
        [file] = body_of(request).files
        name = f"f{next(self._numbers)}"
        self.files.sent[name] = file
        address = self.file_address or f"{self.url}{BASE}/files/{name}"
        return 201, {"id": name, "name": file.file_name, "urls": {"get": address}}


def problem(status: int, title: str, detail: str) -> tuple[int, Any]:
    return status, {"title": title, "detail": detail, "status": status}
