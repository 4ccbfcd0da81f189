"""The contract as a page for people."""

from __future__ import annotations

import html
from functools import cache
from typing import TYPE_CHECKING

from polymux import contract
from polymux._native.version import __version__

if TYPE_CHECKING:
    from polymux.contract import Variant

_STYLE = (
    "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem}"
    "table{border-collapse:collapse;width:100%}td,th{border:1px solid #8884;padding:.3rem .5rem;"
    "text-align:left;vertical-align:top}code{font-size:.9em}"
)


@cache
def reference_page() -> bytes:
    """All operations and their fields on one page, with no script and nothing from elsewhere."""
    parts = [
        "<!doctype html><html lang=en><meta charset=utf-8><title>polymux</title>",
        f"<style>{_STYLE}</style><h1>polymux {html.escape(__version__)}</h1>",
        "<p>All requests need <code>Authorization: Bearer KEY</code>. The same as OpenAPI: "
        "<a href=/openapi.json>openapi.json</a>.</p>",
    ]
    for one in contract.operations():
        parts.append(
            f"<h2 id={one.name}>{html.escape(one.title)}</h2><p>{html.escape(one.summary)}</p>"
            f"<p><code>POST {html.escape(one.path)}</code></p>"
        )
        for variant in one.variants:
            if variant.model:
                parts.append(f"<h3><code>?model={html.escape(variant.model)}</code></h3>")
            parts.append(_table(variant))
    return "".join(parts).encode()


def _table(variant: Variant) -> str:
    rows = "".join(
        f"<tr><td><code>{html.escape(one.name)}</code>{' *' if one.required else ''}"
        f"<td>{html.escape(one.type)}"
        f"<td>{'' if one.default is None else html.escape(str(one.default))}"
        f"<td>{html.escape(one.doc)}"
        for one in variant.fields
    )
    return f"<table><tr><th>field<th>type<th>default<th>{rows}</table>"
