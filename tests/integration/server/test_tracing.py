"""OpenTelemetry spans, collected in memory by its SDK."""

from __future__ import annotations

import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from polymux.service.errors import engine_failed
from support.polymux_server import CHAT, HELLO, PolymuxServer
from support.services import Scripted

if TYPE_CHECKING:
    from pathlib import Path

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"


@pytest.fixture(scope="module")
def exporter() -> InMemorySpanExporter:
    found = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(found))
    trace.set_tracer_provider(provider)
    return found


@pytest.fixture
def spans(exporter: InMemorySpanExporter) -> InMemorySpanExporter:
    exporter.clear()
    return exporter


def only(spans: InMemorySpanExporter) -> Any:
    until = time.monotonic() + 10
    while not spans.get_finished_spans() and time.monotonic() < until:
        time.sleep(0.01)  # A span may end after the response has arrived.
    (found,) = spans.get_finished_spans()
    spans.clear()
    return found


def test_each_request_is_one_span(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    backend = Scripted("chat", ["chat"])
    with PolymuxServer(tmp_path / "s", lambda: [backend]) as server:
        server.json(CHAT, HELLO)
        found = only(spans)
        assert found.name == f"POST {CHAT}"
        assert found.kind == trace.SpanKind.SERVER
        assert found.attributes["http.route"] == CHAT
        assert found.attributes["http.response.status_code"] == 200
        assert found.attributes["polymux.request_id"].startswith("req_")
        assert found.parent is None
        # IDs and signed links must not appear in spans.
        for path, route in (
            ("/api/v1/predictions/secret-id", "/api/v1/predictions/{id}"),
            ("/media/secret-name?sig=canary", "/media/{name}"),
        ):
            server.ask("GET", path)
            found = only(spans)
            assert found.name == f"GET {route}"
            assert "secret" not in str(found.attributes)
            assert found.attributes["http.response.status_code"] == 404
        server.ask("GET", "/nowhere/secret")
        assert only(spans).name == "GET"
        backend.failure = engine_failed("broken")
        server.json(CHAT, HELLO)
        found = only(spans)
        assert found.attributes["http.response.status_code"] == 500
        assert found.status.status_code == trace.StatusCode.ERROR


def test_the_caller_s_trace_goes_on(tmp_path: Path, spans: InMemorySpanExporter) -> None:
    with PolymuxServer(tmp_path / "s", lambda: [Scripted("chat", ["chat"])]) as server:
        server.json(CHAT, HELLO, [("traceparent", f"00-{TRACE}-{PARENT}-01")])
        found = only(spans)
        assert f"{found.context.trace_id:032x}" == TRACE
        assert f"{found.parent.span_id:016x}" == PARENT
        server.json(CHAT, HELLO, [("traceparent", "no trace at all")])
        assert only(spans).parent is None


def test_without_it_nothing_is_missing() -> None:
    program = (
        "import sys; sys.modules['opentelemetry'] = None\n"
        "from polymux.server.observability.tracing import tracing\n"
        "assert tracing([]) is None\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)
