"""``python -m benchmarks.floors [--quick]``: CPU time of each floor, as JSON.

The CPU time is the client's alone; the server is another process. `--quick` only checks that all
floors run.
"""

import json
import sys
import tempfile
from pathlib import Path

from benchmarks.floors.programs import floor, floor_server


def main() -> None:
    quick = "--quick" in sys.argv[1:]
    requests, tokens, upload_bytes = (2_000, 5, 8 << 20) if quick else (40_000, 100, 1 << 30)
    with floor_server() as server, tempfile.TemporaryDirectory() as folder:
        upload = Path(folder) / "upload"
        with upload.open("w+b") as file:
            file.truncate(upload_bytes)
            while file.read(1 << 20):
                pass  # the first reading allocates its pages; the second one is measured
        port = server.port
        measured = {
            "sequential": floor("epoll_client", "requests", port, requests, 1),
            "64 at once": floor("epoll_client", "requests", port, requests, 64),
            "1000 at once": floor("epoll_client", "requests", port, requests, 1000),
            "libcurl, sequential": floor("curl_easy_loop", f"{server.url}/", requests),
            "libcurl, upload": floor("curl_easy_loop", f"{server.url}/sink", 1, upload),
            "1000 streams at 10/s": floor("epoll_client", "streams", port, 1000, tokens, 10),
            "streams at full speed": floor("epoll_client", "streams", port, 10, 20 * tokens, 0),
        }
    for values in measured.values():
        count = values.get("requests") or values["events"]
        values["cpu_us_each"] = round(1e6 * values["cpu_s"] / count, 3)
    print(json.dumps({"floors": measured, "server": server.counters}, indent=2))


if __name__ == "__main__":
    main()
