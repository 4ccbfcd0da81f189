"""The web UI: static files that need no API key.

The files are in ``polymux/page``. The API requests of the page need a key. All URLs in the files
are relative, so the page works under any mount path.
"""

from __future__ import annotations

import gzip
import hashlib
import re
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from polymux.server.routes.endpoint import Endpoint, nothing_here
from polymux.server.routes.files import has_tag

if TYPE_CHECKING:
    from polymux.server.http.responses import Fields
    from polymux.server.routes.endpoint import RequestContext

FOLDER = Path(__file__).parents[2] / "page"
#: No inline and no external content (CSP 3); ``blob:`` and ``data:`` are created by the page.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "media-src 'self' blob:; connect-src 'self'; form-action 'none'; frame-ancestors 'none'; "
    "base-uri 'none'; manifest-src 'self'"
)
_INDEX = "index.html"
_TYPES = {
    ".html": b"text/html; charset=utf-8",
    ".css": b"text/css; charset=utf-8",
    ".js": b"text/javascript; charset=utf-8",
    ".svg": b"image/svg+xml",
    ".webmanifest": b"application/manifest+json",
}
_ENTRY = "app.js"
#: The modules that a module imports before it runs; a dynamic import loads its module later.
_IMPORT = re.compile(r'^(?:import|export) [^;]*?"\./([\w.-]+)";$', re.MULTILINE)
_SHARED_FIELDS: Fields = (
    (b"content-security-policy", POLICY.encode("ascii")),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"cross-origin-resource-policy", b"same-origin"),
    # Cached with revalidation, because file names do not change with the version.
    (b"cache-control", b"no-cache"),
    (b"vary", b"accept-encoding"),
)
#: ``gzip`` in Accept-Encoding, unless its weight is 0.
_GZIP = re.compile(rb"\bgzip\b(?!\s*;\s*q=0(?:\.0*)?\s*(?:,|$))", re.IGNORECASE)


class PageFile(NamedTuple):
    """A file of the web UI, plain and compressed by gzip.

    Each form has its entity tag, which contains a hash of the plain bytes.
    """

    data: bytes
    content_type: bytes
    tag: bytes
    compressed: bytes
    compressed_tag: bytes


def first_modules() -> list[str]:
    """Return the modules that the first view needs, in the order of discovery.

    Example:
        >>> from polymux.server.routes.webui import first_modules
        >>> first_modules()[0]
        'app.js'
    """
    found = [_ENTRY]
    for name in found:
        text = (FOLDER / name).read_text("utf-8")
        found += [one for one in dict.fromkeys(_IMPORT.findall(text)) if one not in found]
    return found


def _with_preloads(data: bytes) -> bytes:
    """Name the modules of the first view in the page, so the browser requests them at once."""
    links = "".join(f'<link rel="modulepreload" href="{one}">\n' for one in first_modules())
    return data.replace(b"</head>", links.encode("ascii") + b"</head>", 1)


@cache
def page_files() -> dict[str, PageFile]:
    """Return all files of the web UI by name.

    Example:
        >>> from polymux.server.routes.webui import page_files
        >>> page_files()["index.html"].content_type
        b'text/html; charset=utf-8'
    """
    found = {}
    for path in sorted(FOLDER.iterdir()):
        if path.suffix in _TYPES:
            data = path.read_bytes()
            if path.name == _INDEX:
                data = _with_preloads(data)
            tag = hashlib.sha256(data).hexdigest()[:32].encode("ascii")
            found[path.name] = PageFile(
                data,
                _TYPES[path.suffix],
                b'"%b"' % tag,
                gzip.compress(data, mtime=0),
                b'"%b-gzip"' % tag,
            )
    return found


class PageEndpoint(Endpoint):
    """``GET`` and ``HEAD /page/{name}``; ``/page/`` is the page itself."""

    name = "page"
    kind = "web_ui"
    methods = ("GET", "HEAD")
    public = True
    query = None

    async def handle(self, asked: RequestContext) -> None:
        """Send the file; 304 if the browser has it already."""
        file = page_files().get(asked.scope.get("path_params", {}).get("name", _INDEX))
        if file is None:
            raise nothing_here()
        headers = asked.access.headers
        fields = [*_SHARED_FIELDS, (b"content-type", file.content_type)]
        data, tag = file.data, file.tag
        if _GZIP.search(headers.get(b"accept-encoding") or b""):
            data, tag = file.compressed, file.compressed_tag
            fields.append((b"content-encoding", b"gzip"))
        fields.append((b"etag", tag))
        is_known = has_tag(headers.get(b"if-none-match"), tag)
        await asked.send_body(*((304, b"") if is_known else (200, data)), fields)


class PageRedirect(Endpoint):
    """``GET`` and ``HEAD`` of ``/`` and ``/page``: redirects to ``/page/``."""

    name = "page"
    kind = "web_ui"
    methods = ("GET", "HEAD")
    public = True
    query = None

    async def handle(self, asked: RequestContext) -> None:
        """Redirect with a relative URL, because the mount path is unknown."""
        fields = [(b"location", b"page/"), *_SHARED_FIELDS]
        await asked.send_body(307, b"", fields)
