"""A browser on a real server. No test may leave the server or violate its content policy."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.live_server import Server

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from contextlib import AbstractContextManager

    from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Route

    Opened = Callable[..., AbstractContextManager[Page]]

CHROMIUM = "/usr/bin/chromium"
#: No background requests of the browser, and no name except localhost resolves.
_ARGUMENTS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync",
    "--disable-background-networking", "--disable-component-update",
    "--use-fake-device-for-media-stream", "--use-fake-ui-for-media-stream",
    "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1",
]  # fmt: skip
_WATCH = """
window.seen = {violations: [], shifts: []};
addEventListener("securitypolicyviolation", (event) =>
  seen.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
new PerformanceObserver((list) => seen.shifts.push(
  ...list.getEntries().filter((one) => !one.hadRecentInput).map((one) => one.value)))
  .observe({type: "layout-shift", buffered: true});
"""
#: Includes the time that engines need to load, on a busy machine.
_WAIT_MS = 60_000


@pytest.fixture(scope="session")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("server")) as running:
        yield running


@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    """One browser for this folder. While it exists, this thread has a running event loop."""
    try:
        from playwright.sync_api import expect, sync_playwright
    except ImportError:
        pytest.fail("playwright is missing: scripts/setup test installs it", pytrace=False)
    if not Path(CHROMIUM).exists():
        pytest.fail("chromium is missing: sudo apt-get install chromium", pytrace=False)
    expect.set_options(timeout=_WAIT_MS)
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=CHROMIUM, args=_ARGUMENTS)
        yield launched
        launched.close()


class Guard:
    """Fails if a page leaves the server, violates the content policy, or reports an error."""

    def __init__(self, context: BrowserContext, url: str) -> None:
        self._url = url
        self.left: list[str] = []
        self.failed: list[str] = []
        self.asked: list[str] = []
        #: Browser messages about answers that a test expects, such as those to wrong keys.
        self.allowed = "Failed to load resource"
        context.route("**/*", self._see)
        context.add_init_script(_WATCH)

    def _see(self, route: Route) -> None:
        url = route.request.url
        self.asked.append(url)
        if url.startswith((f"{self._url}/", "blob:", "data:")):
            route.continue_()
        else:
            self.left.append(url)
            route.abort()

    def watch(self, page: Page) -> None:
        page.set_default_timeout(_WAIT_MS)
        page.on("pageerror", lambda error: self.failed.append(str(error)))
        page.on("console", self._hear)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and self.allowed not in message.text:
            self.failed.append(message.text)

    def check(self, page: Page, key: str) -> None:
        assert not self.left
        assert not self.failed
        assert page.evaluate("seen.violations") == []
        assert not [url for url in self.asked if key in url]


@pytest.fixture
def opened(server: Server, browser: Browser) -> Opened:
    """Open the page in a new window with a key. The end of the test checks the guard."""

    @contextmanager
    def opening(
        place: str = "", *, key: str | None = None, origin: str = "", **options: Any
    ) -> Iterator[Page]:
        url = origin or server.url
        # The processor would redraw animations constantly.
        plain = {"viewport": {"width": 1280, "height": 860}, "reduced_motion": "reduce"}
        context = browser.new_context(**{**plain, **options})
        guard = Guard(context, url)
        shown = server.key if key is None else key
        context.add_init_script(f"sessionStorage.getItem('polymux.key') ?? {_keep(shown)}")
        page = context.new_page()
        page.guard = guard  # type: ignore[attr-defined]
        guard.watch(page)
        page.goto(f"{url}/page/#/{place}")
        try:
            yield page
            guard.check(page, server.key)
        finally:
            context.close()

    return opening


def _keep(key: str) -> str:
    return f"sessionStorage.setItem('polymux.key', '{key}')"
