"""The Markdown of the page: the CommonMark specification, untrusted texts, growing texts."""

from __future__ import annotations

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from playwright.sync_api import Page

    from browser.conftest import Opened

EXAMPLES = json.loads(
    (Path(__file__).parents[1] / "data" / "commonmark-0.31.2.json").read_text("utf-8")
)
#: The page shows tags as text, and images as links.
NOT_RENDERED = ("HTML blocks", "Raw HTML", "Images")
_MIN_SHARE = 0.97
#: Renders the blocks and tokens of the page as the specification does.
_RENDER_EXAMPLES = """async (examples) => {
    const { parse } = await import("/page/blocks.js");
    const { inlines } = await import("/page/inlines.js");
    const signs = {"&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;"};
    const escaped = (text) => text.replace(/[&<>"]/g, (one) => signs[one]);
    const spans = (text, definitions) => {
        let html = "";
        const stack = [];
        for (const one of inlines(text, definitions)) {
            if (one.type === "text") html += escaped(one.text);
            else if (one.type === "code") html += `<code>${escaped(one.text)}</code>`;
            else if (one.type === "html") html += one.text;
            else if (one.type === "break") html += one.hard ? "<br />\\n" : "\\n";
            else if (one.type === "open") {
                stack.push({...one, before: html});
                const title = one.title ? ` title="${escaped(one.title)}"` : "";
                if (one.tag === "img") html = "";
                else if (one.tag === "a") html += `<a href="${escaped(one.href)}"${title}>`;
                else html += `<${one.tag}>`;
            } else {
                const last = stack.pop();
                const title = last.title ? ` title="${escaped(last.title)}"` : "";
                const alts = html.replace(/<img [^>]*alt="([^"]*)"[^>]*>/g, "$1");
                const alt = alts.replace(/<[^>]*>/g, "");
                const source = escaped(last.href ?? "");
                if (last.tag !== "img") html += `</${last.tag}>`;
                else html = `${last.before}<img src="${source}" alt="${alt}"${title} />`;
            }
        }
        return html;
    };
    const block = (one, definitions, tight = false) => {
        const inner = (children, isTight) =>
            children.map((child) => block(child, definitions, isTight)).join("");
        const text = () => spans(one.text, definitions);
        const start = one.ordered && one.first !== 1 ? ` start="${one.first}"` : "";
        const name = one.ordered ? "ol" : "ul";
        const language = one.language ? ` class="language-${escaped(one.language)}"` : "";
        return {
            paragraph: () => tight ? `${text()}\\n` : `<p>${text()}</p>`,
            heading: () => `<h${one.level}>${text()}</h${one.level}>`,
            rule: () => "<hr>",
            code: () => `<pre><code${language}>${escaped(one.text)}</code></pre>`,
            quote: () => `<blockquote>${inner(one.children)}</blockquote>`,
            list: () => `<${name}${start}>${inner(one.children, one.tight)}</${name}>`,
            item: () => `<li>${inner(one.children, tight)}</li>`,
        }[one.type]();
    };
    return examples.map(({ markdown }) => {
        const definitions = new Map();
        return parse(markdown, definitions).map((one) => block(one, definitions)).join("");
    });
}"""
TEXT = """\
# Title *with* `code`

Setext
------

1. one

   ```python
   def f():
       pass
   ```
2. two
   - [x] done
   - [ ] open

> quoted
> ```
> in quotes
> ```

| a | b |
|:--|--:|
| `x\\|y` | **2** |

[later]: https://example.com/later "Title"

See [later], <https://example.com/a_b_c> and https://example.com/(x).,
~~old~~, ***both***, 5 < 6 &amp; 7.
"""
#: Texts that took cmark or other parsers quadratic time or deep recursion, by their length.
HOSTILE: dict[str, Callable[[int], str]] = {
    "nested strong emphasis": lambda n: "*a **a " * n + "b" + " a** a*" * n,
    "closers of emphasis without openers": lambda n: "a_ " * n,
    "openers of emphasis without closers": lambda n: "_a " * n,
    "closers of links without openers": lambda n: "a]" * n,
    "openers of links without closers": lambda n: "[a" * n,
    "openers and closers that do not match": lambda n: "*a_ " * n,
    "openers and closers of two kinds": lambda n: "*a " * n + "_a*_ " * n,
    "runs of a multiple of three": lambda n: "a**b" + "c* " * n,
    "openers of links and closers of emphasis": lambda n: "[ a_" * n,
    "brackets and parentheses": lambda n: "[ (](" * n,
    "images in brackets": lambda n: "![[]()" * n,
    "nested brackets": lambda n: "[" * n + "a" + "]" * n,
    "nested images": lambda n: "![" * n + "a" + "](b)" * n,
    "links after open brackets": lambda n: "[" * n + "[a](b)" * n,
    "images after open images": lambda n: "![" * n + "[a](b)" * n,
    "nested quotes": lambda n: "> " * n + "a",
    "quotes without end": lambda n: ">" * n + "a*" * n,
    "lists in lists": lambda n: "".join("  " * one + "* a\n" for one in range(min(n, 1000))),
    "lists in a line": lambda n: "- " * n + "x" + "\n" * n,
    "lists in a line of a quote": lambda n: "> " + "- " * n + "x\n" + ">\n" * n,
    "backticks": lambda n: "".join("e" + "`" * one for one in range(int((2 * n) ** 0.5))),
    "targets without end in angle brackets": lambda n: "[a](<b" * n,
    "targets without end": lambda n: "[a](b" * n,
    "titles without end": lambda n: '[a](b "c' * n,
    "titles in parentheses without end": lambda n: "[a](b (c" * n,
    "targets of parentheses": lambda n: "[a](" * n,
    "comments without end": lambda n: "</" + "<!--" * n,
    "instructions without end": lambda n: "a <?" * n,
    "declarations without end": lambda n: "a <!A" * n,
    "CDATA without end": lambda n: "a <![CDATA[" * n,
    "tags without end": lambda n: "<a b='" * n,
    "attributes without end": lambda n: "<a" + " b" * n,
    "references": lambda n: "".join(f"[{one}]: u\n" for one in range(n)) + "[0] " * n,
    "definitions in a paragraph": lambda n: "[a]: u\n" * n + "[a] " * n,
    "lines of a table": lambda n: "aaa\rbbb\n-\v\n" * n,
    "columns and rows": lambda n: "a|" * n + "\n" + "-|" * n + "\n" + "|a\n" * n,
    "a delimiter row with blanks": lambda n: "a|b\n|" + " " * n + "x",
    "a title of blanks": lambda n: "# " + " " * n + "x",
    "a title of signs": lambda n: "# x" + " #" * n + "x",
    "blanks before breaks": lambda n: ("a" + " " * 20 + "b\n") * n,
    "rules that end with a letter": lambda n: "* " * n + "x",
    "underlines that end with a letter": lambda n: "a\n" + "-" * n + "x",
    "addresses": lambda n: "http://" * n,
    "addresses of punctuation": lambda n: "http://)))" * n,
    "characters": lambda n: "&#65;&x" * n,
    "escapes": lambda n: "\\*\\" * n,
    "stars within stars": lambda n: "*a **b " * n,
    "lines of stars": lambda n: "*a **b\n" * n,
    "null characters": lambda n: "abc\0" * n,
}
_RENDER = """async (text) => {
    const { markdown } = await import("/page/markdown.js");
    const place = document.createElement("div");
    place.append(markdown(text));
    let deepest = 0;
    for (const one of place.querySelectorAll(":not(:has(*))")) {
        let depth = 0;
        for (let up = one; up !== place; up = up.parentElement) depth++;
        deepest = Math.max(deepest, depth);
        if (place.querySelectorAll("*").length > 5000) break;
    }
    return [place.textContent.length, deepest];
}"""
_RENDER_ONLY = """async (text) => {
    const { markdown } = await import("/page/markdown.js");
    return markdown(text).childNodes.length;
}"""
_SMALL = 1000
#: The texts have at least 210 kB at this length.
_FULL = 30_000


@pytest.fixture
def page(opened: Opened) -> Iterator[Page]:
    with opened("songs") as page:
        yield page


def test_the_specification(page: Page) -> None:
    """Also tags and images are tokens of the page, although it renders them in its own way."""
    made = page.evaluate(_RENDER_EXAMPLES, EXAMPLES)
    wrong: dict[bool, list[int]] = {True: [], False: []}
    for one, html in zip(EXAMPLES, made, strict=True):
        if _Events(html).found != _Events(one["html"]).found:
            wrong[one["section"] in NOT_RENDERED].append(one["example"])
    rendered = sum(one["section"] not in NOT_RENDERED for one in EXAMPLES)
    assert len(wrong[False]) <= (1 - _MIN_SHARE) * rendered, wrong


class _Events(HTMLParser):
    """The tags and texts of HTML, without the blanks between blocks."""

    _BLOCKS = frozenset(
        ["p", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "hr"]
    )

    def __init__(self, html: str) -> None:
        super().__init__()
        self.found: list[object] = []
        self._text = ""
        self._after_block = True
        self.feed(html)
        self.close()
        self._end_text(before_block=True)

    def _end_text(self, *, before_block: bool) -> None:
        text = self._text.lstrip() if self._after_block else self._text
        text = text.rstrip() if before_block else text
        if text:
            self.found.append(text)
        self._text = ""
        self._after_block = before_block

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self._end_text(before_block=tag in self._BLOCKS)
        self.found.append((tag, attributes))

    def handle_startendtag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attributes)

    def handle_endtag(self, tag: str) -> None:
        self._end_text(before_block=tag in self._BLOCKS)
        self.found.append(f"/{tag}")

    def handle_data(self, data: str) -> None:
        self._text += data

    def handle_comment(self, data: str) -> None:
        self._text += f"<!--{data}-->"


def test_blocks_in_blocks(page: Page) -> None:
    shown = _shown(page, TEXT)
    assert shown("h3 em") == ["with"]
    assert shown("h4") == ["Setext"]
    assert shown("ol > li > .code code") == ["def f():\n    pass"]
    assert shown("blockquote .code code") == ["in quotes"]
    assert len(shown("ol > li")) == 2
    assert shown("li.task") == ["done", "open"]
    assert shown("thead th") == ["a", "b"]
    assert shown("tbody code") == ["x|y"]
    assert shown("tbody td.right strong") == ["2"]
    assert shown("s") == ["old"]
    assert shown("em strong") == ["both"]
    assert page.evaluate("[...place.querySelectorAll('input')].map((one) => one.checked)") == [
        True, False,
    ]  # fmt: skip
    assert page.evaluate("[...place.querySelectorAll('a')].map((one) => one.href)") == [
        "https://example.com/later", "https://example.com/a_b_c", "https://example.com/(x)",
    ]  # fmt: skip


def _shown(page: Page, text: str) -> Callable[[str], list[str]]:
    """Render a text. The result returns the texts of the elements that match a selector."""
    page.evaluate(
        """async (text) => {
            const { markdown } = await import("/page/markdown.js");
            window.place = document.createElement("div");
            place.append(markdown(text));
        }""",
        text,
    )
    select = "(one) => [...place.querySelectorAll(one)].map((each) => each.textContent)"
    return lambda selector: page.evaluate(select, selector)


@pytest.mark.parametrize(
    "target",
    ["javascript:alert(1)", "JAVASCRIPT:alert(1)", "data:text/html,x", "vbscript:x", "/admin",
     "#/chat", "//elsewhere.example", "file:///etc/passwd", "javascript&#58;alert(1)", "http://["],
)  # fmt: skip
def test_targets_that_are_not_links(page: Page, target: str) -> None:
    shown = _shown(page, f"[name]({target}) ![alt]({target}) <{target}> [a]\n\n[a]: {target}")
    assert shown("a, img, [href], [src]") == []
    text = page.evaluate("place.textContent")
    assert "name" in text
    assert "alt" in text


def test_tags_are_text(page: Page) -> None:
    tags = "<img src=x onerror=alert(1)>\n\n<script>x</script> <b>*bold*</b> <iframe srcdoc=x>"
    shown = _shown(page, tags)
    assert shown("img, script, b, iframe") == []
    assert shown("em") == ["bold"]
    text = page.evaluate("place.textContent")
    assert "<img src=x onerror=alert(1)>" in text
    assert "<script>" in text


def test_a_link_in_a_link_is_text(page: Page) -> None:
    shown = _shown(page, "[see https://b.example/x and <https://c.example>](https://a.example)")
    assert shown("a") == ["see https://b.example/x and https://c.example"]


def test_a_growing_text_looks_like_the_whole(page: Page) -> None:
    """After each character. Finished blocks keep their elements."""
    wrong = page.evaluate(
        """async (text) => {
            const { growing, markdown } = await import("/page/markdown.js");
            const [place, whole] = [document.createElement("div"), document.createElement("div")];
            const grow = growing(place);
            const wrong = [];
            let first = null;
            for (let end = 1; end <= text.length; end++) {
                grow(text.slice(0, end));
                whole.replaceChildren(markdown(text.slice(0, end)));
                if (place.innerHTML !== whole.innerHTML) wrong.push(text.slice(0, end));
                if (place.children.length > 2) first ??= place.firstChild;
                if (first && first !== place.firstChild) wrong.push("replaced");
            }
            return wrong;
        }""",
        TEXT + "\n```\ncode\n\nmore\n```\n\n- a\n\n- b\n  c\n\nend\r\nof\r\n\r\nlines",
    )
    assert wrong == []


def test_another_text_replaces_a_grown_one(page: Page) -> None:
    assert page.evaluate(
        """async () => {
            const { growing } = await import("/page/markdown.js");
            const place = document.createElement("div");
            const grow = growing(place);
            grow("one\\n\\ntwo\\n\\nthree");
            grow("other");
            return place.innerHTML;
        }"""
    ) == "<p>other</p>"  # fmt: skip


def test_hostile_texts_take_linear_work(page: Page) -> None:
    """Twice the text executes at most a bit more than twice the blocks of code."""
    session = page.context.new_cdp_session(page)
    session.send("Profiler.enable")
    session.send("Profiler.startPreciseCoverage", {"callCount": True, "detailed": True})

    def work(text: str) -> int:
        session.send("Profiler.takePreciseCoverage")
        page.evaluate(_RENDER_ONLY, text)
        found: Any = session.send("Profiler.takePreciseCoverage")
        modules = ("inlines.js", "blocks.js", "markdown.js", "entities.js")
        return sum(
            part["count"]
            for one in found["result"]
            if one["url"].endswith(modules)
            for function in one["functions"]
            for part in function["ranges"]
        )

    work("warm")
    # Counts of the engine may be incomplete: measure again before a text counts as slow.
    slow = dict.fromkeys(HOSTILE, (0, 0))
    for _ in range(3):
        slow = {
            name: (work(HOSTILE[name](_SMALL)), work(HOSTILE[name](2 * _SMALL))) for name in slow
        }
        slow = {name: (one, two) for name, (one, two) in slow.items() if two > 2.5 * one + 1000}
    assert not slow


def test_long_hostile_texts_are_rendered(page: Page) -> None:
    """None exhausts the stack, and no element is nested too deeply for the browser."""
    for name, text in HOSTILE.items():
        length, deepest = page.evaluate(_RENDER, text(_FULL))
        assert length > 0, name
        assert deepest <= 150, name
