"""The forms of operations: inputs, what is kept of them, and what can run."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from polymux import contract
from support.hosted_server import HostedServer
from support.services import Scripted

from browser.test_access import check_axe
from browser.test_operations import result

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page
    from polymux.service.model import OperationRequest

    from browser.conftest import Opened
    from browser.live_server import Server

IMAGES = "playground/generate_image"
PROMPT = "a lighthouse"


def shown(page: Page, name: str) -> None:
    expect(page.get_by_role("heading", name=name, exact=True, level=1)).to_be_visible()


def test_inputs_survive_back_reload_and_a_change_of_the_model(
    opened: Opened, server: Server
) -> None:
    with opened(IMAGES) as page:
        prompt, steps = page.locator("[name=prompt]"), page.locator("[name=num_inference_steps]")
        prompt.fill(PROMPT)
        steps.fill("7")
        page.get_by_role("link", name="All operations").click()
        shown(page, "Playground")
        page.go_back()
        shown(page, "Image generation")
        expect(prompt).to_have_value(PROMPT)
        expect(steps).to_have_value("7")
        page.get_by_role("radio", name="lorenzomarines/astra").check()
        expect(prompt).to_have_value(PROMPT)
        page.locator("[name=image]").set_input_files(server.samples.image)
        page.reload()
        expect(page.get_by_role("radio", name="lorenzomarines/astra")).to_be_checked()
        expect(prompt).to_have_value(PROMPT)
        expect(steps).to_have_value("7")
        # Another operation has its own inputs.
        page.goto(page.url.replace("generate_image", "generate_video"))
        shown(page, "Video generation")
        expect(page.locator("[name=prompt]")).to_have_value("")


def test_a_file_survives_another_view(opened: Opened, server: Server) -> None:
    with opened("playground/convert_to_mp3") as page:
        page.locator("[name=file]").set_input_files(server.samples.sound)
        page.get_by_role("link", name="Songs", exact=True).click()
        expect(page.get_by_label("Song", exact=True)).to_be_visible()
        page.go_back()
        expect(page.get_by_text("a.wav")).to_be_visible()
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".job")).to_contain_text("Done")


def test_numbers_have_sliders_and_are_reset(opened: Opened) -> None:
    with opened(IMAGES) as page:
        steps = page.get_by_label("Inference steps", exact=True)
        slider = page.get_by_label("Inference steps, slider")
        reset = page.get_by_role("button", name="Reset Inference steps")
        expect(slider).to_have_value("4")
        expect(steps).to_have_attribute("placeholder", "4")
        expect(reset).to_be_hidden()
        slider.focus()
        page.keyboard.press("ArrowRight")
        expect(steps).to_have_value("5")
        steps.fill("9")
        expect(slider).to_have_value("9")
        reset.click()
        expect(steps).to_have_value("")
        expect(slider).to_have_value("4")
        expect(reset).to_be_hidden()
        steps.fill("9")
        page.locator("[name=prompt]").fill(PROMPT)
        page.get_by_role("button", name="Reset", exact=True).click()
        expect(steps).to_have_value("")
        expect(page.locator("[name=prompt]")).to_have_value("")


def test_every_slider_begins_at_the_default_of_the_server(opened: Opened) -> None:
    """And it moves within the bounds of the contract, in steps that the server accepts."""
    with opened("playground") as page:
        for operation in contract.operations():
            for variant in operation.variants:
                page.goto(re.sub("#.*", f"#/playground/{operation.name}", page.url))
                shown(page, operation.title)
                if len(operation.variants) > 1:
                    page.get_by_role("radio", name=variant.model or "").check()
                for slider in page.locator(".slider").all():
                    name = slider.evaluate("(one) => one.closest('[data-field]').dataset.field")
                    field = variant.field(name)
                    usual = (
                        field.default
                        if field.default is not None
                        else field.raw["upstream_default"]
                    )
                    found = slider.evaluate(
                        "(one) => [one.value, one.min, one.max, one.step].map(Number)"
                    )
                    value, low, high, step = found
                    assert value == usual, name
                    assert field.minimum is not None
                    assert (
                        (low > field.minimum) if field.exclusive_minimum else (low == field.minimum)
                    )
                    assert high == field.maximum
                    assert step % (field.multiple_of or step) == 0
                    assert field.type != "integer" or step == int(step)


def test_a_size_is_chosen(opened: Opened) -> None:
    with opened(IMAGES) as page:
        size = page.get_by_label("Size", exact=True)
        width, height = page.locator("[name=width]"), page.locator("[name=height]")
        options = size.locator("option").all_inner_texts()
        wide = next(one for one in options if one.startswith("16:9"))
        size.select_option(label=wide)
        across, down = (int(field.input_value()) for field in (width, height))
        assert (across % 8, down % 8) == (0, 0)
        assert across <= 1280
        assert across / down == pytest.approx(16 / 9, rel=0.02)
        width.fill("264")
        expect(size).to_have_value("")
        page.locator("[name=prompt]").fill(PROMPT)
        with page.expect_request("**/imagegeneration*") as asked:
            page.keyboard.press("Control+Enter")
        sent = asked.value.post_data_json
        assert (sent["width"], sent["height"]) == (264, down)
        expect(page.locator("figure img")).to_be_visible()


def test_a_file_or_a_url_is_given(opened: Opened, server: Server) -> None:
    with opened("playground/convert_to_mp3") as page:
        page.locator("[name=file]").set_input_files(server.samples.sound)
        expect(page.locator("[name=url]")).to_be_hidden()
        page.get_by_role("radio", name="File", exact=True).focus()
        page.keyboard.press("ArrowRight")
        expect(page.locator("[name=url]")).to_be_visible()
        expect(page.get_by_text("a.wav")).to_be_hidden()
        page.locator("[name=url]").fill("https://media.example/a.wav")
        page.keyboard.press("Control+Enter")
        # The test server has no Internet: it got the URL, and no file.
        expect(result(page).get_by_role("alert")).to_contain_text("URL")
        page.reload()
        expect(page.get_by_role("radio", name="URL", exact=True)).to_be_checked()
        page.get_by_role("radio", name="File", exact=True).check()
        page.locator("[name=file]").set_input_files(server.samples.sound)
        page.get_by_role("button", name="Run").click()
        expect(page.locator(".job")).to_contain_text("Done")


def test_stop_sequences_are_lines(opened: Opened) -> None:
    with opened("playground/chat") as page:
        page.locator("[name=messages]").fill("hello")
        page.locator("[name=model]").fill("stub")
        page.get_by_text("More options").click()
        page.get_by_label("Stop sequences", exact=True).fill("END\n<stop>")
        with page.expect_request("**/chatcompletion") as asked:
            page.get_by_role("button", name="Run").click()
        assert asked.value.post_data_json["stop"] == ["END", "<stop>"]
        expect(result(page).get_by_role("heading", name="Sound in two steps")).to_be_visible()


def test_a_wrong_number_in_a_closed_fold_is_shown(opened: Opened) -> None:
    with opened("playground/upscale_image") as page:
        creativity = page.get_by_label("Creativity", exact=True)
        page.get_by_text("Settings").click()
        creativity.fill("5")
        page.get_by_text("Settings").click()
        expect(creativity).to_be_hidden()
        page.get_by_role("button", name="Run").click()
        expect(creativity).to_be_visible()


def test_a_drop_beside_the_field_keeps_the_page(opened: Opened) -> None:
    with opened("playground/convert_to_mp3") as page:
        shown(page, "Conversion to MP3")
        ended = page.evaluate(
            """() => ["dragover", "drop"].map((kind) => {
              const dataTransfer = new DataTransfer();
              const event = new DragEvent(kind, {bubbles: true, cancelable: true, dataTransfer});
              document.querySelector("h1").dispatchEvent(event);
              return event.defaultPrevented;
            })"""
        )
        assert ended == [True, True]


def test_the_result_comes_into_view_on_a_phone(opened: Opened) -> None:
    with opened(IMAGES, viewport={"width": 390, "height": 844}, has_touch=True) as page:
        page.locator("[name=prompt]").fill(PROMPT)
        run = page.get_by_role("button", name="Run")
        # Also at the top of a long form.
        expect(run).to_be_in_viewport()
        # Playwright scrolls to what it clicks, but not for keys.
        page.locator("[name=prompt]").press("Control+Enter")
        expect(page.locator("figure img")).to_be_in_viewport(ratio=0.9)
        expect(page.locator(".job-head")).to_be_in_viewport()
        # The button under the bar at the top would be too small to touch.
        page.evaluate("scrollTo(0, 0)")
        check_axe(page)


def test_a_form_by_keyboard(opened: Opened) -> None:
    """From the top of the page to the result and the code."""
    with opened(IMAGES) as page:
        shown(page, "Image generation")
        page.locator("#content").focus()

        def tab_to(selector: str) -> None:
            for _ in range(40):
                page.keyboard.press("Tab")
                if page.evaluate(f"document.activeElement.matches('{selector}')"):
                    return
            pytest.fail(f"{selector}: not reached by the Tab key")

        tab_to("[name=variant]")
        page.keyboard.press("ArrowDown")
        expect(page.get_by_role("radio", name="lorenzomarines/astra")).to_be_checked()
        tab_to("[name=prompt]")
        page.keyboard.type(PROMPT)
        tab_to("details summary")
        page.keyboard.press("Enter")
        tab_to(".slider")
        page.keyboard.press("ArrowRight")
        tab_to(".run [type=submit]")
        page.keyboard.press("Enter")
        expect(page.locator("figure img")).to_be_visible()
        expect(page.get_by_role("button", name="Run")).to_be_focused()
        tab_to("[name=panel]")
        page.keyboard.press("ArrowRight")
        expect(page.locator(".api code")).to_contain_text(PROMPT)
        tab_to("[name=code]")
        page.keyboard.press("ArrowRight")
        expect(page.locator(".api code")).to_contain_text("import polymux")
        for media in ({"color_scheme": "dark"}, {"forced_colors": "active"}):
            page.emulate_media(**media)
            check_axe(page)


class Images(Scripted):
    """Has a usual model for the variant B, and a small model for the others."""

    def __init__(self) -> None:
        super().__init__("images", ("generate_image",))

    def is_fallback(self, work: OperationRequest) -> bool:
        return work.variant != "B"


def test_missing_and_small_models_are_shown_before_a_run(opened: Opened, tmp_path: Path) -> None:
    with (
        HostedServer(tmp_path / "s", lambda: [Images()]) as server,
        opened("playground", origin=server.url, key=server.key,
               permissions=["clipboard-read", "clipboard-write"]) as page,
    ):  # fmt: skip
        cards = page.locator("a.operation")
        expect(cards.filter(has_text="Music generation")).to_contain_text("Not installed")
        expect(cards.filter(has_text="Image generation")).not_to_contain_text("Not installed")
        cards.filter(has_text="Image generation").click()
        note = page.locator(".notice")
        expect(note).to_contain_text("comes with polymux")
        check_axe(page)
        page.get_by_role("radio", name="lorenzomarines/astra").check()
        expect(note).to_have_count(0)
        page.goto(f"{server.url}/page/#/playground/generate_music")
        expect(note).to_contain_text("polymux models pull riffusion-model-v1")
        note.locator(".command", has_text="models pull").get_by_role("button", name="Copy").click()
        expect(note.get_by_role("button", name="Copied")).to_be_visible()
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied == "polymux models pull riffusion-model-v1"
        check_axe(page)
