"""foreign_application FOLDER LOOP: a third-party FastAPI application with polymux's router.

uvicorn runs it on ``"asyncio"`` or ``"uvloop"``. It prints its port and a key.
"""

from __future__ import annotations

import json
import socket
import sys
from pathlib import Path

import uvicorn
from fastapi import FastAPI
from polymux.runtime.settings import StoreSettings
from polymux.server import lifespan, router
from polymux.server.auth.api_keys import KeyFile
from polymux.server.settings.settings import ServerSettings


def main() -> None:
    folder, loop = Path(sys.argv[1]), sys.argv[2]
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    # A router does not know the port of its application.
    settings = ServerSettings(port=port, store=StoreSettings(folder / "store"))
    key, _ = KeyFile(settings.key_file).add("test")
    mine = router(settings)
    app = FastAPI(lifespan=lambda _: lifespan(mine))
    app.include_router(mine)
    print(json.dumps([port, key]), flush=True)
    uvicorn.run(app, fd=listener.fileno(), loop=loop, log_level="error")


if __name__ == "__main__":
    main()
