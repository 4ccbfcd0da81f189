"""Results of operations: facts, transcripts, images, and their use as inputs."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from playwright.sync_api import expect

from browser.test_access import RECOGNIZED_MS, check_axe
from browser.test_operations import result, run

if TYPE_CHECKING:
    from playwright.sync_api import Page

    from browser.conftest import Opened
    from browser.live_server import Server


def test_facts_have_words_and_units(opened: Opened, server: Server) -> None:
    with opened("playground/convert_to_mp3") as page:
        shown = run(page, server, {}, {"file": "sound"})
        facts = shown.locator("dl.facts").first
        duration = facts.locator("div", has_text="Duration").locator("dd")
        expect(duration).to_have_text(re.compile(r"^2(\.\d)? s$"))
        expect(facts.locator("div", has_text="Size")).to_contain_text("KB")
        expect(facts.locator("div", has_text="Sample rate")).to_contain_text("kHz")
        expect(shown.get_by_text("Bumped frames")).to_be_hidden()
        assert not re.search(r"\d\.\d{4}", shown.inner_text())
        shown.get_by_text("Details", exact=True).click()
        expect(shown.get_by_text("Bumped frames")).to_be_visible()


def transcribed(page: Page, server: Server) -> None:
    shown = run(page, server, {}, {"audio": "speech"})
    expect(shown.locator(".transcript")).to_be_visible(timeout=RECOGNIZED_MS)


def test_a_transcript_follows_its_recording_and_is_exported(opened: Opened, server: Server) -> None:
    with opened("playground/transcribe") as page:
        transcribed(page, server)
        shown = result(page)
        lines = shown.locator(".said")
        expect(lines.last).to_contain_text("afternoon")
        expect(shown.locator("dd", has_text="English")).to_be_visible()
        lines.last.click()
        expect(lines.last).to_have_attribute("aria-current", "true")
        assert shown.locator("audio").evaluate("(one) => one.currentTime") > 0
        saved = {}
        for kind in ("SRT", "VTT", "TXT", "JSON"):
            with page.expect_download() as download:
                shown.get_by_role("button", name=f"Export as {kind}").click()
            saved[kind] = Path(download.value.path()).read_text("utf-8")
            assert download.value.suggested_filename == f"transcript.{kind.lower()}"
        time = r"\d\d:\d\d:\d\d[,.]\d{3}"
        assert re.match(rf"1\n{time} --> {time}\nPlease ", saved["SRT"])
        assert re.match(rf"WEBVTT\n\n1\n{time} --> {time}\nPlease ", saved["VTT"])
        assert "," not in re.findall(time, saved["VTT"])[0]
        assert saved["TXT"].startswith("Please ")
        parsed = json.loads(saved["JSON"])
        assert parsed["chunks"][0]["text"].startswith("Please ")
        assert len(parsed["chunks"]) == lines.count()
        check_axe(page)
        # From the transcript to a summary.
        shown.get_by_text("Use as input").first.click()
        shown.get_by_role("button", name="Summarize").click()
        expect(page.get_by_role("heading", name="Chat completion", level=1)).to_be_visible()
        expect(page.locator("textarea[name=messages]")).to_have_value(re.compile("afternoon"))
        page.locator("[name=model]").fill("stub")
        page.get_by_role("button", name="Run").click()
        expect(result(page).get_by_role("heading", name="Sound in two steps")).to_be_visible()


def test_subtitles_of_long_and_open_ended_chunks(opened: Opened) -> None:
    with opened("songs") as page:
        written = page.evaluate(
            """async () => {
              const { FORMATS, spans } = await import("./transcript.js");
              const list = spans([
                {text: " One", timestamp: [0, 1.5]},
                {text: "Two", timestamp: [3725.25, null]},
                {text: "Three", timestamp: [3726, null]},
              ]);
              return ["srt", "vtt"].map((name) => FORMATS[name][1]("", list));
            }"""
        )
        assert "1\n00:00:00,000 --> 00:00:01,500\nOne\n" in written[0]
        assert "2\n01:02:05,250 --> 01:02:06,000\nTwo\n" in written[0]
        assert "01:02:05.250 --> 01:02:06.000" in written[1]


def test_an_upscaled_image_is_compared_with_its_input(opened: Opened, server: Server) -> None:
    with opened("playground/upscale_image") as page:
        page.get_by_role("radio", name="nightmareai/real-esrgan").check()
        shown = run(page, server, {}, {"image": "image"})
        before = shown.locator("img.before")
        expect(before).to_be_visible()
        clip = "(one) => getComputedStyle(one).clipPath"
        first = before.evaluate(clip)
        shown.get_by_label("Compare before and after").focus()
        page.keyboard.press("ArrowRight")
        assert before.evaluate(clip) != first
        check_axe(page)


def test_images_are_enlarged_one_after_another(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        shown = run(page, server, {"prompt": "two of them", "num_outputs": "2"}, {})
        thumbnails = shown.locator(".thumbnail")
        expect(thumbnails).to_have_count(2)
        thumbnails.first.focus()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog", name="Image")
        expect(dialog).to_be_visible()
        expect(dialog).to_contain_text("1 of 2")
        first = dialog.locator("img").get_attribute("src")
        page.keyboard.press("ArrowRight")
        expect(dialog).to_contain_text("2 of 2")
        assert dialog.locator("img").get_attribute("src") != first
        check_axe(page)
        page.keyboard.press("Escape")
        expect(dialog).to_be_hidden()
        expect(thumbnails.first).to_be_focused()


def test_an_image_is_upscaled_and_changed_further(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        shown = run(page, server, {"prompt": "a source"}, {})
        shown.get_by_text("Use as input").click()
        shown.get_by_role("button", name="Upscale").click()
        expect(page.get_by_role("heading", name="Image upscaling", level=1)).to_be_visible()
        expect(page.locator(".drop.filled img").first).to_be_visible()
        page.get_by_role("radio", name="nightmareai/real-esrgan").check()
        page.get_by_role("button", name="Run").click()
        expect(result(page).locator("img.before")).to_be_visible()
        result(page).get_by_text("Use as input").click()
        result(page).get_by_role("button", name="Generate from this image").click()
        expect(page.get_by_role("radio", name="lorenzomarines/astra")).to_be_checked()
        expect(page.locator("[data-field=image] .drop.filled img")).to_be_visible()


def test_a_video_is_transcribed_next(opened: Opened, server: Server) -> None:
    with opened("playground/generate_video") as page:
        shown = run(page, server, {"prompt": "a test"}, {})
        shown.get_by_text("Use as input").click()
        shown.get_by_role("button", name="Transcribe").click()
        expect(page.get_by_role("heading", name="Speech to text", level=1)).to_be_visible()
        expect(page.locator(".drop.filled video")).to_be_visible()


def test_the_last_job_of_an_operation_is_shown_again(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        run(page, server, {"prompt": "a source"}, {})
        expect(page.locator("figure img")).to_be_visible()
        page.reload()
        expect(page.locator("figure img")).to_be_visible()
