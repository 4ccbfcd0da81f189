"""`polymux operations`: the contract on the command line."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from polymux import contract


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-m", "polymux", "operations", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_all_operations_as_json() -> None:
    done = run("--json")
    assert done.returncode == 0, done.stderr
    listed = json.loads(done.stdout)
    assert listed == contract.describe()
    assert len(listed) == 14
    for operation in listed:
        assert operation["path"].startswith("/api/v1/")
        assert operation["method"] == "POST"
        for variant in operation["variants"]:
            assert {"model", "encoding", "accepts", "fields"} <= set(variant)
            assert variant["encoding"] in variant["accepts"]
            assert set(variant["accepts"]) <= {"json", "multipart"}
            for field in variant["fields"]:
                assert {
                    "name", "type", "required", "default", "minimum", "maximum", "choices",
                    "unit", "extension", "doc",
                } <= set(field)  # fmt: skip


@pytest.mark.parametrize("name", ["convert_to_mp3", "convert-to-mp3", "convert2mp3"])
def test_one_operation_by_any_of_its_names(name: str) -> None:
    (listed,) = json.loads(run(name, "--json").stdout)
    assert listed["path"] == "/api/v1/convert2mp3"


def test_every_operation_and_field_for_people() -> None:
    overview = run().stdout.splitlines()
    assert [line.split()[0] for line in overview] == [one.name for one in contract.operations()]
    for operation in contract.operations():
        text = run(operation.name).stdout
        for variant in operation.variants:
            for field in variant.fields:
                assert f"  {field.name}: {field.type}" in text


def test_an_unknown_operation_is_a_usage_error() -> None:
    done = run("transcibe")
    assert done.returncode == 2
    assert "there is no operation" in done.stderr
    assert "Traceback" not in done.stderr
