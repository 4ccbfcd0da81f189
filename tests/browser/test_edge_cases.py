"""Unexpected use: odd URLs and keys, haste, endless texts."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.test_chat_and_jobs import begin, choose, released, say

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Route

    from browser.conftest import Opened
    from browser.live_server import Server


def test_an_address_that_leads_nowhere_is_the_playground(opened: Opened, server: Server) -> None:
    with opened("songs") as page:
        for place in ("%", "%E0%A4%A", "__proto__", "playground/%", ""):
            page.goto(f"{server.url}/page/#/songs")
            expect(page.get_by_label("Song", exact=True)).to_be_visible()
            page.goto(f"{server.url}/page/#/{place}")
            expect(page.get_by_role("heading", name="Playground", level=1)).to_be_visible()
            expect(page.get_by_role("alert")).to_have_count(0)


def test_what_no_key_can_be_is_reported_as_that(opened: Opened, server: Server) -> None:
    """The message does not say that the server is unreachable."""
    with opened(key="") as page:
        page.get_by_role("button", name="Enter API key").click()
        dialog = page.get_by_role("dialog", name="API key for this server")
        for text in ("ключ", "two words", f"{server.key}…"):
            dialog.get_by_label("API key", exact=True).fill(text)
            page.keyboard.press("Enter")
            expect(dialog.get_by_role("alert")).to_contain_text("key")
        dialog.get_by_label("API key", exact=True).fill(f"  {server.key}\t")
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()


def test_a_new_chat_has_nothing_of_one_that_still_streamed(opened: Opened, server: Server) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        expect(say(page, "endless")).to_contain_text("word3 ")
        page.get_by_role("button", name="New chat").click()
        expect(page.get_by_role("button", name="Send")).to_be_visible()
        # The model answers with the roles of all messages: only the user's.
        expect(say(page, "roles").locator(".prose").last).to_have_text("user")
        page.get_by_role("link", name="endless").click()
        page.get_by_role("button", name="Stop").click()
        server.until_at_work("stub", 0)


def test_a_job_is_watched_on_where_too_much_was_asked_for(opened: Opened, server: Server) -> None:
    refused: list[str] = []

    def once(route: Route) -> None:
        if refused:
            route.fallback()
            return
        refused.append(route.request.url)
        route.fulfill(status=429, body='{"error": "too many requests", "code": "rate_limited"}')

    with opened("playground/generate_image") as page:
        page.context.route("**/predictions/*/events", once)
        job = begin(page, "held")
        expect(job).to_contain_text("Running, ")
        with released(server):
            expect(job).to_contain_text("Done")
        assert refused


def test_a_file_that_changed_after_it_was_chosen(opened: Opened, tmp_path: Path) -> None:
    file = tmp_path / "a.wav"
    file.write_bytes(b"RIFF" * 1000)
    with opened("playground/convert_to_mp3") as page:
        page.locator("[name=file]").set_input_files(file)
        file.write_bytes(b"something else" * 1000)
        # Browsers compare whole seconds.
        os.utime(file, (time.time() + 10, time.time() + 10))
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".result").get_by_role("alert")).to_contain_text("changed")


def test_no_element_is_made_from_html(opened: Opened) -> None:
    with opened("chat") as page:
        refused = page.evaluate("""async () => {
            const { make } = await import("/page/dom.js");
            const markup = ["<img src=x onerror='window.ran = true'>"];
            return ["innerHTML", "outerHTML", "srcdoc"].map((name) => {
                try { return make("iframe", { [name]: markup }) && false; } catch { return true; }
            });
        }""")
        assert refused == [True] * 3
