// Renders Markdown from models as DOM elements. This input is untrusted: all text becomes text nodes,
// links can only use http, https or mailto, and images become links. A message therefore loads no files.

import { copyButton, linkOut, make, scrolled } from "./dom.js";
import { parse } from "./blocks.js";
import { inlines } from "./inlines.js";
import { t } from "./texts.js";

/** Elements nested more deeply would make the browser slow. */
const DEEPEST = 32;
/** The headings of messages are below level 2 of the page. */
const PAGE_LEVEL = 2;
const LINKED = /^(?:https?:\/\/|mailto:)/i;

/** Appends one by one: a call with 100,000 arguments would exhaust the stack. */
function filled(parent, children) {
	for (const one of children) parent.append(one);
	return parent;
}

/** Renders inline Markdown. */
export function inline(text, definitions) {
	const top = document.createDocumentFragment();
	const stack = [top];
	let isLinked = false;
	for (const one of inlines(text, definitions)) {
		const place = stack.at(-1);
		if (one.type === "text") place.append(one.text);
		else if (one.type === "code") place.append(make("code", one.text));
		else if (one.type === "break") place.append(one.hard ? make("br") : "\n");
		else if (one.type === "html") place.append(/^<br\s*\/?>$/i.test(one.text) ? make("br") : one.text);
		else if (one.type === "close") {
			stack.pop();
			if (place.localName === "a") isLinked = stack.some((other) => other.localName === "a");
		} else {
			// Elements that are not allowed here, such as links in links, leave only their text.
			const element = stack.length > DEEPEST ? null : opened(one, isLinked);
			if (element) {
				if (element.localName === "a") isLinked = true;
				place.append(element);
			}
			stack.push(element ?? place);
		}
	}
	return top;
}

function opened({ tag, href, title }, isLinked) {
	if (tag !== "a" && tag !== "img") return make(tag);
	if (isLinked || !LINKED.test(href) || !URL.canParse(href)) return null;
	const link = linkOut(href);
	if (title) link.title = title;
	return link;
}

const codeText = (block) => block.text.replace(/\n$/, "");

function code(block) {
	const shown = make("code", codeText(block));
	const head = make("div.code-head", make("span", block.language || t("text")), copyButton(() => shown.textContent));
	return make("div.code", head, scrolled("pre", t("code"), shown));
}

function list(block, context) {
	const items = block.children.map((item) => {
		const label = t(item.checked ? "taskDone" : "taskOpen");
		const box = item.checked !== null && make("input", { type: "checkbox", checked: item.checked, disabled: true, "aria-label": label });
		const parts = item.children.map((one) => (block.tight && one.type === "paragraph" ? inline(one.text, context.definitions) : element(one, context)));
		return filled(make(box ? "li.task" : "li", box), parts);
	});
	const start = block.ordered && block.first !== 1 && String(block.first);
	return filled(make(block.ordered ? "ol" : "ul", { start }), items);
}

function table({ aligns, rows }, { definitions }) {
	const row = (cells, name, given) => filled(make("tr"), cells.map((text, n) => make(aligns[n] ? `${name}.${aligns[n]}` : name, given, inline(text, definitions))));
	const head = make("thead", row(rows[0], "th", { scope: "col" }));
	const body = filled(make("tbody"), rows.slice(1).map((cells) => row(cells, "td", {})));
	return scrolled("div.wide", t("table"), make("table", head, body));
}

/** A heading below those of the page. It skips no level, whatever the text does. */
function heading(block, context) {
	context.level = Math.min(6, block.level + 2, context.level + 1);
	return make(`h${context.level}`, inline(block.text, context.definitions));
}

/** The element of a block. `context` has the link definitions and the level of the heading before. */
function element(block, context) {
	const kinds = {
		paragraph: () => make("p", inline(block.text, context.definitions)),
		heading: () => heading(block, context),
		rule: () => make("hr"),
		quote: () => filled(make("blockquote"), block.children.map((one) => element(one, context))),
		code: () => code(block),
		list: () => list(block, context),
		table: () => table(block, context),
	};
	return kinds[block.type]();
}

/** Renders a text. */
export function markdown(text) {
	const context = { definitions: new Map(), level: PAGE_LEVEL };
	const blocks = parse(text, context.definitions);
	return filled(document.createDocumentFragment(), blocks.map((one) => element(one, context)));
}

/**
 * Returns a function that renders a growing text. Only blocks that can still change are parsed and
 * rendered again, so that finished blocks do not flicker and keep the selection.
 */
export function growing(place) {
	/** The text of the finished blocks, their link definitions, and the level of their last heading. */
	let finished = "";
	let definitions = new Map();
	let level = PAGE_LEVEL;
	let last = null;
	/** The blocks after the element `last`: {key, block, shown, level}. */
	let open = [];

	function restart() {
		place.replaceChildren();
		[finished, definitions, level, last, open] = ["", new Map(), PAGE_LEVEL, null, []];
	}

	function draw(block, before, context) {
		const key = JSON.stringify(block);
		if (before?.key === key) {
			context.level = before.level;
			return before;
		}
		const isSameCode = block.type === "code" && before?.block.type === "code" && block.language === before.block.language;
		// The element of code stays: it may be scrolled, or have the focus.
		if (isSameCode) before.shown.querySelector("code").textContent = codeText(block);
		const shown = isSameCode ? before.shown : element(block, context);
		return { key, block, shown, level: context.level };
	}

	return (text) => {
		if (!text.startsWith(finished)) restart();
		const rest = text.slice(finished.length);
		const context = { definitions: new Map(definitions), level };
		const now = parse(rest, context.definitions).map((block, n) => draw(block, open[n], context));
		for (const one of open) if (!now.some(({ shown }) => shown === one.shown)) one.shown.remove();
		let previous = last;
		for (const { shown } of now) {
			if (shown.parentNode !== place) place.insertBefore(shown, previous ? previous.nextSibling : place.firstChild);
			previous = shown;
		}
		// While its first line grows, a block may still become a part of the block before: "2" and "2. item".
		const ends = rest.split(/\r\n|\n|\r/).length - 1;
		const count = now.length - (now.at(-1)?.block.start === ends ? 2 : 1);
		open = now.slice(Math.max(0, count));
		if (count <= 0) return;
		const { start } = open[0].block;
		({ level, shown: last } = now[count - 1]);
		finished += firstLines(rest, start);
		for (const [label, one] of context.definitions) if (one.line < start) definitions.set(label, one);
	};
}

function firstLines(text, count) {
	const ends = /\r\n|\n|\r/g;
	for (let n = 0; n < count; n++) ends.exec(text);
	return text.slice(0, ends.lastIndex);
}
