"""Links that sign in, and keys that the device remembers."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.test_access import check_axe, show_playground

if TYPE_CHECKING:
    from browser.conftest import Opened
    from browser.live_server import Server

_STORED = "[sessionStorage.getItem('polymux.key'), localStorage.getItem('polymux.key')]"


def test_a_link_signs_in_and_leaves_no_key_in_the_address(opened: Opened, server: Server) -> None:
    with opened(key="") as page:
        expect(page.get_by_text("Sign in with an API key")).to_be_visible()
        # Also in a page that is open.
        page.evaluate(f"location.hash = 'key={server.key}'")
        show_playground(page)
        assert page.url == f"{server.url}/page/#/"
        assert page.evaluate(_STORED) == [server.key, None]
        page.reload()
        show_playground(page)


def test_a_link_replaces_no_key_unasked(opened: Opened, server: Server) -> None:
    """A link may come from anyone: their key would show them what this user does."""
    with opened("songs") as page:
        page.evaluate(f"location.hash = 'key={server.chat_key}'")
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("another API key")
        assert server.chat_key not in page.url
        dialog.get_by_role("button", name="Cancel").click()
        show_playground(page)
        assert page.evaluate(_STORED) == [server.key, None]
        page.evaluate(f"location.hash = 'key={server.chat_key}'")
        dialog.get_by_role("button", name="Continue").click()
        show_playground(page)
        assert page.evaluate(_STORED) == [server.chat_key, None]
        page.evaluate("location.hash = 'key=<img>'")
        show_playground(page)
        assert page.evaluate(_STORED) == [server.chat_key, None]


def test_the_device_remembers_a_key(opened: Opened, server: Server) -> None:
    with opened(key="") as page:
        page.get_by_role("button", name="Enter API key").click()
        dialog = page.get_by_role("dialog", name="API key for this server")
        check_axe(page)
        dialog.get_by_label("API key", exact=True).fill(server.key)
        dialog.get_by_role("checkbox", name="Remember on this device").check()
        page.keyboard.press("Enter")
        show_playground(page)
        assert page.evaluate(_STORED) == [None, server.key]
        other = page.context.new_page()
        other.add_init_script("sessionStorage.removeItem('polymux.key')")
        other.goto(f"{server.url}/page/#/playground")
        show_playground(other)
        page.get_by_role("button", name="Key: change or sign out").click()
        dialog.get_by_role("button", name="Sign out").click()
        # All tabs are signed out.
        expect(other.get_by_text("Sign in with an API key")).to_be_visible()
        assert page.evaluate(_STORED) == [None, None]


def test_the_state_of_the_server_is_shown(opened: Opened) -> None:
    with opened("songs") as page:
        health = page.locator("#health")
        expect(health.locator(".dot.good")).to_be_visible()
        page.context.set_offline(True)
        expect(health).to_contain_text("unreachable")
        expect(health.locator(".dot.good")).to_have_count(0)
        page.context.set_offline(False)
        expect(health.locator(".dot.good")).to_be_visible()


def test_the_title_names_what_is_shown(opened: Opened) -> None:
    with opened("playground/transcribe") as page:
        expect(page).to_have_title("Speech to text · polymux")
        page.get_by_role("link", name="Server", exact=True).click()
        expect(page).to_have_title("Server · polymux")
        page.get_by_role("link", name="Songs", exact=True).click()
        expect(page).to_have_title("Songs · polymux")


def test_chosen_colors_come_before_the_first_paint(opened: Opened) -> None:
    """The script in the head has run when the browser reads the body, before any module."""
    with opened("playground", color_scheme="light") as page:
        page.evaluate("localStorage.setItem('polymux.theme', 'dark')")
        page.context.route(re.compile(r"/(?!early)\w+\.js$"), lambda route: route.abort())
        page.reload()
        expect(page.locator("html")).to_have_attribute("data-theme", "dark")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(18, 19, 24)"


def test_a_dialog_darkens_the_whole_window(opened: Opened) -> None:
    with opened("songs", color_scheme="light") as page:
        ground = "getComputedStyle(document.documentElement).backgroundColor"
        before = page.evaluate(ground)
        page.get_by_role("button", name="Key: change or sign out").click()
        expect(page.get_by_role("dialog")).to_be_visible()
        assert page.evaluate(ground) != before


def test_low_windows_show_every_view(opened: Opened) -> None:
    """A phone on its side, and a screen of 1440x900 with 200 % zoom."""
    for width, height in ((844, 390), (720, 450)):
        for place in ("playground", "playground/transcribe", "jobs", "songs", "admin"):
            with opened(place, viewport={"width": width, "height": height}) as page:
                expect(page.get_by_role("heading", level=1)).to_be_visible()
                shown = page.locator("main").bounding_box()
                assert shown is not None
                # The navigation leaves most of the window to the view.
                assert shown["width"] >= 0.85 * width
                assert shown["y"] <= 0.1 * height
                assert page.evaluate("document.documentElement.scrollWidth") <= width
