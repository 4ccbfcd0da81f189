"""Conversations of the chat: what keeps them, and what users do with them."""

from __future__ import annotations

import base64
import json
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect

from browser.live_server import Server
from browser.test_access import PHONE, check_axe
from browser.test_chat_and_jobs import choose, say

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from browser.conftest import Opened

_LONG = 1000


def conversation(page: Page) -> Locator:
    return page.get_by_role("log", name="Conversation")


def listed(page: Page) -> Locator:
    return page.get_by_role("navigation", name="Conversations")


def until_answered(answer: Locator) -> None:
    expect(answer.get_by_role("button", name="Regenerate")).to_be_visible()


def menu(page: Page, item: str) -> None:
    page.get_by_label("More", exact=True).click()
    page.get_by_role("button", name=item, exact=True).click()


def test_a_reload_keeps_the_conversation_and_its_settings(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        page.get_by_text("Settings", exact=True).click()
        page.get_by_label("System prompt").fill("Be brief.")
        page.keyboard.press("Escape")
        until_answered(say(page, "hello"))
        page.reload()
        answer = conversation(page).locator(".bubble.assistant")
        expect(answer.get_by_role("heading", name="Sound in two steps")).to_be_visible()
        expect(answer).to_contain_text("tokens/s")
        expect(page.get_by_role("combobox", name="Model", exact=True)).to_have_value("stub")
        expect(say(page, "roles")).to_contain_text("system user assistant user")


def test_a_response_goes_on_while_another_view_is_open(opened: Opened, server: Server) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        expect(say(page, "endless")).to_contain_text("word3 ")
        page.get_by_label("Message", exact=True).fill("a draft")
        page.get_by_role("link", name="Songs").click()
        expect(page.get_by_label("Song", exact=True)).to_be_visible()
        expect(page.locator("#places .dot.busy")).to_be_visible()
        server.until_at_work("stub", 1)
        before = page.evaluate(_LENGTH)
        page.get_by_role("link", name="Chat").click()
        expect(page.get_by_label("Message", exact=True)).to_have_value("a draft")
        words = int(before) // len("word00 ")
        expect(page.locator(".bubble.assistant")).to_contain_text(f"word{words + 20} ")
        page.get_by_role("button", name="Stop").click()
        server.until_at_work("stub", 0)
        expect(page.locator("#places .dot.busy")).to_have_count(0)


#: The length of the longest stored message.
_LENGTH = """async () => {
    const { readConversations, readConversation } = await import("/page/storage.js");
    const [{ id }] = await readConversations();
    const { messages } = await readConversation(id);
    return Math.max(...messages.map((one) => one.content.length));
}"""


def test_a_response_cut_by_a_reload_can_be_tried_again(opened: Opened, server: Server) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        expect(say(page, "endless")).to_contain_text("word60 ")
        page.reload()
        server.until_at_work("stub", 0)
        answer = page.locator(".bubble.assistant")
        expect(answer).to_contain_text("word3 ")
        expect(answer).to_contain_text("Interrupted")
        answer.get_by_role("button", name="Retry").click()
        # Requests of the page pass through this process, so it may not only wait for the server.
        expect(answer).not_to_contain_text("Interrupted")
        expect(answer).to_contain_text("word3 ")
        server.until_at_work("stub", 1)
        expect(answer).to_have_count(1)
        page.get_by_role("button", name="Stop").click()
        expect(answer).to_contain_text("Stopped")


def test_a_failed_message_stays_and_can_be_sent_again(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "nobody")
        answer = say(page, "hello")
        expect(answer.get_by_role("alert")).to_contain_text("model_not_found")
        expect(conversation(page).locator(".bubble.user")).to_contain_text("hello")
        choose(page, "stub")
        answer.get_by_role("button", name="Retry").click()
        expect(answer.get_by_role("heading", name="Sound in two steps")).to_be_visible()
        expect(answer.get_by_role("alert")).to_have_count(0)


def test_a_conversation_survives_without_a_network(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        until_answered(say(page, "hello"))
        page.context.set_offline(True)
        expect(page.locator("#health")).to_contain_text("unreachable")
        answer = say(page, "roles")
        expect(answer.get_by_role("alert")).to_contain_text("cannot connect")
        page.get_by_role("button", name="New chat").first.click()
        expect(conversation(page)).to_contain_text("Ask a question")
        page.get_by_role("link", name="hello").click()
        expect(conversation(page).locator(".bubble")).to_have_count(4)
        page.context.set_offline(False)
        expect(page.locator("#health")).not_to_contain_text("unreachable")
        answer.get_by_role("button", name="Retry").click()
        expect(answer).to_contain_text("user assistant user")


def test_a_conversation_survives_a_restart_of_the_server(opened: Opened, tmp_path: Path) -> None:
    server = Server(tmp_path / "server")
    with ExitStack() as stack:
        with server:
            page = stack.enter_context(opened("chat", origin=server.url, key=server.key))
            choose(page, "stub")
            until_answered(say(page, "hello"))
        answer = say(page, "roles")
        expect(answer.get_by_role("alert")).to_contain_text("cannot connect")
        with server:
            answer.get_by_role("button", name="Retry").click()
            expect(answer).to_contain_text("user assistant user")
            page.reload()
            expect(conversation(page).locator(".bubble")).to_have_count(4)


def test_the_list_of_conversations(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        until_answered(say(page, "hello"))
        page.get_by_role("button", name="New chat").first.click()
        until_answered(say(page, "roles"))
        expect(listed(page).get_by_role("link")).to_have_count(2)
        expect(listed(page).get_by_role("link").first).to_contain_text("roles")
        # In the text of a response.
        listed(page).get_by_label("Search conversations").fill("SOUND IN")
        expect(listed(page).get_by_role("link")).to_have_count(1)
        listed(page).get_by_role("link", name="hello").click()
        expect(conversation(page).get_by_role("heading", name="Sound in two steps")).to_be_visible()
        menu(page, "Rename")
        page.get_by_role("dialog").get_by_label("Title").fill("How sound works")
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="How sound works", level=1)).to_be_visible()
        page.reload()
        expect(listed(page).get_by_role("link", name="How sound works")).to_be_visible()
        menu(page, "Delete")
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(listed(page).get_by_role("link")).to_have_count(1)
        expect(conversation(page)).to_contain_text("Ask a question")
        listed(page).get_by_role("button", name="Delete all conversations").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        expect(listed(page).get_by_role("link")).to_have_count(1)
        listed(page).get_by_role("button", name="Delete all conversations").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete all").click()
        expect(listed(page)).to_contain_text("No conversations yet")


def test_a_conversation_is_exported(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        until_answered(say(page, "hello"))
        with page.expect_download() as waited:
            menu(page, "Export as Markdown")
        assert waited.value.suggested_filename == "hello.md"
        text = Path(waited.value.path()).read_text("utf-8")
        assert text.startswith("# hello\n\n## You\n\nhello\n\n## Model\n\n## Sound")
        with page.expect_download() as waited:
            menu(page, "Export as JSON")
        data = json.loads(Path(waited.value.path()).read_bytes())
        assert [one["role"] for one in data["messages"]] == ["user", "assistant"]
        assert data["settings"]["model"] == "stub"


def test_versions_of_a_response_and_of_a_message(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        answer = page.locator(".bubble.assistant")
        until_answered(say(page, "roles"))
        answer.get_by_role("button", name="Regenerate").click()
        expect(answer).to_contain_text("2 of 2")
        user = page.locator(".bubble.user")
        user.get_by_role("button", name="Edit").click()
        user.get_by_label("Message", exact=True).fill("hello")
        user.get_by_role("button", name="Send").click()
        expect(answer.get_by_role("heading", name="Sound in two steps")).to_be_visible()
        until_answered(answer)
        expect(user).to_contain_text("2 of 2")
        user.get_by_role("button", name="Previous version").click()
        expect(user).to_contain_text("roles")
        expect(answer).to_contain_text("2 of 2")
        page.reload()
        expect(user).to_contain_text("1 of 2")
        # The model sees this version only.
        expect(say(page, "roles")).to_contain_text("user assistant user")


_GIVE_FILES = """(target, [kind, name, type]) => {
    const bytes = name.endsWith(".png")
        ? Uint8Array.from(atob(window.image), (one) => one.charCodeAt(0)) : new Uint8Array(100);
    const data = new DataTransfer();
    data.items.add(new File([bytes], name, { type }));
    const given = kind === "paste" ? { clipboardData: data } : { dataTransfer: data };
    const Kind = kind === "paste" ? ClipboardEvent : DragEvent;
    const event = new Kind(kind, { ...given, bubbles: true, cancelable: true });
    target.dispatchEvent(event);
    return event.defaultPrevented;
}"""


def test_images_are_pasted_and_dropped(opened: Opened, server: Server) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        image = base64.b64encode(server.samples.image.read_bytes()).decode()
        page.add_init_script(f"window.image = '{image}'")
        page.evaluate(f"window.image = '{image}'")
        field = page.get_by_label("Message", exact=True)
        thumbs = page.locator(".composer .thumb")
        field.evaluate(_GIVE_FILES, ["paste", "a.png", "image/png"])
        expect(thumbs).to_have_count(1)
        conversation(page).evaluate(_GIVE_FILES, ["drop", "b.png", "image/png"])
        expect(thumbs).to_have_count(2)
        # The declared type does not matter.
        page.locator("#chat-image").set_input_files(server.samples.sound)
        expect(page.get_by_role("alert")).to_contain_text("unsupported image format")
        conversation(page).evaluate(_GIVE_FILES, ["drop", "c.wav", "image/png"])
        expect(thumbs).to_have_count(2)
        page.get_by_role("button", name="Remove image").first.click()
        expect(thumbs).to_have_count(1)
        until_answered(say(page, "what is it?"))
        page.reload()
        sent = page.locator(".bubble.user img")
        expect(sent).to_have_count(1)
        assert sent.evaluate("(one) => one.decode().then(() => one.naturalWidth)") == 32
        # Beside the chat, the browser must not open the file.
        assert page.locator("body").evaluate(_GIVE_FILES, ["drop", "a.png", "image/png"])


def test_a_long_conversation(opened: Opened) -> None:
    with opened("chat") as page:
        expect(conversation(page)).to_contain_text("Ask a question")
        id_ = page.evaluate(
            """async (count) => {
                const { Conversation } = await import("/page/conversations.js");
                const { write } = await import("/page/storage.js");
                const one = new Conversation({ model: "stub", operation: "chat" });
                for (let n = 0; n < count; n++) {
                    const role = n % 2 ? "assistant" : "user";
                    one.add(role, `message **${n}**`, one.record.leaf).created = n;
                }
                one.record.title = "long";
                await write(one.record, [...one.messages.values()]);
                return one.id;
            }""",
            _LONG,
        )
        page.reload()
        page.get_by_role("link", name="long").click()
        assert page.url.endswith(id_)
        expect(conversation(page).locator(".bubble").last).to_contain_text(str(_LONG - 1))
        drawn = conversation(page).locator(".bubble").count()
        assert drawn < _LONG / 10
        conversation(page).evaluate("(one) => one.scrollTo(0, 0)")
        expect(conversation(page).locator(".bubble")).not_to_have_count(drawn)
        # The message that was at the top is still in sight.
        top = conversation(page).get_by_text(str(_LONG - drawn))
        expect(top).to_be_in_viewport()


@pytest.mark.parametrize("size", [(844, 390), (720, 450)])
def test_a_low_window_shows_the_conversation(opened: Opened, size: tuple[int, int]) -> None:
    """A phone on its side, and a screen of 1440x900 with 200 % zoom."""
    width, height = size
    with opened("chat", viewport={"width": width, "height": height}) as page:
        choose(page, "stub")
        until_answered(say(page, "hello"))
        shown = conversation(page).bounding_box()
        assert shown is not None
        assert shown["height"] >= 0.6 * height
        composer = page.get_by_role("button", name="Send").bounding_box()
        assert composer is not None
        assert composer["y"] + composer["height"] <= height
        assert page.evaluate("document.documentElement.scrollHeight") <= height
        check_axe(page)


def test_the_menus_are_for_everybody(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        until_answered(say(page, "- [x] hello"))
        page.get_by_label("More", exact=True).click()
        check_axe(page)
        page.get_by_role("button", name="Rename").click()
        check_axe(page)
        page.keyboard.press("Escape")
        page.set_viewport_size(PHONE)
        page.get_by_role("button", name="Conversations").click()
        expect(listed(page).get_by_label("Search conversations")).to_be_focused()
        check_axe(page)
        page.keyboard.press("Escape")
        expect(listed(page)).to_be_hidden()
        page.locator("summary").filter(has_text="Settings").click()
        check_axe(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]


_FOCUSED = """(() => {
    const one = document.activeElement;
    return one.getAttribute("aria-label") ?? one.textContent;
})()"""


def test_a_conversation_by_keyboard(opened: Opened) -> None:
    with opened("chat", permissions=["clipboard-read", "clipboard-write"]) as page:
        page.get_by_role("combobox", name="Model", exact=True).focus()
        page.keyboard.press("ControlOrMeta+a")
        page.keyboard.type("stub")
        for _ in range(20):
            if page.evaluate("document.activeElement.id") == "chat-input":
                break
            page.keyboard.press("Tab")
        page.keyboard.type("roles")
        page.keyboard.press("Enter")
        until_answered(page.locator(".bubble.assistant"))
        expect(page.get_by_label("Message", exact=True)).to_be_focused()
        for wanted in ("Regenerate", "Copy"):
            for _ in range(20):
                if page.evaluate(_FOCUSED) == wanted:
                    break
                page.keyboard.press("Shift+Tab")
            assert page.evaluate(_FOCUSED) == wanted
        page.keyboard.press("Enter")
        expect(page.get_by_role("button", name="Copied")).to_be_visible()


def test_two_tabs_show_the_same_list(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "stub")
        other = page.context.new_page()
        other.goto(page.url)
        expect(listed(other)).to_contain_text("No conversations yet")
        until_answered(say(page, "hello"))
        expect(listed(other).get_by_role("link", name="hello")).to_be_visible()


def test_reasoning_is_folded(opened: Opened) -> None:
    with opened("chat") as page:
        expect(conversation(page)).to_contain_text("Ask a question")
        parts = page.evaluate("""async () => {
            const { thought } = await import("/page/conversations.js");
            return ["<think>a\\n</think>\\n\\nb", "<think>a", "a <think>"].map(thought);
        }""")
        assert parts == [
            {"reasoning": "a", "text": "b"},
            {"reasoning": "a", "text": ""},
            {"reasoning": "", "text": "a <think>"},
        ]
