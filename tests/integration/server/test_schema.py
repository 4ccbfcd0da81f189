"""schemathesis sends valid and invalid requests generated from the OpenAPI document."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

import jsonschema_rs
import pytest
from polymux import contract
from polymux.server.app import create_app
from polymux.server.openapi import openapi
from polymux.server.settings.settings import ServerSettings
from support import requests, schema_run
from support.requests import EACH_VARIANT
from support.server_process import ServerProcess

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

#: Random requests per path, the same in every run. scripts/fuzz-http sends more and different ones.
EXAMPLES = int(os.environ.get("POLYMUX_FUZZ_EXAMPLES", "1"))
SEED = int(os.environ["POLYMUX_FUZZ_SEED"]) if "POLYMUX_FUZZ_SEED" in os.environ else None
#: The compatibility APIs have separate documents.
EXCLUDED = ("/v1/", "/mcp", "/replicate/", "/page")


def check(server: ServerProcess) -> None:
    """Check that the server runs, handles a request, and has logged no secret or traceback."""
    assert server.is_alive()
    log = server.log()
    assert server.key not in log
    assert "Traceback" not in log
    assert all(char.isprintable() or char == "\n" for char in log)


def test_every_address_is_in_the_document() -> None:
    paths = openapi("http://localhost")["paths"]
    routes = {route.path for route in create_app(ServerSettings()).routes}  # type: ignore[attr-defined]
    assert set(paths) == {path for path in routes - {"/"} if not path.startswith(EXCLUDED)}
    for one in contract.operations():
        described = paths[one.path]["post"]
        assert described["operationId"] == one.name
        fields = {field.name for variant in one.variants for field in variant.fields}
        named = set()
        for body in described["requestBody"]["content"].values():
            for schema in body["schema"].get("anyOf", [body["schema"]]):
                named |= schema["properties"].keys()
        assert named == fields


@EACH_VARIANT
def test_the_document_has_the_fields_of_which_one_is_needed(
    operation: contract.Operation, variant: contract.Variant
) -> None:
    body = openapi("http://localhost")["paths"][operation.path]["post"]["requestBody"]
    whole = requests.smallest(variant)
    values = {name: "x" if one is requests.FILE else one for name, one in whole.items()}
    for content in body["content"].values():
        schemas = content["schema"].get("anyOf", [content["schema"]])
        for schema in schemas:
            if schema["title"] not in (variant.model, variant.id or "body"):
                continue
            validator = jsonschema_rs.validator_for(schema)
            validator.validate(values)
            for rule in variant.rules:
                every = dict.fromkeys(rule.fields, "http://a.example/")
                if rule.rule == "exactly_one":
                    assert not validator.is_valid(values | every)
                    none = {name: one for name, one in values.items() if name not in every}
                    assert not validator.is_valid(none)


def asked(report: str) -> tuple[int, int]:
    """The number of tested paths and of requests."""
    tested = re.search(r"Tested: (\d+)", report)
    made = re.search(r"(\d+) generated", report)
    assert tested is not None, report
    assert made is not None, report
    return int(tested[1]), int(made[1])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder = tmp_path_factory.mktemp("schema") / "s"
    with ServerProcess(folder, max_concurrency=8, limits={"body_first_s": 5.0}) as running:
        yield running
        assert not any((folder / "store" / "drafts").iterdir())


@pytest.mark.slow
@pytest.mark.parametrize("every", [EXAMPLES > 1, pytest.param(True, marks=pytest.mark.long)])
def test_the_interface_is_as_its_document_says(
    server: ServerProcess, tmp_path: Path, *, every: bool
) -> None:
    """Statuses, types, schemas and headers, also with missing or wrong keys and other methods."""
    report = schema_run.run(
        server, tmp_path, examples=EXAMPLES, seed=SEED, every=every, max_s=600 + 60 * EXAMPLES
    )
    addresses, requests = asked(report)
    assert addresses == 38
    assert requests > (2000 if every else 1000)
    check(server)


def test_what_is_wrong_is_found(server: ServerProcess, tmp_path: Path) -> None:
    """Tests the checks themselves with a forbidden status and a forbidden text."""
    one = ("--include-operation-id", "is_alive", "--phases", "coverage")
    with pytest.raises(AssertionError, match="Custom check failed") as found:
        schema_run.run(server, tmp_path, examples=1, only=(418,), never="status", arguments=one)
    assert "an answer tells what it must not" in str(found.value)
