"""The code of the API tab, run as it is against the server."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest
from playwright.sync_api import expect
from support.commands import environment

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from browser.conftest import Opened
    from browser.live_server import Server

#: What shells, forms and Python could misread.
HOSTILE = """it's "new" \\n $HOME `id` @a.png;type=text/plain
ü ñ 'quoted' %s {x}"""
#: Kinds of operations that run as jobs, and that the OpenAI API does not have.
JOB = ["curl", "Python", "Replicate SDK"]
VIDEO_URL = "https://videos.example/1"
KINDS = {
    "curl": "curl", "Python": "polymux", "OpenAI SDK": "openai", "Replicate SDK": "replicate",
}  # fmt: skip
#: Operation to the fields, the files, the expected kinds, and a text in the output of each kind.
CASES = {
    "chat": (
        {"messages": HOSTILE, "model": "stub"}, {}, ["curl", "Python", "OpenAI SDK"], "ffmpeg",
    ),
    "free_chat": ({"messages": "hello"}, {}, ["curl", "Python"], "ffmpeg"),
    "search_music": ({"song": "danube"}, {}, ["curl", "Python"], "Blue Danube"),
    "generate_image": ({"prompt": HOSTILE, "width": "512", "seed": "7"}, {}, list(KINDS), ""),
    "upscale_image": ({"prompt": HOSTILE}, {"image": "image"}, JOB, ""),
    "convert_to_mp3": ({}, {"file": "sound"}, JOB, "mp3"),
    "download_video": ({"url": VIDEO_URL}, {}, JOB, ""),
    "generate_video": ({"prompt": HOSTILE}, {}, JOB, ""),
    "generate_music": ({"prompt_a": HOSTILE}, {}, JOB, ""),
    "identify_song": ({}, {"file": "snippet"}, ["curl", "Python"], "Blue Danube"),
    "read_text": ({}, {"file": "page"}, ["curl", "Python"], "Meeting"),
    "summarize_video": ({"url": VIDEO_URL}, {}, JOB, "sound"),
}  # fmt: skip


def code(page: Page, kind: str) -> str:
    page.get_by_role("radio", name=kind, exact=True).check()
    return str(page.locator(".api code").text_content())


def executed(text: str, kind: str, server: Server, folder: Path) -> str:
    if kind != "curl":
        pytest.importorskip(KINDS[kind])
    program = ["bash", "-c", text] if kind == "curl" else [sys.executable, "-c", text]
    known = environment(folder, POLYMUX_API_KEY=server.key)
    done = subprocess.run(
        program, cwd=server.samples.folder, env=known, capture_output=True, text=True,
        timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{text}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.mark.parametrize("operation", CASES)
def test_the_code_does_what_the_form_does(
    operation: str, opened: Opened, server: Server, tmp_path: Path
) -> None:
    fields, files, kinds, wanted = CASES[operation]
    with opened(f"playground/{operation}") as page:
        expect(page.get_by_role("button", name="Run")).to_be_visible()
        for fold in page.locator("form summary").all():
            fold.click()
        for name, value in fields.items():
            page.locator(f"[name={name}]").fill(value)
        for name, sample in files.items():
            page.locator(f"[name={name}]").set_input_files(getattr(server.samples, sample))
        page.get_by_role("radio", name="API", exact=True).check()
        expect(page.locator(".api code")).to_contain_text("curl")
        offered = page.get_by_role("group", name="Code").get_by_role("radio")
        assert offered.count() == len(kinds)
        texts = {kind: code(page, kind) for kind in kinds}
    assert server.key not in "".join(texts.values())
    for kind, text in texts.items():
        printed = executed(text, kind, server, tmp_path)
        assert wanted in printed, kind
        if "prompt" in fields:
            (newest, *_) = server.ask("api/v1/predictions")["results"]
            assert newest["input"]["prompt"] == fields["prompt"], kind


def test_the_code_of_a_transcription(opened: Opened, server: Server, tmp_path: Path) -> None:
    with opened("playground/transcribe") as page:
        page.locator("[name=audio]").set_input_files(server.samples.speech)
        page.get_by_role("radio", name="API", exact=True).check()
        expect(page.locator(".api code")).to_contain_text("curl")
        texts = {kind: code(page, kind) for kind in KINDS}
    assert "meeting.wav" in texts["curl"]
    # One of them runs, because recognition takes long.
    assert "budget" in executed(texts["OpenAI SDK"], "OpenAI SDK", server, tmp_path)


def test_a_stream_is_printed(opened: Opened, server: Server, tmp_path: Path) -> None:
    with opened("playground/chat") as page:
        page.locator("[name=messages]").fill("hello")
        page.locator("[name=model]").fill("stub")
        page.get_by_label("Stream", exact=True).check()
        page.get_by_role("radio", name="API", exact=True).check()
        expect(page.locator(".api code")).to_contain_text("curl -N")
        for kind in ("curl", "Python", "OpenAI SDK"):
            assert "ffmpeg" in executed(code(page, kind), kind, server, tmp_path), kind


def test_the_code_follows_the_form_and_is_copied(opened: Opened) -> None:
    with opened("playground/chat", permissions=["clipboard-read", "clipboard-write"]) as page:
        page.get_by_role("radio", name="API", exact=True).check()
        shown = page.locator(".api code")
        expect(shown).to_contain_text("curl")
        page.locator("[name=messages]").fill("another text")
        expect(shown).to_contain_text("another text")
        page.locator(".api").get_by_role("button", name="Copy").click()
        expect(page.locator(".api").get_by_role("button", name="Copied")).to_be_visible()
        assert page.evaluate("navigator.clipboard.readText()") == shown.text_content()
        expect(page.get_by_role("link", name="OpenAPI")).to_be_visible()
