"""The router in a third-party FastAPI application, on a default uvicorn, in this process."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING, Any, Literal

import uvicorn
from fastapi import FastAPI
from polymux.runtime.settings import StoreSettings
from polymux.server import lifespan, router
from polymux.server.auth.api_keys import KeyFile
from polymux.server.settings.settings import ServerSettings

from support.invariants import InProcess
from support.polymux_server import Asked

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Self

    from polymux.service.backend import Backend


class HostedServer(Asked):
    """An application with its own route ``/own`` beside polymux's."""

    is_hosted = True

    def __init__(
        self,
        folder: Path,
        make: Callable[[], Sequence[Backend]],
        *,
        http: Literal["auto", "h11"] = "auto",
        prefix: str = "",
    ) -> None:
        self._http: Literal["auto", "h11"] = http
        self.prefix = prefix
        self.settings = ServerSettings(store=StoreSettings(folder))
        self.keys = KeyFile(self.settings.key_file)
        self.key, _ = self.keys.add("test")
        self._make = make
        self._before = InProcess()

    def __enter__(self) -> Self:
        self._before.begin()
        mine = router(self.settings, backends=self._make())
        self.state: Any = mine.polymux_state  # type: ignore[attr-defined]
        app = FastAPI(lifespan=lambda _: lifespan(mine))
        app.include_router(mine, prefix=self.prefix)

        @app.get("/own")
        def own() -> dict[str, str]:
            return {"it": "is mine"}

        listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        config = uvicorn.Config(app, log_level="error", lifespan="on", http=self._http)
        self._server = uvicorn.Server(config)
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._server.serve([listener])), daemon=True
        )
        self._thread.start()
        while not self._server.started:
            assert self._thread.is_alive()
            self._thread.join(0.01)
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if kind is None:
            assert self.ask("GET", f"{self.prefix}/healthz", key=None).status == 200
        self._server.should_exit = True
        self._thread.join(60)
        self._before.end()
        assert not self._thread.is_alive()
        if kind is None:
            self._before.check(self.settings.store.folder, (self.key,))
