"""Administration on the page: keys and engines."""

from __future__ import annotations

import re
import urllib.error
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.test_access import PHONE, check_axe

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from browser.conftest import Opened
    from browser.live_server import Server


HELLO = {
    "model": "smollm2",
    "messages": [{"role": "user", "content": "Hi"}],
    "max_completion_tokens": 2,
}


def keys_of(page: Page) -> Locator:
    return page.get_by_role("region", name="Keys and quotas")


def made(page: Page, name: str, *scopes: str, at_once: str = "") -> str:
    """Make a key with the keyboard alone; return it as shown. Default: with all scopes."""
    page.get_by_role("button", name="Create key").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Create key")
    dialog.get_by_label("Name").focus()
    page.keyboard.type(name)
    for scope in scopes or ("all, including administration",):
        dialog.get_by_role("checkbox", name=scope, exact=True).focus()
        page.keyboard.press("Space")
    dialog.get_by_label("Concurrent requests").focus()
    page.keyboard.type(at_once)
    page.keyboard.press("Enter")
    shown = page.get_by_label("API key", exact=True)
    expect(shown).to_be_focused()
    text = shown.input_value()
    assert re.fullmatch(r"pmx_[\w-]{43}", text)
    page.get_by_role("button", name="Done").focus()
    page.keyboard.press("Enter")
    expect(page.locator("dialog[open]")).to_have_count(0)
    return text


def status_of(server: Server, key: str) -> int:
    try:
        server.ask("api/v1/operations", key=key)
    except urllib.error.HTTPError as error:
        return error.code
    return 200


def test_the_life_of_a_key(opened: Opened, server: Server) -> None:
    """A key is shown once. Changes apply immediately and affect no other key."""
    with opened("admin", viewport=PHONE) as page:
        first = made(page, "Radio", "chat", "transcribe", at_once="3")
        row = keys_of(page).get_by_role("row").filter(has_text="Radio")
        expect(row).to_contain_text("3 concurrent")
        keys = {one["name"]: one for one in server.ask("api/v1/administration")["keys"]}
        assert set(keys["Radio"]["scopes"]) == {"chat", "transcribe"}
        assert first not in page.content()
        row.get_by_role("button", name="Change").click()
        dialog = page.get_by_role("dialog", name="Change Radio")
        expect(dialog.get_by_label("Name")).to_have_value("Radio")
        expect(dialog.get_by_role("checkbox", name="chat", exact=True)).to_be_checked()
        check_axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        dialog.get_by_label("Concurrent requests").fill("")
        dialog.get_by_label("Requests per minute").fill("0")
        dialog.get_by_role("button", name="Change", exact=True).click()
        expect(dialog.get_by_role("alert")).to_contain_text("requests_per_minute")
        dialog.get_by_label("Requests per minute").fill("90")
        dialog.get_by_role("checkbox", name="metrics", exact=True).check()
        dialog.get_by_role("button", name="Change", exact=True).click()
        expect(row).to_contain_text("90 per minute")
        expect(row).not_to_contain_text("concurrent")
        expect(row.get_by_role("button", name="Change")).to_be_focused()
        assert status_of(server, first) == 200
        row.get_by_role("button", name="Rotate").click()
        page.get_by_role("dialog", name="Rotate Radio").get_by_role("button", name="Rotate").click()
        second = page.get_by_label("API key", exact=True).input_value()
        page.get_by_role("button", name="Done").click()
        assert (status_of(server, first), status_of(server, second)) == (401, 200)
        row.get_by_role("button", name="Revoke").click()
        page.keyboard.press("Escape")
        expect(page.locator("dialog[open]")).to_have_count(0)
        assert status_of(server, second) == 200
        row.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog", name="Revoke Radio").get_by_role("button", name="Revoke").click()
        expect(row).to_have_count(0)
        assert (status_of(server, second), status_of(server, server.chat_key)) == (401, 200)
    log = server.log.read_text()
    assert first not in log
    assert second not in log


def test_the_page_s_own_key(opened: Opened, server: Server) -> None:
    """The page cannot revoke its own key, and continues with the new one after a rotation."""
    with opened("admin") as page:
        mine = made(page, "Mine")
    with opened("admin", key=mine) as page:
        row = keys_of(page).get_by_role("row").filter(has_text="yours")
        expect(row).to_contain_text("Mine")
        expect(row.get_by_role("button")).to_have_count(1)
        row.get_by_role("button", name="Rotate").click()
        page.get_by_role("dialog").get_by_role("button", name="Rotate").click()
        new = page.get_by_label("API key", exact=True).input_value()
        page.get_by_role("button", name="Done").click()
        expect(row).to_contain_text("Mine")
        assert page.evaluate("sessionStorage.getItem('polymux.key')") == new
        assert status_of(server, mine) == 401
    with opened("admin") as page:
        page.get_by_role("button", name="Revoke Mine").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(page.get_by_role("button", name="Revoke Mine")).to_have_count(0)


def test_a_key_needs_scopes_and_expires(opened: Opened, server: Server) -> None:
    """No key gets all scopes unless somebody selects them."""
    with opened("admin") as page:
        page.get_by_role("button", name="Create key").click()
        dialog = page.get_by_role("dialog", name="Create key")
        dialog.get_by_label("Name").fill("Careful")
        dialog.get_by_role("button", name="Create", exact=True).click()
        expect(dialog.get_by_text("Select at least one scope")).to_be_visible()
        every = dialog.get_by_role("checkbox", name="all, including administration")
        expect(every).to_be_focused()
        every.check()
        expect(dialog.get_by_role("checkbox", name="chat", exact=True)).to_be_disabled()
        every.uncheck()
        dialog.get_by_role("checkbox", name="chat", exact=True).check()
        dialog.get_by_label("Expires after").select_option(label="7 days")
        check_axe(page)
        dialog.get_by_role("button", name="Create", exact=True).click()
        text = page.get_by_label("API key", exact=True).input_value()
        page.get_by_role("button", name="Done").click()
        row = keys_of(page).get_by_role("row").filter(has_text="Careful")
        expect(row).to_contain_text("0 requests")
        server.ask("api/v1/operations", key=text)
        server.ask("api/v1/fastllm/chatcompletion", HELLO, key=text)
        # While the focus is in a table, the table stays as it is.
        page.evaluate("document.activeElement.blur()")
        expect(row).to_contain_text("2 requests")
        expect(row).to_contain_text(re.compile(r"\d+ tokens"))
        found = next(
            one for one in server.ask("api/v1/administration")["keys"] if one["name"] == "Careful"
        )
        assert found["scopes"] == ["chat"]
        life = datetime.fromisoformat(found["expires_at"]) - datetime.fromisoformat(
            found["created_at"]
        )
        assert round(life / timedelta(days=1)) == 7
        row.get_by_role("button", name="Revoke").click()
        page.get_by_role("dialog").get_by_role("button", name="Revoke").click()
        expect(row).to_have_count(0)


def test_an_engine_gives_its_memory_back(opened: Opened, server: Server) -> None:
    server.ask("api/v1/fastllm/chatcompletion", HELLO)
    with opened("admin") as page:
        row = page.get_by_role("region", name="Engines").get_by_role("row", name="assistant")
        expect(row).to_contain_text("ready")
        expect(row).to_contain_text("MB")
        row.get_by_role("button", name="Unload assistant").click()
        expect(row).to_contain_text("idle")
        expect(row.get_by_role("button")).to_have_count(0)
        engines = server.ask("api/v1/administration")["engines"]
        found = next(one for one in engines if one["name"] == "assistant")
        assert (found["loaded"], found["memory_bytes"]) == (False, 0)
    server.ask("api/v1/fastllm/chatcompletion", HELLO)


def test_the_server_counts_the_api_apart_from_the_page(opened: Opened, server: Server) -> None:
    server.ask("api/v1/fastllm/chatcompletion", HELLO)
    with opened("admin", permissions=["clipboard-read", "clipboard-write"]) as page:
        api = page.get_by_role("region", name="Requests since start")
        expect(api.get_by_role("row").filter(has_text="chat")).not_to_have_count(0)
        expect(api.get_by_role("rowheader", name="page", exact=True)).to_have_count(0)
        others = page.get_by_role("region", name="Requests of the web UI")
        expect(others.get_by_role("rowheader", name="page", exact=True)).to_be_visible()
        expect(page.get_by_role("img", name="Engine memory: now")).to_be_visible()
        models = page.get_by_role("region", name="Models")
        offered = models.get_by_role("row").filter(has_text="not installed").first
        offered.get_by_role("button", name="Copy").click()
        expect(offered.get_by_role("button", name="Copied")).to_be_visible()
        command = page.evaluate("navigator.clipboard.readText()")
        name = offered.get_by_role("rowheader").inner_text().split()[0]
        assert command == f"polymux models pull {name}"
