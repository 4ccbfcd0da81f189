"""Every operation through the page, in the way of a first-time user."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from playwright.sync_api import expect
from polymux import contract

from browser.stub_engine import ANSWER

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

    from browser.conftest import Opened
    from browser.live_server import Server


#: Operation to the filled fields, the uploaded files, and the expected result.
CASES = {
    "chat": ({"messages": "hello", "model": "stub"}, {}, "Sound in two steps"),
    "free_chat": ({"messages": "hello"}, {}, "Sound in two steps"),
    "search_music": ({"song": "danube"}, {}, "Blue Danube - Strauss"),
    "generate_image": ({"prompt": "a set"}, {}, "image"),
    "upscale_image": ({}, {"image": "image"}, "image"),
    "transcribe": ({}, {"audio": "speech"}, "budget"),
    "generate_video": ({"prompt": "a test"}, {}, "video"),
    "generate_music": ({"prompt_a": "a tone"}, {}, "audio"),
    "identify_song": ({}, {"file": "snippet"}, "Blue Danube - Strauss"),
    "download_video": ({"url": "https://videos.example/1"}, {}, "video"),
    "summarize_video": ({"url": "https://videos.example/1"}, {}, "A video about sound"),
    "download_music": ({"query": "a tone"}, {}, "audio"),
    "convert_to_mp3": ({}, {"file": "sound"}, "audio"),
    "read_text": ({}, {"file": "image"}, "MUSIC 2026"),
}
#: Operation and model to the filled fields, the uploaded files, and the names that must arrive.
VARIANTS = {
    ("upscale_image", "philz1337x/clarity-upscaler"): (
        {"prompt": "sharp"}, {"image": "image", "mask": "mask"}, "image, mask, prompt"
    ),
    ("generate_image", "lorenzomarines/astra"): (
        {"prompt": "a red roof", "num_outputs": "2"}, {"image": "image", "mask": "mask"},
        "image, mask, num_outputs, prompt",
    ),
    ("generate_image", "playgroundai/playground-v2.5-1024px-aesthetic"): (
        {"prompt": "a red roof"}, {"image": "image", "mask": "mask"}, "image, mask, prompt"
    ),
}  # fmt: skip
MEDIA = ("audio", "video", "image")


def result(page: Page) -> Locator:
    return page.get_by_role("region", name="Result", exact=True)


def test_all_of_them_are_there(opened: Opened) -> None:
    with opened() as page:
        cards = page.locator("a.operation")
        expect(cards).to_have_count(len(contract.operations()))
        assert {one.name for one in contract.operations()} == CASES.keys()
        page.get_by_role("link", name="Conversion to MP3").click()
        expect(page.get_by_role("heading", name="Conversion to MP3", level=1)).to_be_visible()


def run(page: Page, server: Server, fields: dict[str, str], files: dict[str, str]) -> Locator:
    """Fill in a form and send it; return the locator of its result."""
    for field, text in fields.items():
        page.locator(f"[name={field}]").fill(text)
    for field, sample in files.items():
        page.locator(f"[name={field}]").set_input_files(getattr(server.samples, sample))
    page.get_by_role("button", name="Run").click()
    return page.get_by_role("region", name="Result", exact=True)


def check_result(shown: Locator, wanted: str) -> None:
    if wanted not in MEDIA:
        expect(shown.get_by_text(wanted).first).to_be_visible()
        return
    made = shown.locator(f"figure[data-kind={wanted}]").first
    expect(made).to_be_visible()
    expect(shown.get_by_role("link", name="Download").first).to_be_visible()
    # An upscaled image is beside its input.
    loads(made.locator({"image": "img"}.get(wanted, wanted)).first, wanted)


def test_each_operation(opened: Opened, server: Server) -> None:
    """All on one page, one after another."""
    with opened() as page:
        # The real engine loads slowly, and this test is about the page.
        page.context.route(
            "**/api/v1/image2text", lambda one: one.fulfill(json={"text": "MUSIC 2026"})
        )
        for operation in contract.operations():
            fields, files, wanted = CASES[operation.name]
            page.goto(f"{server.url}/page/#/playground/{operation.name}")
            heading = page.get_by_role("heading", name=operation.title, exact=True, level=1)
            expect(heading).to_be_visible()
            if operation.name == "upscale_image":
                page.get_by_role("radio", name="nightmareai/real-esrgan").check()
            check_result(run(page, server, fields, files), wanted)


def test_each_further_model_of_an_operation(opened: Opened, server: Server) -> None:
    """The model gets an image and a mask for inpainting, and all filled fields."""
    # Fails for a new model, and for a form without values in VARIANTS.
    of_cases = {"upscale_image": "nightmareai/real-esrgan"}
    known = {(one.name, of_cases.get(one.name, one.variants[0].model))
             for one in contract.operations()}  # fmt: skip
    pairs = {(one.name, variant.model) for one in contract.operations() for variant in one.variants}
    assert pairs == known | VARIANTS.keys()
    for (name, model), (fields, files, arrived) in VARIANTS.items():
        with opened(f"playground/{name}") as page:
            page.get_by_role("radio", name=model).check()
            for fold in page.locator("form summary").all():
                fold.click()
            shown = run(page, server, fields, files)
            made = shown.locator("figure[data-kind=image]")
            expect(made).to_have_count(int(fields.get("num_outputs", 1)))
            loads(made.first.locator("img"), "image")
            shown.get_by_text("Log").click()
            log = shown.get_by_role("region", name="Log")
            expect(log).to_contain_text(f"for {model} with {arrived}\n")


def test_a_mask_without_its_picture_is_refused(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        page.get_by_role("radio", name="lorenzomarines/astra").check()
        expect(page.locator("li", has_text=re.compile(r"\bmask\b.*\bimage\b"))).to_be_visible()
        run(page, server, {"prompt": "a red roof"}, {"mask": "mask"})
        expect(page.locator("[data-field=mask] .field-error")).to_contain_text("image")


def test_a_result_is_copied(opened: Opened) -> None:
    """A text is copied unchanged, a file as its link."""
    with opened("playground/chat", permissions=["clipboard-read", "clipboard-write"]) as page:
        copied = "navigator.clipboard.readText()"
        page.locator("[name=messages]").fill("hello")
        page.locator("[name=model]").fill("stub")
        page.get_by_role("button", name="Run").click()
        result(page).locator("div.row:not(details *)").get_by_role("button", name="Copy").click()
        expect(result(page).get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate(copied).strip() == ANSWER.strip()
        page.goto(page.url.replace("playground/chat", "playground/download_music"))
        page.locator("[name=query]").fill("a tone")
        page.get_by_role("button", name="Run").click()
        result(page).get_by_role("button", name="Copy link").click()
        expect(result(page).get_by_role("button", name="Copied")).to_be_visible()
        link = page.evaluate(copied)
        assert link.startswith("http")
        assert result(page).get_by_role("link", name="Download").get_attribute("href") == link


def loads(player: Locator, kind: str) -> None:
    """Check that the browser has loaded the image or media and has its size or duration."""
    player.scroll_into_view_if_needed()
    wait = """(one) => new Promise((resolve) => {
      const know = () => (one.naturalWidth || one.duration) > 0 && resolve(true);
      for (const kind of ["load", "loadedmetadata"]) one.addEventListener(kind, know);
      know();
    })"""
    assert player.evaluate(wait), kind


def test_what_a_form_shows_is_of_the_contract(opened: Opened) -> None:
    with opened("playground/generate_image") as page:
        width = page.get_by_label("Width", exact=True)
        expect(width).to_have_attribute("min", "256")
        expect(width).to_have_attribute("step", "8")
        expect(width).to_have_attribute("placeholder", "1024")
        steps = re.compile(r"^\D*256\b\D*1280\b\D*\bpx\b\D*\b8\W*$")
        expect(page.get_by_text(steps).first).to_be_visible()
        expect(page.get_by_label("Scheduler", exact=True)).to_have_value("K_EULER")
        expect(page.get_by_label("Seed", exact=True)).to_be_hidden()
        page.get_by_text("More options").click()
        expect(page.get_by_label("Seed", exact=True)).to_be_visible()
        page.goto(page.url.replace("generate_image", "upscale_image"))
        creativity = page.get_by_label("Creativity", exact=True)
        expect(creativity).to_be_hidden()
        page.get_by_text("Settings").click()
        expect(creativity).to_be_visible()
        expect(page.get_by_label("Image required", exact=True)).to_be_attached()


def test_a_file_is_dropped_and_its_upload_is_shown(opened: Opened) -> None:
    with opened("playground/convert_to_mp3") as page:
        drop = page.evaluate_handle(
            """() => {
              const transfer = new DataTransfer();
              const noise = new Uint8Array(3 << 20);
              transfer.items.add(new File([noise], "noise.wav", {type: "audio/wav"}));
              return transfer;
            }"""
        )
        page.evaluate(
            """() => { window.notes = []; new MutationObserver(() => {
              const bar = document.querySelector(".uploading progress");
              if (bar) notes.push(document.querySelector(".uploading .note").textContent);
            }).observe(document.body, {subtree: true, childList: true, attributes: true}); }"""
        )
        page.locator(".drop").dispatch_event("drop", {"dataTransfer": drop})
        expect(page.get_by_text("noise.wav")).to_be_visible()
        page.get_by_role("button", name="Run").click()
        failure = result(page).get_by_role("alert").first
        expect(failure).to_contain_text("wav")
        assert any("Upload" in one for one in page.evaluate("notes"))


def test_what_the_server_refuses_stands_at_its_field(opened: Opened) -> None:
    """Only there, and not in the result."""
    with opened("playground/download_video") as page:
        page.locator("[name=url]").fill("https://videos.example/1")
        page.get_by_label("Resolution", exact=True).fill("enormous")
        page.get_by_role("button", name="Run").click()
        field = page.get_by_label("Resolution", exact=True)
        expect(field).to_have_attribute("aria-invalid", "true")
        expect(field).to_be_focused()
        expect(page.locator("[data-field=resolution] .field-error")).to_contain_text("enormous")
        expect(page.get_by_text("enormous")).to_have_count(1)
        expect(result(page).get_by_role("alert")).to_have_count(0)


def test_stopping_what_does_not_stream_ends_the_work(opened: Opened, server: Server) -> None:
    with opened("playground/chat") as page:
        page.locator("[name=messages]").fill("endless")
        page.locator("[name=model]").fill("stub")
        page.get_by_role("button", name="Run").click()
        server.until_at_work("stub", 1)
        page.get_by_role("button", name="Stop").click()
        expect(result(page)).to_contain_text("Stopped")
        server.until_at_work("stub", 0)


def test_a_chat_streams_in_the_playground_too(opened: Opened) -> None:
    with opened("playground/free_chat") as page:
        page.locator("textarea[name=messages]").fill("hello")
        page.get_by_label("Stream", exact=True).check()
        page.get_by_role("button", name="Run").click()
        expect(result(page).get_by_role("heading", name="Sound in two steps")).to_be_visible()
