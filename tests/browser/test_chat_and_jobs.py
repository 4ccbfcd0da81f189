"""Streaming answers, canceled work, and jobs, while the page is open."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.stub_engine import RELEASE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from browser.conftest import Opened
    from browser.live_server import Server


def choose(page: Page, model: str) -> None:
    page.get_by_role("combobox", name="Model", exact=True).fill(model)


def say(page: Page, text: str) -> Locator:
    """Send a message; return the locator of the answer, which may still grow."""
    before = page.locator(".bubble.assistant").count()
    page.get_by_label("Message", exact=True).fill(text)
    page.keyboard.press("Enter")
    return page.locator(".bubble.assistant").nth(before)


def test_an_answer_is_shown_as_markdown_and_runs_nothing(opened: Opened) -> None:
    with opened("chat", permissions=["clipboard-read", "clipboard-write"]) as page:
        choose(page, "stub")
        answer = say(page, "hello")
        expect(answer.get_by_role("heading", name="Sound in two steps")).to_be_visible()
        expect(answer.locator("ol > li strong")).to_have_text("Open")
        expect(answer.locator("td").first).to_have_text("MP3")
        expect(answer.locator("pre")).to_have_text('print("<b>no markup</b>")')
        guide = answer.get_by_role("link", name="the guide")
        expect(guide).to_have_attribute("href", "https://guide.example/mp3")
        expect(guide).to_have_attribute("rel", "noopener noreferrer nofollow")
        expect(answer).to_contain_text("<img src=x")
        expect(answer.get_by_text("bad")).to_be_visible()
        assert answer.get_by_role("link").count() == 2
        expect(answer).to_contain_text("7 tokens in")
        expect(answer).to_contain_text("tokens/s")
        assert answer.locator("img, script, iframe").count() == 0
        answer.locator(".code").get_by_role("button", name="Copy").click()
        expect(answer.get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == 'print("<b>no markup</b>")'


def test_stopping_an_answer_ends_the_server_s_work(opened: Opened, server: Server) -> None:
    """Nothing on the page moves while an answer streams."""
    with opened("chat", reduced_motion="no-preference") as page:
        choose(page, "stub")
        page.evaluate("seen.shifts = []")
        answer = say(page, "endless")
        expect(answer).to_contain_text("word60 ")
        server.until_at_work("stub", 1)
        page.get_by_role("button", name="Stop").click()
        expect(answer).to_contain_text("Stopped")
        assert sum(page.evaluate("seen.shifts")) < 0.01
        server.until_at_work("stub", 0)
        expect(say(page, "roles")).to_contain_text("user assistant user")


def test_a_real_model_hears_the_system_prompt(opened: Opened) -> None:
    with opened("chat") as page:
        expect(page.locator("#chat-models option[value=smollm2]")).to_be_attached()
        # Models of other operations cannot chat.
        expect(page.locator("#chat-models option[value*=whisper]")).to_have_count(0)
        choose(page, "smollm2")
        page.get_by_text("Settings", exact=True).click()
        page.get_by_label("System prompt").fill("You answer in one word.")
        page.get_by_label("Maximum output tokens").fill("8")
        page.keyboard.press("Escape")
        expect(page.get_by_label("System prompt")).to_be_hidden()
        answer = say(page, "Is the sky blue?")
        expect(answer).to_contain_text("smollm2 ·")
        expect(answer).to_contain_text("tokens in")


def test_what_the_server_says_of_a_wrong_model(opened: Opened) -> None:
    with opened("chat") as page:
        choose(page, "nobody")
        alert = say(page, "hello").get_by_role("alert")
        expect(alert).to_contain_text("nobody")
        expect(alert).to_contain_text("model_not_found")


def test_a_chat_with_failover(opened: Opened) -> None:
    with opened("chat") as page:
        page.get_by_text("Settings", exact=True).click()
        page.get_by_label("Operation", exact=True).select_option("free_chat")
        expect(page.get_by_role("combobox", name="Model", exact=True)).to_have_value("gpt-4o")
        expect(page.get_by_label("Temperature")).to_be_hidden()
        expect(say(page, "hello").get_by_role("heading", name="Sound in two steps")).to_be_visible()


def begin(page: Page, prompt: str) -> Locator:
    page.locator("[name=prompt]").fill(prompt)
    page.get_by_role("button", name="Run").click()
    return page.locator(".job")


def test_a_job_shows_how_it_goes_and_is_cancelled(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        job = begin(page, "held")
        expect(job).to_contain_text("Running, ")
        expect(job.get_by_role("img", name="Preview")).to_be_visible()
        job.get_by_text("Log").click()
        expect(job.get_by_role("region", name="Log")).to_contain_text("held until")
        expect(page.locator("#places .count")).to_have_text("1 running")
        job.get_by_role("button", name="Cancel").click()
        expect(job).to_contain_text("Canceled")
        server.until_at_work("stub", 0)
        expect(page.locator("#places .count")).to_have_count(0)


def test_a_job_outlives_a_reload(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        expect(begin(page, "held")).to_contain_text("Running, ")
        page.reload()
        expect(page.locator("#places .count")).to_have_text("1 running")
        page.get_by_role("link", name="Jobs").click()
        row = page.locator(".job-row").first
        expect(row).to_contain_text("Image generation")
        row.get_by_role("link").click()
        job = page.locator(".job")
        expect(job).to_contain_text("Running, ")
        with released(server):
            expect(job).to_contain_text("Done")
        expect(job.get_by_role("img", name="held")).to_be_visible()
        expect(page.locator("#places .count")).to_have_count(0)


@contextmanager
def released(server: Server) -> Iterator[None]:
    """Release held jobs."""
    file = server.samples.folder / RELEASE
    file.touch()
    yield
    file.unlink()


def test_a_job_is_removed_with_its_files(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        job = begin(page, "gone soon")
        expect(job).to_contain_text("Done")
        id_ = job.get_attribute("data-job")
        job.get_by_role("button", name="Delete").click()
        expect(job).to_have_text("Deleted")
        assert id_ not in {one["id"] for one in server.ask("api/v1/predictions")["results"]}


def test_the_songs(opened: Opened) -> None:
    with opened("songs") as page:
        for words in ("nothing like it", "danube"):
            page.get_by_label("Song", exact=True).fill(words)
            page.get_by_role("button", name="Search").click()
            if words != "danube":
                expect(page.get_by_text("No match found")).to_be_visible()
        song = page.get_by_role("link", name="Blue Danube - Strauss")
        expect(song).to_be_visible()
        cover = page.locator("img.cover")
        assert cover.evaluate("(one) => one.decode().then(() => one.naturalWidth > 0)")
        with page.context.expect_page() as other:
            song.click()
        expect(other.value.get_by_role("heading", name="Blue Danube")).to_be_visible()
