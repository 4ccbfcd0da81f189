"""The contract has every field of tests/data/interface.md and marks all others as extensions."""

import re
from pathlib import Path

import pytest
from polymux import contract

TEXT = (Path(__file__).parents[1] / "data/interface.md").read_text()

#: The text names a chat model by a placeholder.
PLACEHOLDERS = {"<chat_model_1>": "gpt-4o"}

TYPES = {"float": "number", "array of Message": "array"}


def sections() -> dict[str, str]:
    """Maps a path to the text below its heading."""
    found = {}
    for part in TEXT.split("\n### POST ")[1:]:
        path, _, body = part.partition("\n")
        found[path.strip()] = body.split("\n## ")[0]
    return found


def tables(text: str) -> list[list[dict[str, str]]]:
    """Every table of fields: a list of rows by column name."""
    found: list[list[dict[str, str]]] = []
    columns: list[str] = []
    for line in text.splitlines():
        if not line.startswith("|"):
            columns = []
            continue
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not columns:
            columns = cells
            if columns[0] == "Field":
                found.append([])
        elif not set(line) <= set("|- ") and columns[0] == "Field":
            found[-1].append(dict(zip(columns, cells, strict=False)))
    return found


def test_the_operations_are_those_of_the_text() -> None:
    rows = re.findall(r"^\| .* \| (/api/v1/\S+) \| .* \|$", TEXT, re.MULTILINE)
    assert len(rows) == 14
    assert [operation.path for operation in contract.operations()] == rows
    assert sorted(sections()) == sorted(rows)


CASES = [
    (path, number, rows)
    for path, text in sections().items()
    for number, rows in enumerate(tables(text))
]


@pytest.mark.parametrize(("path", "number", "rows"), CASES, ids=lambda value: str(value)[:40])
def test_every_row_of_every_table_is_in_the_contract(
    path: str, number: int, rows: list[dict[str, str]]
) -> None:
    variant = contract.operation(path).variants[number]
    own = [field.name for field in variant.fields if not field.extension]
    assert sorted(own) == sorted(row["Field"] for row in rows)
    for row in rows:
        field = variant.field(row["Field"])
        assert not field.extension
        # JSON may carry a number as a string.
        types = [field.raw.get("written_as"), *field.type.split(" or ")]
        assert TYPES.get(row["Type"], row["Type"]) in types, field.name
        assert field.required == (row["Required"] == "yes"), field.name
        default = PLACEHOLDERS.get(row.get("Default", ""), row.get("Default", ""))
        if default:
            value = field.default
            assert (float(default) == value) if isinstance(value, float) else (
                default == (str(value).lower() if isinstance(value, bool) else str(value))
            ), field.name  # fmt: skip


def test_encodings_are_those_of_the_text() -> None:
    for path, text in sections().items():
        variants = contract.operation(path).variants
        if "Three variants share this path" in text:
            assert [variant.encoding for variant in variants] == ["json", "multipart", "multipart"]
            continue
        multipart = "ultipart/form-data" in text
        assert {variant.encoding for variant in variants} == {"multipart" if multipart else "json"}


def urls(fields: tuple[contract.Field, ...], path: str = "") -> set[str]:
    found = {path + field.name for field in fields if field.kind == "url"}
    for field in fields:
        if field.object:
            found |= urls(field.object.fields, f"{path}{field.name}.")
        if field.items_object:
            found |= urls(field.items_object.fields, f"{path}{field.name}[].")
    return found


def test_everything_that_makes_a_server_fetch_has_the_kind_url() -> None:
    assert {
        f"{operation.name} {name}"
        for operation in contract.operations()
        for variant in operation.variants
        for name in urls(variant.fields)
    } == {
        "free_chat image_url", "search_music proxy", "transcribe url", "download_video url",
        "summarize_video url", "convert_to_mp3 url", "generate_image replicate_weights",
        "upscale_image lora_links", "upscale_image custom_sd_model",
        "chat messages[].content[].image_url.url",
    }  # fmt: skip
