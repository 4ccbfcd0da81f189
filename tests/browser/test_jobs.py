"""The list of jobs and the page of a job."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from polymux.server.auth.api_keys import KeyFile
from polymux.service.job_table import Job, new_id
from polymux.service.store import Store

from browser.live_server import Server
from browser.test_access import PHONE, check_axe
from browser.test_chat_and_jobs import begin, released

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Locator, Page

    from browser.conftest import Opened

_MANY = 10_000
_MAX_NODES = 3_000
_NODES = "document.querySelectorAll('*').length"


def rows(page: Page) -> Locator:
    return page.get_by_role("list", name="Jobs").get_by_role("listitem")


def generated(server: Server, *prompts: str) -> list[str]:
    """Run a job for each prompt; return their IDs."""
    path = "api/v1/modelhost/imagegeneration"
    return [str(server.ask(path, {"prompt": one})["id"]) for one in prompts]


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose job table has many jobs. Every hundredth has failed."""
    server = Server(tmp_path_factory.mktemp("full"))
    owner = next(iter(KeyFile(server.folder / "store" / "keys.json").keys())).id
    store = Store(server.folder / "store")
    now = time.time()
    with store._database.transaction():  # One transaction for all.
        for number in range(_MANY):
            failed = number % 100 == 0
            began = now - _MANY + number
            job = Job(
                id=new_id(),
                owner=owner,
                operation="transcribe",
                model="transcribe",
                version="hidden",
                input={"audio": f"file:recording {number:05}.wav"},
                created_at=began,
                status="failed" if failed else "succeeded",
                output=None if failed else {"text": "hello"},
                error={"message": "broken", "code": "invalid"} if failed else None,
                completed_at=began + 0.5,
            )
            store.jobs.add(job)
    store.close()
    with server as running:
        yield running


def test_ten_thousand_jobs(full: Server, opened: Opened) -> None:
    """Only the rows in sight are in the document, at every position and for every filter."""
    with opened("jobs", origin=full.url, key=full.key) as page:
        expect(rows(page).filter(has_text=f"recording {_MANY - 1:05}.wav")).to_be_in_viewport()
        oldest = rows(page).filter(has_text="recording 00000.wav")
        for _ in range(_MANY // 100 * 2):
            assert page.evaluate(_NODES) <= _MAX_NODES
            if oldest.count():
                break
            loaded = page.evaluate("document.documentElement.scrollHeight")
            page.evaluate("scrollTo(0, document.documentElement.scrollHeight)")
            page.wait_for_function(
                "([before]) => document.documentElement.scrollHeight > before"
                " || document.body.innerText.includes('recording 00000.wav')",
                arg=[loaded],
            )
        expect(oldest).to_be_in_viewport()
        expect(page.get_by_role("status").filter(has_text=str(_MANY))).to_be_visible()
        page.evaluate("scrollTo(0, document.documentElement.scrollHeight / 2)")
        expect(rows(page).filter(has_text="recording 05000.wav")).to_be_in_viewport()
        assert page.evaluate(_NODES) <= _MAX_NODES
        page.get_by_label("State").select_option(label="Failed")
        expect(page.get_by_role("status").filter(has_text="100 found")).to_be_visible()
        page.get_by_label("Search jobs").fill("RECORDING 00300")
        expect(rows(page)).to_have_count(1)
        page.reload()
        # The search loads what it needs, and the row is not among the newest.
        page.get_by_label("Search jobs").fill("recording 00300")
        row = rows(page).filter(has_text="recording 00300.wav")
        row.get_by_role("link").click()
        expect(page.get_by_role("heading", name="Speech to text", level=1)).to_be_visible()
        expect(page.get_by_role("alert")).to_contain_text("broken")
        page.go_back()
        expect(row).to_be_in_viewport()
        expect(page.get_by_label("Search jobs")).to_have_value("recording 00300")


def test_jobs_are_found_and_deleted_by_keyboard(opened: Opened, server: Server) -> None:
    ids = generated(server, "a green heron", "a green mill", "a red mill")
    with opened("jobs") as page:
        search = page.get_by_label("Search jobs")
        search.focus()
        page.keyboard.type("green")
        expect(rows(page)).to_have_count(2)
        expect(rows(page).first).to_contain_text("Image generation")
        expect(rows(page).first).to_contain_text("a green mill")
        expect(rows(page).first).to_contain_text("Done")
        page.get_by_label("Operation", exact=True).select_option("transcribe")
        expect(page.get_by_text("No job found")).to_be_visible()
        page.get_by_label("Operation", exact=True).select_option("generate_image")
        page.get_by_label("Select all").focus()
        page.keyboard.press("Space")
        expect(page.get_by_text("2 selected")).to_be_visible()
        page.keyboard.press("Tab")
        expect(page.get_by_role("button", name="Delete selected")).to_be_focused()
        page.keyboard.press("Enter")
        dialog = page.get_by_role("dialog")
        check_axe(page)
        page.keyboard.press("Escape")
        expect(dialog).to_have_count(0)
        expect(rows(page)).to_have_count(2)
        page.get_by_role("button", name="Delete selected").focus()
        page.keyboard.press("Enter")
        expect(dialog.get_by_role("button", name="Delete")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.get_by_text("No job found")).to_be_visible()
        left = {one["id"] for one in server.ask("api/v1/predictions")["results"]}
        assert left & set(ids) == {ids[2]}
        search.fill("red mill")
        rows(page).get_by_role("link").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_role("heading", name="Image generation", level=1)).to_be_visible()
        assert page.url.endswith(f"#/jobs/{ids[2]}")
        page.get_by_role("button", name="Delete").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("No job found")).to_be_visible()


def test_a_row_follows_its_job(opened: Opened, server: Server) -> None:
    with opened("playground/generate_image") as page:
        expect(begin(page, "held")).to_contain_text("Running, ")
        page.get_by_role("link", name="Jobs").click()
        row = rows(page).first
        expect(row).to_contain_text("Running, ")
        row.get_by_role("link").focus()
        with released(server):
            expect(row).to_contain_text("Done")
        expect(row.get_by_role("link")).to_be_focused()
        expect(page.locator("#places .count")).to_have_count(0)
        row.get_by_role("link").click()
        expect(page.locator("figure img")).to_be_visible()


def test_the_page_of_a_job(opened: Opened, server: Server) -> None:
    (id_,) = generated(server, "a page of its own")
    with opened(f"jobs/{id_}") as page:
        expect(page).to_have_title("Image generation: a page of its own · polymux")
        expect(page.locator("figure img")).to_be_visible()
        page.locator("figure img").evaluate("(one) => one.decode()")
        expect(page.locator("main")).to_contain_text(id_)
        expect(page.get_by_role("link", name="Jobs", exact=True)).to_have_attribute(
            "aria-current", "page"
        )
        page.get_by_role("link", name="All jobs").click()
        expect(rows(page).filter(has_text="a page of its own")).to_be_visible()
        page.goto(f"{server.url}/page/#/jobs/{'a' * 26}")
        expect(page.get_by_text("This job does not exist")).to_be_visible()


def test_jobs_are_for_everybody(opened: Opened, server: Server) -> None:
    generated(server, "for everybody")
    for options in ({}, {"color_scheme": "dark"}, {"forced_colors": "active"}, {"viewport": PHONE}):
        with opened("jobs", **options) as page:
            row = rows(page).filter(has_text="for everybody")
            row.first.get_by_role("checkbox").check()
            check_axe(page)
            width = page.evaluate("document.documentElement.clientWidth")
            assert page.evaluate("document.documentElement.scrollWidth") <= width
            row.first.get_by_role("link").click()
            expect(page.get_by_role("heading", name="Inputs")).to_be_visible()
            check_axe(page)
            assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_inputs_of_a_job_are_handed_to_the_form(opened: Opened, server: Server) -> None:
    """Defaults are left out."""
    given = {"prompt": "once more", "num_outputs": 2, "width": 512}
    made = server.ask("api/v1/modelhost/imagegeneration", given)
    with opened(f"jobs/{made['id']}") as page:
        page.get_by_role("button", name="Run again with these inputs").click()
        expect(page.get_by_role("button", name="Run", exact=True)).to_be_visible()
        assert page.url.endswith("#/playground/generate_image")
        stored = page.evaluate("sessionStorage.getItem('polymux.inputs.generate_image')")
        values = json.loads(stored)["values"]
        assert given.items() <= values.items()
        assert "height" not in values


def test_rows_fit_on_a_phone(opened: Opened, server: Server) -> None:
    """From the first moment on, no row covers another, and the titles are whole."""
    generated(server, "one", "another")
    with opened("jobs", viewport=PHONE) as page:
        expect(rows(page).first).to_be_visible()
        boxes = [box for one in rows(page).all()[:2] if (box := one.bounding_box())]
        assert boxes[0]["y"] + boxes[0]["height"] <= boxes[1]["y"] + 1
        title = rows(page).first.locator("strong")
        assert title.evaluate("(one) => one.scrollWidth <= one.clientWidth")
