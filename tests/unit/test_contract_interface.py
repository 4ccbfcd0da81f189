"""The contract has what the interface's text has (tests/data/interface.md), and marks the rest."""

import re
from pathlib import Path

import pytest
from polymux import contract

TEXT = (Path(__file__).parents[1] / "data/interface.md").read_text()

# The text names a model by a placeholder; these are what stands for it.
PLACEHOLDERS = {"<chat_model_1>": "gpt-4o"}

TYPES = {
    "string": "string",
    "integer": "integer",
    "float": "number",
    "boolean": "boolean",
    "file": "file",
    "numeric": "number",
    "numeric form value": "number",
    "boolean form value": "boolean",
    "file part": "file",
    "audio snippet": "file",
    "image": "file",
    "array of Message": "array",
}


def sections() -> dict[str, str]:
    """Path to the text below its heading."""
    found = {}
    for part in TEXT.split("\n### POST ")[1:]:
        path, _, body = part.partition("\n")
        found[path.strip()] = body.split("\n## ")[0]
    return found


def tables(text: str) -> list[list[dict[str, str]]]:
    """Every table of fields, as rows by column name."""
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


def named_in_prose(text: str) -> dict[str, str]:
    """Fields of a section without a table: `url (string, ...)`, `scale (numeric form value)`."""
    return {
        name: kind
        for name, kind in re.findall(r"(?<!\w)(\w+) \(([a-z ]+?)(?:,[^()]*)?\)", text)
        if kind in TYPES
    }


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
        if (
            path.endswith("musicsearch") and field.name == "limit"
        ):  # a string on the wire, a number in meaning
            assert field.raw["written_as"] == "string"
        else:
            assert TYPES[row["Type"]] in field.type.split(" or "), field.name
        assert field.required == (row["Required"] == "yes"), field.name
        default = PLACEHOLDERS.get(row.get("Default", ""), row.get("Default", ""))
        if default:
            said = field.default
            assert (float(default) == said) if isinstance(said, float) else (
                default == (str(said).lower() if isinstance(said, bool) else str(said))
            ), field.name  # fmt: skip


@pytest.mark.parametrize("path", [path for path, text in sections().items() if not tables(text)])
def test_every_field_named_in_prose_is_in_the_contract(path: str) -> None:
    text = sections()[path]
    # Each variant has a sentence of its own; what comes back is none of it.
    sentences = re.split(r"(?=Variant [AB] )", re.sub(r"Response: .*", "", text, flags=re.DOTALL))
    parts = [part for part in sentences if named_in_prose(part)]
    variants = contract.operation(path).variants
    assert len(parts) == len(variants)
    for part, variant in zip(parts, variants, strict=True):
        named = named_in_prose(part)
        own = {field.name: field.type for field in variant.fields if not field.extension}
        assert own.keys() == named.keys()
        for name, kind in named.items():
            assert TYPES[kind] in own[name].split(" or "), name


def test_encodings_are_those_of_the_text() -> None:
    for path, text in sections().items():
        variants = contract.operation(path).variants
        if "Three variants share this path" in text:
            assert [variant.encoding for variant in variants] == ["json", "multipart", "multipart"]
            continue
        multipart = "ultipart/form-data" in text
        assert {variant.encoding for variant in variants} == {"multipart" if multipart else "json"}


def test_extensions_are_optional() -> None:
    for operation in contract.operations():
        for variant in operation.variants:
            for field in variant.fields:
                assert not (field.extension and field.required), (operation.name, field.name)


def test_everything_that_makes_a_server_fetch_has_the_kind_url() -> None:
    wanted = {
        ("free_chat", "image_url"), ("search_music", "proxy"), ("transcribe", "url"),
        ("download_video", "url"), ("summarize_video", "url"), ("convert_to_mp3", "url"),
        ("generate_image", "replicate_weights"), ("upscale_image", "lora_links"),
        ("upscale_image", "custom_sd_model"), ("chat", "messages[].content[].image_url.url"),
    }  # fmt: skip

    def urls(fields: tuple[contract.Field, ...], path: str) -> set[str]:
        found = set()
        for field in fields:
            here = path + field.name
            if field.kind == "url":
                found.add(here)
            if field.object:
                found |= urls(field.object.fields, here + ".")
            if field.items_object:
                found |= urls(field.items_object.fields, here + "[].")
        return found

    found = {
        (operation.name, name)
        for operation in contract.operations()
        for variant in operation.variants
        for name in urls(variant.fields, "")
    }
    assert found == wanted
