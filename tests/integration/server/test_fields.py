"""Values of fields that are wrong, over HTTP: refused by name before any work, by 400."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from polymux import contract
from support import requests
from support.polymux_server import CHAT, HELLO, Box, PolymuxServer, form
from support.services import Scripted

if TYPE_CHECKING:
    from collections.abc import Iterator

    from polymux.contract import Field, Operation, Variant
    from support.polymux_server import Answer

FREE = "/api/v1/freellm"
STT = "/api/v1/modelhost/stt"
IMAGE = "/api/v1/modelhost/imagegeneration"
LIGHTNING = "bytedance/sdxl-lightning-4step"
ASTRA = "lorenzomarines/astra"
PICTURE = ("a.png", b"\x89PNG")
FORMS = [
    (operation, variant)
    for operation in contract.operations()
    for variant in operation.variants
    if "multipart" in variant.accepts
]
IDS = [f"{operation.name}{variant.id}" for operation, variant in FORMS]


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


def part(value: Any) -> Any:
    """A value as a form has it."""
    if value is requests.FILE:
        return PICTURE
    return value if isinstance(value, (str, tuple)) else json.dumps(value)


def send(
    server: PolymuxServer, operation: Operation, variant: Variant, values: dict[str, Any]
) -> Answer:
    body, headers = form(*((name, part(value)) for name, value in values.items()))
    query = f"?model={variant.model}" if variant.model else ""
    return server.ask("POST", f"{operation.path}{query}", body, headers)


def refused(answer: Answer, box: Box, word: str) -> None:
    """By 400, which names the field, before anything was begun."""
    assert answer.status == 400, (word, answer.body)
    told = answer.json()
    assert told["code"] == "invalid_request"
    assert word in told["error"]
    assert told["error"].isprintable()
    assert len(told["error"].encode()) <= 2048
    assert box.backend.began == []


def of_type(variant: Variant, *kinds: str) -> list[Field]:
    return [field for field in variant.fields if field.type in kinds]


NO_NUMBERS = ["NaN", "-Infinity", "1e309", "0x10", "1_000", "\u0665", " 5", "+", "1,5", "true"]


@pytest.mark.parametrize(("operation", "variant"), FORMS, ids=IDS)
def test_what_is_no_number_in_a_form(
    server: PolymuxServer, box: Box, operation: Operation, variant: Variant
) -> None:
    """M22: what Python's int and float would take, and what nobody would."""
    for field in of_type(variant, "integer", "number"):
        more = ["5.0", "1e3", "9" * 30] if field.type == "integer" else []
        for text in [*NO_NUMBERS, *more]:
            values = requests.with_field(variant, field, text)
            refused(send(server, operation, variant, values), box, field.name)


@pytest.mark.parametrize(("operation", "variant"), FORMS, ids=IDS)
def test_a_field_without_a_text_is_absent(
    server: PolymuxServer, box: Box, operation: Operation, variant: Variant
) -> None:
    """M22: as web pages send what nobody has filled in."""
    for field in of_type(variant, "integer", "number", "boolean"):
        assert not field.required
        answer = send(server, operation, variant, requests.smallest(variant) | {field.name: ""})
        assert answer.status == 200, answer.body
        work = box.backend.began[-1]
        assert field.name not in work.given
        assert work.values.get(field.name) == field.default


BOOLEANS = {"True": True, "1": True, "on": True, "FALSE": False, "0": False, "off": False}


@pytest.mark.parametrize(("operation", "variant"), FORMS, ids=IDS)
def test_booleans_in_a_form(
    server: PolymuxServer, box: Box, operation: Operation, variant: Variant
) -> None:
    """M23."""
    for field in of_type(variant, "boolean"):
        for text in ("2", "null", " true", "\uff11"):
            values = requests.with_field(variant, field, text)
            refused(send(server, operation, variant, values), box, field.name)
    for field in of_type(variant, "boolean"):
        for text, meant in BOOLEANS.items():
            values = requests.with_field(variant, field, text)
            answer = send(server, operation, variant, values)
            assert answer.status == 200, answer.body
            assert box.backend.began[-1].values[field.name] is meant


MADE = f"{IMAGE}?model={LIGHTNING}"
BETTER = f"{IMAGE}?model={ASTRA}"


@pytest.mark.parametrize(
    ("path", "fields", "word"),
    [
        *((STT, {"audio": PICTURE, name: value}, name) for name, value in
          (("batch_size", "0"), ("batch_size", "1.5"), ("timestamp", "WORD"),
           ("task", "summarize"), ("language", "x"))),
        *((path, {"prompt": "a hill", name: value}, name) for path in (MADE, BETTER)
          for name, value in
          (("width", "0"), ("width", "7"), ("width", "1000000000"), ("height", "257"),
           ("num_outputs", "0"), ("num_outputs", "1000"), ("num_inference_steps", "1000000"),
           ("guidance_scale", "-1"), ("scheduler", "nothing"), ("seed", "1e400"))),
        (BETTER, {"prompt": "a hill", "prompt_strength": "2"}, "prompt_strength"),
        (BETTER, {"prompt": "x", "mask": PICTURE}, "image"),
        (BETTER, {"image": PICTURE}, "prompt"),
        (BETTER, {"prompt": "", "image": PICTURE}, "prompt"),
        (BETTER, {"prompt": "x", "image": "http://files.example/a.png"}, "image"),
        (BETTER, {"prompt": PICTURE}, "prompt"),
    ],
)  # fmt: skip
def test_forms_that_cannot_be_done(
    server: PolymuxServer, box: Box, path: str, fields: dict[str, Any], word: str
) -> None:
    """V29, I12, I13, I18: no mask without a picture, and none by its address."""
    body, headers = form(*fields.items())
    refused(server.ask("POST", path, body, headers), box, word)


@pytest.mark.parametrize(
    ("path", "name", "value"),
    [
        (MADE, "width", 7), (MADE, "width", 1e3), (MADE, "width", "512"),
        (MADE, "num_inference_steps", 10**6), (MADE, "guidance_scale", "inf"),
        (MADE, "prompt", ["a hill"]), (FREE, "timeout", 0), (FREE, "timeout", -1),
        (FREE, "timeout", 0.5), (FREE, "timeout", "5"), (FREE, "timeout", 301),
        (FREE, "timeout", True), (FREE, "timeout", []),
    ],
)  # fmt: skip
def test_json_that_cannot_be_done(
    server: PolymuxServer, box: Box, path: str, name: str, value: Any
) -> None:
    """I13, C38."""
    given = {"messages": HELLO["messages"]} if path == FREE else {"prompt": "a hill"}
    refused(server.json(path, given | {name: value}), box, name)


def test_prompts_of_any_length_and_letter(server: PolymuxServer, box: Box) -> None:
    """I15: over its cap a prompt is refused; else it is data, control characters too."""
    long = "x" * (1 << 20)
    answer = server.json(f"{IMAGE}?model={LIGHTNING}", {"prompt": long})
    assert (answer.status, answer.json()["code"]) == (413, "too_large")
    body, headers = form(("prompt", f"{long}x"))
    answer = server.ask("POST", f"{IMAGE}?model={ASTRA}", body, headers)
    assert answer.status == 413
    assert box.backend.began == []
    for prompt in ("   ", "a\x00\x1b[2J\u202e{{7*7}}${jndi:ldap://x.example}<script>"):
        answer = server.json(f"{IMAGE}?model={LIGHTNING}", {"prompt": prompt})
        assert answer.status == 200, answer.body
        assert box.backend.began[-1].values["prompt"] == prompt
    assert server.json(f"{IMAGE}?model={LIGHTNING}", {"prompt": ""}).status == 400


def test_deadlines(server: PolymuxServer, box: Box) -> None:
    """C38: those that are some, and none."""
    for value in (1, 300, None):
        given = {"messages": HELLO["messages"], "timeout": value}
        assert server.json(FREE, given).status == 200
        assert box.backend.began[-1].values.get("timeout") == value


@pytest.mark.parametrize(
    ("message", "word"),
    [
        ({"role": "wizard", "content": "x"}, "role"),
        ({"content": "x"}, "role"),
        ({"role": "user"}, "content"),
        ({"role": "user", "content": None}, "content"),
        ({"role": "user", "content": {}}, "content"),
        ({"role": "user", "content": ["x"]}, "content"),
        ({"role": "user", "content": [{"type": "text"}]}, "text"),
        ({"role": "user", "content": [{"type": "sound", "text": "x"}]}, "type"),
        ({"role": "user", "content": [{"type": "image_url", "image_url": "x"}]}, "image_url"),
        (None, "messages"),
    ],
)
def test_messages_that_are_none(server: PolymuxServer, box: Box, message: Any, word: str) -> None:
    """C42: never by 422; parts are for the one of the two chats that takes them."""
    refused(server.json(CHAT, {**HELLO, "messages": [message]}), box, word)
    refused(server.json(FREE, {"messages": [message]}), box, "messages")
    parts = {"role": "user", "content": [{"type": "text", "text": "x"}]}
    refused(server.json(FREE, {"messages": [parts]}), box, "content")
    refused(server.json(CHAT, {**HELLO, "messages": []}), box, "messages")


STEERING = ("api_base", "base_url", "api_key", "headers", "extra_headers", "proxy", "organization")


@pytest.mark.parametrize(
    ("name", "value"),
    [*((name, "http://127.0.0.1:1") for name in STEERING),
     ("headers", {"X-Api-Key": "x"}), ("proxy", None), ("api_key", 5)],
)  # fmt: skip
def test_fields_that_would_steer_the_server(
    server: PolymuxServer, box: Box, name: str, value: Any
) -> None:
    """C47: whatever they hold, and on both chats."""
    refused(server.json(CHAT, {**HELLO, name: value}), box, name)
    refused(server.json(FREE, {"messages": HELLO["messages"], name: value}), box, name)
