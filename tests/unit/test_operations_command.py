from __future__ import annotations

import json

import pytest
from polymux import contract
from polymux.cli import main

FIELD = {"name", "type", "required", "default", "minimum", "maximum", "choices", "unit",
         "extension", "doc"}  # fmt: skip


def shown(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert main(["operations", *words]) == 0
    return capsys.readouterr().out


def test_all_operations_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    listed = json.loads(shown(capsys, "--json"))
    assert listed == contract.describe()
    assert len(listed) == 14
    for operation in listed:
        assert operation["path"].startswith("/api/v1/")
        assert operation["method"] == "POST"
        for variant in operation["variants"]:
            assert {"model", "encoding", "accepts", "fields"} <= set(variant)
            assert variant["encoding"] in variant["accepts"]
            assert set(variant["accepts"]) <= {"json", "multipart"}
            assert all(set(field) >= FIELD for field in variant["fields"])


@pytest.mark.parametrize("name", ["convert_to_mp3", "convert-to-mp3", "convert2mp3"])
def test_one_operation_by_any_of_its_names(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    (listed,) = json.loads(shown(capsys, name, "--json"))
    assert listed["path"] == "/api/v1/convert2mp3"


def test_every_operation_and_field_for_people(capsys: pytest.CaptureFixture[str]) -> None:
    overview = shown(capsys).splitlines()
    assert [line.split()[0] for line in overview] == [one.name for one in contract.operations()]
    for operation in contract.operations():
        text = shown(capsys, operation.name)
        for variant in operation.variants:
            assert all(f"  {field.name}: {field.type}" in text for field in variant.fields)
    assert main(["operations", "transcibe"]) == 2
    assert "transcibe" in capsys.readouterr().err
