// Renders Markdown from models as DOM elements. This input is untrusted: all text becomes text nodes,
// links can only use http, https or mailto, and images become links. A message therefore loads no files.

import { copyButton, linkOut, make, scrolled, table } from "./dom.js";

const FENCE = /^ {0,3}(```+|~~~+)\s*([\w+#.-]*)/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])\s+(.*)$/;
const RULER = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const TITLE = /^ {0,3}(#{1,6})\s+(.*)$/;
const COLUMNS = /^\s*\|?(?:\s*:?-+:?\s*\|)+\s*:?-*:?\s*\|?\s*$/;
const DEEPEST = 12;
const LONGEST_LINE = 5000;
const LONGEST_INLINE = 20_000;
const MOST_LINES = 10_000;
const INLINE =
	/(`+)(.+?)\1(?!`)|!?\[([^\]\n]*)\]\(\s*<?([^\s)>]+)>?(?:\s+"[^"]*")?\s*\)|(https?:\/\/[^\s<>"')\]]+[^\s<>"')\].,;:!?])|\*\*(?=\S)(.+?)\*\*|__(?=\S)(.+?)__(?!\w)|~~(?=\S)(.+?)~~|\*(?=[^\s*])(.+?)\*|\b_(?=\S)(.+?)_\b|\\([\\`*_{}[\]()#+.!|~>-])/gs;

/** Renders inline Markdown: code, links, bold, italic and struck text. */
export function inline(text, depth = 0) {
	// Crafted text would take minutes, or too deep a recursion.
	if (text.length > LONGEST_INLINE || depth > DEEPEST) return [text];
	const further = (part) => inline(part, depth + 1);
	const found = [];
	let at = 0;
	for (const one of text.matchAll(INLINE)) {
		if (one.index > at) found.push(text.slice(at, one.index));
		at = one.index + one[0].length;
		const [whole, , code, words, target, bare, bold, bold2, struck, slanted, slanted2, plain] = one;
		if (code !== undefined) found.push(make("code", code.trim() || code));
		else if (target !== undefined) found.push(link(target, words ? further(words) : [target], whole));
		else if (bare !== undefined) found.push(link(bare, [bare], whole));
		else if (bold ?? bold2) found.push(make("strong", ...further(bold ?? bold2)));
		else if (struck) found.push(make("s", ...further(struck)));
		else if (slanted ?? slanted2) found.push(make("em", ...further(slanted ?? slanted2)));
		else found.push(plain);
	}
	if (at < text.length) found.push(text.slice(at));
	return found;
}

function link(target, words, whole) {
	if (!/^(https?:\/\/|mailto:)/i.test(target) || !URL.canParse(target)) return whole;
	return linkOut(target, ...words);
}

/** Splits a text into blocks. When text is appended, only the last block changes. */
export function blocks(text) {
	const found = [];
	let lines = [];
	let fence = "";
	const end = () => {
		if (lines.length) found.push(lines.join("\n"));
		lines = [];
	};
	for (const line of text.split("\n")) {
		const mark = FENCE.exec(line)?.[1];
		if (fence) {
			lines.push(line);
			if (mark?.startsWith(fence)) {
				fence = "";
				end();
			}
		} else if (mark) {
			end();
			fence = mark;
			lines.push(line);
		} else if (line.trim() === "") end();
		else if (TITLE.test(line)) {
			end();
			lines.push(line);
			end();
		} else lines.push(line);
	}
	end();
	return found;
}

function fenced(lines) {
	const [, mark, language] = FENCE.exec(lines[0]);
	const closed = lines.length > 1 && lines.at(-1).trim().startsWith(mark);
	const text = lines.slice(1, closed ? -1 : undefined).join("\n");
	const head = make("div.code-head", make("span", language || "text"), copyButton(() => text));
	return make("div.code", head, scrolled("pre", "Code", make("code", text)));
}

function list(lines, depth) {
	const [, indent, mark] = ITEM.exec(lines[0]);
	const made = make(/\d/.test(mark) ? "ol" : "ul", /\d/.test(mark) ? { start: Number.parseInt(mark, 10) } : {});
	let item = null;
	let inner = [];
	const end = () => {
		if (item && inner.length) {
			const least = Math.min(...inner.map((one) => /^\s*/.exec(one)[0].length));
			item.append(...lined(inner.map((one) => one.slice(least)), depth));
		}
		inner = [];
	};
	for (const line of lines) {
		const found = ITEM.exec(line);
		if (found && found[1].length <= indent.length) {
			end();
			item = make("li", ...inline(found[3]));
			made.append(item);
		} else inner.push(line);
	}
	end();
	return made;
}

function tabled([head, , ...rows]) {
	const cells = (line) => line.trim().replace(/^\||\|$/g, "").split(/(?<!\\)\|/).map((one) => inline(one.trim()));
	return table("Table", cells(head), rows.map(cells));
}

function lined(lines, depth = 0) {
	// On deeply nested or long lines, the regular expressions could be slow: show plain text instead.
	const tooLong = lines.length > MOST_LINES || lines.some((one) => one.length > LONGEST_LINE);
	if (depth > DEEPEST || tooLong) return [make("p.as-is", lines.join("\n"))];
	const found = [];
	for (let at = 0; at < lines.length; ) {
		const line = lines[at];
		const rest = lines.slice(at);
		const title = TITLE.exec(line);
		let count = 1;
		// The number of lines from here that belong to the same block.
		const run = (test) => rest.findIndex((one, n) => n > 0 && !test(one)) >>> 0;
		if (title) found.push(make(`h${Math.min(6, Math.max(3, title[1].length + 1))}`, ...inline(title[2].replace(/\s#+\s*$|\s+$/, ""))));
		else if (RULER.test(line)) found.push(make("hr"));
		else if (/^ {0,3}>/.test(line)) {
			count = run((one) => one.trim() !== "");
			found.push(make("blockquote", ...lined(rest.slice(0, count).map((one) => one.replace(/^ {0,3}> ?/, "")), depth + 1)));
		} else if (ITEM.test(line)) {
			count = run((one) => ITEM.test(one) || /^\s/.test(one));
			found.push(list(rest.slice(0, count), depth + 1));
		} else if (line.includes("|") && COLUMNS.test(rest[1] ?? "")) {
			count = run((one) => one.includes("|"));
			found.push(tabled(rest.slice(0, count)));
		} else {
			count = run((one) => !ITEM.test(one) && !TITLE.test(one) && !RULER.test(one) && !/^ {0,3}>/.test(one));
			const kept = rest.slice(0, count).flatMap((one, n) => [n ? make("br") : "", ...inline(one.replace(/\s+$/, ""))]);
			found.push(make("p", ...kept));
		}
		at += Math.min(count, rest.length);
	}
	return found;
}

export function block(text) {
	const lines = text.split("\n");
	return FENCE.test(lines[0]) ? [fenced(lines)] : lined(lines);
}

/** Returns a function that renders a growing text. It keeps unchanged blocks to avoid flicker. */
export function growing(place) {
	let known = [];
	return (text) => {
		const now = blocks(text);
		let same = 0;
		while (same < known.length && known[same].text === now[same]) same++;
		known.splice(same).forEach((one) => one.part.remove());
		for (const one of now.slice(same)) {
			const part = make("div.block", ...block(one));
			place.append(part);
			known.push({ text: one, part });
		}
	};
}
