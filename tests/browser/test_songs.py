"""The music library on the page: list, player, search, and identification."""

from __future__ import annotations

from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.test_access import PHONE, check_axe

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from browser.conftest import Opened
    from browser.live_server import Server


def library(page: Page) -> Locator:
    return page.get_by_role("list", name="Music library")


def test_the_library_is_played_by_keyboard(opened: Opened) -> None:
    with opened("songs") as page:
        song = library(page).get_by_role("listitem").filter(has_text="Blue Danube")
        expect(song).to_contain_text("Strauss")
        song.get_by_role("button", name="Play Blue Danube - Strauss").focus()
        page.keyboard.press("Enter")
        player = page.get_by_label("Blue Danube - Strauss", exact=True)
        expect(player).to_be_visible()
        page.wait_for_function("() => document.querySelector('audio').currentTime > 0")
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page.get_by_role("heading", name="Jobs", level=1)).to_be_visible()
        expect(page.locator("audio")).to_have_count(0)


def test_a_recording_is_identified(opened: Opened, server: Server) -> None:
    with opened("songs") as page:
        page.get_by_label("Choose a recording").set_input_files(server.samples.snippet)
        expect(page.get_by_role("link", name="Blue Danube - Strauss")).to_be_visible()
        check_axe(page)
        page.get_by_label("Choose a recording").set_input_files(server.samples.speech)
        expect(page.get_by_text("No match found")).to_be_visible()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_the_microphone_is_heard(opened: Opened) -> None:
    """The browser's own test sound matches no song."""
    with opened("songs", permissions=["microphone"]) as page:
        page.get_by_role("button", name="Use the microphone").click()
        expect(page.get_by_text("Listening for")).to_be_visible()
        page.wait_for_timeout(1500)
        page.get_by_role("button", name="Stop and identify").click()
        expect(page.get_by_text("No match found")).to_be_visible()
        expect(page.get_by_role("button", name="Use the microphone")).to_be_visible()


def test_without_a_microphone(opened: Opened) -> None:
    with opened("songs", permissions=[]) as page:
        page.evaluate("""() => {
            const denied = new DOMException("denied", "NotAllowedError");
            navigator.mediaDevices.getUserMedia = () => Promise.reject(denied);
        }""")
        page.get_by_role("button", name="Use the microphone").click()
        expect(page.get_by_role("alert")).to_contain_text("microphone")


def test_songs_are_for_everybody(opened: Opened) -> None:
    for options in ({}, {"color_scheme": "dark"}, {"forced_colors": "active"}, {"viewport": PHONE}):
        with opened("songs", **options) as page:
            expect(library(page).get_by_role("listitem").first).to_be_visible()
            check_axe(page)
            width = page.evaluate("document.documentElement.clientWidth")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
