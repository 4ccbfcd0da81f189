"""Invalid field values over HTTP return 400 with the field name before any work starts.

`tests/unit/test_contract_walk.py` and `cpp/tests/test_check.cpp` test which values are invalid.

Case IDs such as M22 refer to docs/development/testing.md.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from support.polymux_server import CHAT, HELLO, Box, PolymuxServer, form
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from support.polymux_server import Answer

FREE = "/api/v1/freellm"
STT = "/api/v1/modelhost/stt"
IMAGE = "/api/v1/modelhost/imagegeneration"
LIGHTNING = f"{IMAGE}?model=bytedance/sdxl-lightning-4step"
ASTRA = f"{IMAGE}?model=lorenzomarines/astra"
PICTURE = ("a.png", b"\x89PNG")
PART = {"type": "text", "text": "x"}
HILL = ("prompt", "a hill")


@pytest.fixture(scope="module")
def box() -> Box:
    return Box()


@pytest.fixture(autouse=True)
def _nothing_begun(server: PolymuxServer, box: Box) -> None:
    box.backend.began.clear()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, box: Box) -> Iterator[PolymuxServer]:
    def make() -> list[Scripted]:
        box.backend = Scripted(
            operations=[one.name for one in contract.operations()], max_concurrency=4
        )
        return [box.backend]

    folder = tmp_path_factory.mktemp("fields") / "s"
    with PolymuxServer(folder, make) as running:
        yield running
        assert list((folder / "drafts").iterdir()) == []


def check_refused(answer: Answer, box: Box, word: str) -> None:
    """Check that the response is 400 with the field name and that no work started."""
    assert answer.status == 400, (word, answer.body)
    error = answer.json()
    assert error["code"] == "invalid_request"
    assert word in error["error"]
    assert error["error"].isprintable()
    assert len(error["error"].encode()) <= 2048
    assert box.backend.began == []


@pytest.mark.parametrize("text", ["NaN", "1_000", "\u0665", "1" * 500])
def test_what_is_no_number_in_a_form(server: PolymuxServer, box: Box, text: str) -> None:
    """Includes numbers that Python's int and float accept (M22)."""
    body, headers = form(("audio", PICTURE), ("batch_size", text))
    check_refused(server.ask("POST", STT, body, headers), box, "batch_size")


def test_a_field_without_a_text_is_absent(server: PolymuxServer, box: Box) -> None:
    """Web pages send empty form fields (M22)."""
    body, headers = form(HILL, ("width", ""), ("guidance_scale", ""), ("apply_watermark", ""))
    assert server.ask("POST", ASTRA, body, headers).status == 200
    work = box.backend.began[-1]
    assert work.given == {"prompt"}
    names = ("width", "guidance_scale", "apply_watermark")
    assert [work.values[name] for name in names] == [1024, 7.0, False]


@pytest.mark.parametrize(
    ("text", "meant"),
    [("True", True), ("on", True), ("FALSE", False), ("0", False), ("2", None), (" true", None)],
)
def test_booleans_in_a_form(server: PolymuxServer, box: Box, text: str, meant: bool | None) -> None:
    """Case M23."""
    body, headers = form(HILL, ("apply_watermark", text))
    answer = server.ask("POST", ASTRA, body, headers)
    if meant is None:
        check_refused(answer, box, "apply_watermark")
    else:
        assert answer.status == 200, answer.body
        assert box.backend.began[-1].values["apply_watermark"] is meant


@pytest.mark.parametrize(
    ("path", "fields", "word"),
    [
        (STT, [("audio", PICTURE), ("timestamp", "WORD")], "timestamp"),
        (LIGHTNING, [HILL, ("width", "7")], "width"),
        (LIGHTNING, [HILL, ("num_outputs", "1000")], "num_outputs"),
        (ASTRA, [HILL, ("guidance_scale", "-1")], "guidance_scale"),
        (ASTRA, [HILL, ("mask", PICTURE)], "image"),
        (ASTRA, [("image", PICTURE)], "prompt"),
        (ASTRA, [HILL, ("image", PICTURE), ("image", PICTURE)], "image"),
        (ASTRA, [HILL, ("image", "http://files.example/a.png")], "image"),
        (ASTRA, [("prompt", PICTURE)], "prompt"),
    ],
)
def test_forms_that_cannot_be_done(
    server: PolymuxServer, box: Box, path: str, fields: list[tuple[str, Any]], word: str
) -> None:
    """A mask without an image, and a mask given by URL (V29, I12, I13 and I18)."""
    body, headers = form(*fields)
    check_refused(server.ask("POST", path, body, headers), box, word)


@pytest.mark.parametrize(
    ("path", "value", "word"),
    [
        (LIGHTNING, {"prompt": "a hill", "width": 512.5}, "width"),
        (FREE, {**HELLO, "timeout": 0}, "timeout"),
        (FREE, {**HELLO, "timeout": "5"}, "timeout"),
        (CHAT, {**HELLO, "messages": []}, "messages"),
        (CHAT, {**HELLO, "messages": [{"role": "wizard", "content": "x"}]}, "role"),
        (CHAT, {**HELLO, "messages": [{"role": "user"}]}, "content"),
        (FREE, {"messages": [{"role": "user", "content": [PART]}]}, "content"),
        (CHAT, {**HELLO, "api_base": "http://127.0.0.1:1"}, "api_base"),
        (CHAT, {**HELLO, "extra_headers": {"X-Api-Key": "x"}}, "extra_headers"),
        (FREE, {**HELLO, "proxy": None}, "proxy"),
        (FREE, {**HELLO, "api_key": 5}, "api_key"),
    ],
)
def test_json_that_cannot_be_done(
    server: PolymuxServer, box: Box, path: str, value: dict[str, Any], word: str
) -> None:
    """Never 422. Fields that would configure the server are invalid (I13, C38, C42 and C47)."""
    if path == FREE:
        value = {name: one for name, one in value.items() if name != "model"}
    check_refused(server.json(path, value), box, word)


def test_prompts_of_any_length_and_letter(server: PolymuxServer, box: Box) -> None:
    """Over the limit: rejected. Otherwise plain data, including control characters (I15)."""
    long = "x" * (1 << 20)
    answer = server.json(LIGHTNING, {"prompt": long})
    assert (answer.status, answer.json()["code"]) == (413, "too_large")
    body, headers = form(("prompt", f"{long}x"))
    assert server.ask("POST", ASTRA, body, headers).status == 413
    assert box.backend.began == []
    for prompt in ("   ", "a\x00\x1b[2J\u202e{{7*7}}${jndi:ldap://x.example}<script>"):
        answer = server.json(LIGHTNING, {"prompt": prompt})
        assert answer.status == 200, answer.body
        assert box.backend.began[-1].values["prompt"] == prompt
    assert server.json(LIGHTNING, {"prompt": ""}).status == 400


def test_deadlines(server: PolymuxServer, box: Box) -> None:
    """Valid and invalid timeouts (C38)."""
    for value in (1, 300, None):
        given = {"messages": HELLO["messages"], "timeout": value}
        assert server.json(FREE, given).status == 200
        assert box.backend.began[-1].values.get("timeout") == value
