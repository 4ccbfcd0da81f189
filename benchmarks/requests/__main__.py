"""`scripts/bench requests`: cost of small requests, compared with other clients and plain
libcurl."""

from __future__ import annotations

import sys

from benchmarks.contest import OURS, Case, Variant, arguments, compete
from benchmarks.environment import Environment
from benchmarks.floors.programs import FloorServer, built, floor_server
from benchmarks.measure import first_line
from benchmarks.requests import tls
from benchmarks.verdicts import CPU, LOOP, USER, WALL, Goal

REQUEST = "polymux, Client.request"
EASY = "libcurl in C, one handle"
MULTI = "libcurl in C, many handles"
EPOLL = "sockets and epoll, no library"
DEFAULT_TLS = "libcurl in C, as it comes"
CACHED_TLS = "libcurl in C, no folder of certificates"
PEERS = ("requests", "httpx", "httpx2", "urllib3", "pycurl", "curl_cffi", "openai", "groq")
TLS_PEERS = ("requests", "httpx", "httpx2", "urllib3")
SIZES = {False: (4_000, 4_000, 4_000, 40), True: (100, 128, 100, 3)}


def own(name: str, module: str, *rest: object) -> Variant:
    client = name.partition(" + ")[0]
    return Variant(name, (sys.executable, "-m", module, client, *map(str, rest)), ours=True)


def program(name: str, *command: object) -> Variant:
    return Variant(name, tuple(map(str, command)), ours=True)


def peer(environment: Environment, name: str, module: str, *rest: object) -> Variant:
    """Return a peer that runs in the peers' environment."""
    client = name.partition(" + ")[0]
    command = (environment.python, "-m", module, client, *map(str, rest))
    return Variant(name, command, env={"PEERS_PACKAGES": str(environment.packages)})


def with_uvloop(environment: Environment, variant: Variant) -> Variant:
    """Return the same contender on the uvloop of the peers' environment."""
    env = {"PEERS_PACKAGES": str(environment.packages)}
    return Variant(f"{variant.name} + uvloop", (*variant.command, "uvloop"), env=env)


def sequential(server: FloorServer, environment: Environment, count: int) -> Case:
    """Sequential requests."""
    module = "benchmarks.requests.sync_clients"
    goals = [
        Goal("CPU over a C loop over libcurl's", 1.15, EASY, at_most=True),
        Goal("requests", 8, "requests"),
        Goal("requests, in user space", 20, "requests", USER),
        Goal("httpx", 5, "httpx"),
        Goal("httpx2", 5, "httpx2"),
    ]
    variants = (
        own(OURS, module, server.url, count),
        own(REQUEST, module, server.url, count),
        program(EPOLL, built("epoll_client"), "requests", server.port, count, 1),
        program(EASY, built("curl_easy_loop"), f"{server.url}/", count),
        *[peer(environment, name, module, server.url, count) for name in PEERS],
    )
    return Case("one after another", variants, (CPU, USER, WALL), tuple(goals))


def at_once(server: FloorServer, environment: Environment, count: int, many: int) -> Case:
    """Concurrent requests on an event loop."""
    module = "benchmarks.requests.async_clients"
    ours = own(OURS, module, server.url, count, many)
    aiohttp = peer(environment, "aiohttp", module, server.url, count, many)
    names = ["curl_cffi", "httpx2", "openai"] if many < 100 else ["curl_cffi"]
    if many < 100:
        goals = [
            Goal("CPU over libcurl's in C", 1.5, MULTI, at_most=True),
            Goal("aiohttp", 3.3, "aiohttp"),
            Goal("aiohttp, both on uvloop", 3.3, "aiohttp + uvloop", ours=f"{OURS} + uvloop"),
            Goal("curl_cffi", 7.5, "curl_cffi"),
            Goal("httpx2", 20, "httpx2"),
        ]
    else:
        goals = [Goal("aiohttp", 2.8, "aiohttp")]
    variants = (
        ours,
        with_uvloop(environment, ours),
        program(EPOLL, built("epoll_client"), "requests", server.port, count, many),
        program(MULTI, built("curl_multi_loop"), f"{server.url}/", count, many),
        aiohttp,
        with_uvloop(environment, aiohttp),
        *[peer(environment, name, module, server.url, count, many) for name in names],
    )
    return Case(f"{many:,} at once, asyncio", variants, (CPU, LOOP, WALL), tuple(goals))


def new_connections(url: str, bundle: str, environment: Environment, count: int) -> Case:
    """Requests over TLS, each on a new connection."""
    module = "benchmarks.requests.sync_clients"
    loop = built("curl_tls_loop")
    variants = (
        own(OURS, module, url, count, bundle),
        program(DEFAULT_TLS, loop, f"{url}/", count, bundle, "default"),
        program(CACHED_TLS, loop, f"{url}/", count, bundle, "cached"),
        *[peer(environment, name, module, url, count, bundle) for name in TLS_PEERS],
    )
    goals = (Goal("libcurl as it comes", 20, DEFAULT_TLS),)
    return Case("new TLS connections", variants, (CPU, USER, WALL), goals)


def main() -> None:
    options = arguments("requests", __doc__)
    environment = Environment("requests")
    if options.with_peers:
        environment.prepare()
    one, some, many, connections = SIZES[options.quick]
    with floor_server() as server, tls.tls_server() as (tls_url, bundle):
        cases = [
            sequential(server, environment, one),
            at_once(server, environment, some, 64),
            at_once(server, environment, many, 1_000 if not options.quick else 100),
            new_connections(tls_url, bundle, environment, connections),
        ]
        versions = environment.versions() if options.with_peers else {}
        versions["libcurl of the floors"] = first_line(["curl-config", "--version"])
        compete("requests", cases, options, versions, waits=True)


if __name__ == "__main__":
    main()
