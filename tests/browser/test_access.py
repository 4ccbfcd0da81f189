"""Access and accessibility: keys, keyboard, screen readers, narrow screens, both color schemes."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from support.hosted_server import HostedServer
from support.services import Scripted

from browser.screenshots import check_picture

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.conftest import Opened
    from browser.live_server import Server


RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]
PHONE = {"width": 360, "height": 740}
#: Speech recognition on a busy machine.
RECOGNIZED_MS = 240_000


def show_playground(page: Page) -> None:
    expect(page.locator("a.operation")).to_have_count(14)


def show_operation(page: Page) -> None:
    page.locator("[name=prompt]").fill("the sky over a city at dusk")
    page.get_by_role("button", name="Run").click()
    expect(page.locator("figure img")).to_be_visible()
    page.locator("figure img").evaluate("(one) => one.decode()")
    page.evaluate("scrollTo(0, 0)")


def show_chat(page: Page) -> None:
    page.get_by_role("combobox", name="Model", exact=True).fill("stub")
    page.get_by_label("Message", exact=True).fill("How do I make an MP3?")
    page.keyboard.press("Enter")
    expect(page.locator(".bubble.assistant")).to_contain_text("tokens/s")


def show_jobs(page: Page) -> None:
    show_operation(page)
    page.get_by_role("link", name="Jobs").click()
    # The list has the jobs of other tests, too.
    page.get_by_label("Search jobs").fill("the sky over a city at dusk")
    expect(page.get_by_text("found in")).to_be_visible()
    page.locator(".job-thumb").first.evaluate("(one) => one.decode()")


def show_songs(page: Page) -> None:
    page.get_by_label("Song", exact=True).fill("danube")
    page.keyboard.press("Enter")
    cover = page.locator("img.cover")
    expect(cover).to_be_visible()
    cover.evaluate("(one) => one.decode()")


def show_server(page: Page) -> None:
    expect(page.get_by_role("heading", name="Keys and quotas")).to_be_visible()


VIEWS = {
    "playground": ("playground", show_playground),
    "operation": ("playground/generate_image", show_operation),
    "chat": ("chat", show_chat),
    "jobs": ("playground/generate_image", show_jobs),
    "songs": ("songs", show_songs),
    "server": ("admin", show_server),
}


@pytest.mark.parametrize("view", VIEWS)
def test_a_view_is_for_everybody(view: str, opened: Opened) -> None:
    """axe finds no violation, dark on a wide screen and light on a phone, and nothing overflows."""
    place, show = VIEWS[view]
    with opened(place, color_scheme="light") as page:
        show(page)
        check_view(view, page)


def test_a_view_of_a_transcription_is_for_everybody(opened: Opened, server: Server) -> None:
    with opened("playground/transcribe", color_scheme="light") as page:
        page.locator("[name=audio]").set_input_files(server.samples.speech)
        page.get_by_role("button", name="Run").click()
        shown = page.get_by_role("region", name="Result", exact=True)
        expect(shown).to_contain_text("afternoon", timeout=RECOGNIZED_MS)
        page.evaluate("scrollTo(0, 0)")
        check_view("transcription", page)


def check_view(view: str, page: Page) -> None:
    light = page.screenshot(animations="disabled")
    page.emulate_media(color_scheme="dark")
    dark = page.screenshot(animations="disabled")
    check_axe(page)
    page.emulate_media(color_scheme="light")
    page.set_viewport_size(PHONE)
    assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
    check_axe(page)
    check_picture(f"{view}-light", light)
    check_picture(f"{view}-dark", dark)


def check_axe(page: Page) -> None:
    from axe_playwright_python.sync_playwright import Axe

    # For rules that pass, report one place only.
    options = {"runOnly": {"type": "tag", "values": RULES}, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options)
    assert found.response["passes"], "axe checked nothing"
    violations = [
        f"{one['id']}: {node['html'][:200]} {node['failureSummary']}"
        for one in found.response["violations"]
        for node in one["nodes"]
    ]
    assert not violations, "\n".join(violations)


def test_a_wrong_key_is_reported_and_a_right_one_opens(opened: Opened, server: Server) -> None:
    with opened("chat", key=" ") as page:
        page.evaluate("sessionStorage.setItem('polymux.key', 'pmx_wrong')")
        page.reload()
        dialog = page.get_by_role("dialog", name="API key for this server")
        field = dialog.get_by_label("API key", exact=True)
        expect(field).to_be_focused()
        field.fill("pmx_other")
        page.keyboard.press("Enter")
        expect(field).to_have_attribute("aria-invalid", "true")
        assert page.evaluate("sessionStorage.getItem('polymux.key')") == "pmx_wrong"
        field.fill(server.key)
        page.keyboard.press("Enter")
        expect(dialog).to_be_hidden()
        expect(page.get_by_label("Message", exact=True)).to_be_visible()
        kept = page.evaluate(
            "[sessionStorage.getItem('polymux.key'), JSON.stringify(localStorage)]"
        )
        assert kept == [server.key, "{}"]
        assert page.evaluate("document.cookie") == ""
        page.get_by_role("button", name="Key: change or sign out").click()
        dialog.get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("Sign in with an API key")).to_be_visible()
        assert page.evaluate("sessionStorage.getItem('polymux.key')") is None


def test_forced_colors_show_the_current_view(opened: Opened) -> None:
    with opened("songs", forced_colors="active") as page:
        songs = page.get_by_role("link", name="Songs", exact=True)
        expect(songs).to_have_css("outline-style", "solid")
        jobs = page.get_by_role("link", name="Jobs", exact=True)
        expect(jobs).to_have_css("outline-style", "none")
        check_axe(page)


def test_the_server_view_is_marked_when_opened_by_its_address(opened: Opened) -> None:
    with opened("admin") as page:
        link = page.get_by_role("link", name="Server", exact=True)
        expect(link).to_have_attribute("aria-current", "page")


def test_what_a_key_may_not_see_is_not_offered(opened: Opened, server: Server) -> None:
    with opened("admin", key=server.chat_key) as page:
        expect(page.locator(".empty")).to_contain_text("administration")
        expect(page.get_by_role("link", name="Chat", exact=True)).to_be_visible()
        expect(page.get_by_role("link", name="Server", exact=True)).to_have_count(0)


def test_the_server_at_a_glance(opened: Opened, server: Server) -> None:
    with opened() as page:
        page.get_by_role("link", name="Server", exact=True).click()
        for title in ("Engines", "Upstreams", "Models", "Requests since start"):
            expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
        keys = page.get_by_role("region", name="Keys and quotas")
        expect(keys).to_contain_text("Ada's laptop")
        expect(keys).to_contain_text("4 concurrent")
        expect(page.get_by_role("region", name="Engines")).to_contain_text("smollm2")
        assert server.key not in page.content()


def test_everything_by_keyboard(opened: Opened) -> None:
    with opened("playground") as page:
        show_playground(page)
        page.keyboard.press("Tab")
        page.evaluate("document.activeElement.blur()")
        page.locator(".skip").focus()
        page.keyboard.press("Enter")
        expect(page.locator("#content")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Chat with failover", level=1)).to_be_visible()


def test_colours_are_chosen_and_kept(opened: Opened) -> None:
    with opened("playground", color_scheme="light") as page:
        show_playground(page)
        ground = "getComputedStyle(document.body).backgroundColor"
        light = page.evaluate(ground)
        for wanted in ("Light", "Dark"):
            page.get_by_role("button", name=re.compile("^Theme")).click()
            expect(page.get_by_role("button", name=f"Theme: {wanted}")).to_be_visible()
        assert page.evaluate(ground) != light
        page.reload()
        expect(page.get_by_role("button", name="Theme: Dark")).to_be_visible()
        assert page.evaluate(ground) != light


def test_a_server_that_has_gone_is_reported(opened: Opened) -> None:
    with opened("jobs") as page:
        expect(page.locator(".job-row").or_(page.locator(".empty")).first).to_be_visible()
        page.context.set_offline(True)
        page.get_by_role("button", name="Refresh").click()
        expect(page.get_by_role("alert")).to_contain_text("unreachable")
        page.context.set_offline(False)
        page.get_by_role("button", name="Refresh").click()
        expect(page.get_by_role("alert")).to_have_count(0)


def test_beneath_a_prefix_of_somebody_s_application(opened: Opened, tmp_path: Path) -> None:
    """All requests stay below the prefix; the guard allows nothing else."""
    place = "playground/convert_to_mp3"
    with (
        HostedServer(tmp_path / "s", lambda: [Scripted()], prefix="/tools") as server,
        opened(place, origin=f"{server.url}/tools", key=server.key) as page,
    ):
        page.get_by_role("radio", name="URL", exact=True).check()
        page.locator("[name=url]").fill("https://media.example/a.wav")
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".job")).to_contain_text("Done")
        made = page.locator("figure[data-kind=audio] audio")
        expect(made).to_have_attribute("src", re.compile(re.escape(f"{server.url}/tools/media/")))
