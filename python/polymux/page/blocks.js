// The parser of Markdown blocks: CommonMark 0.31.2 without HTML blocks, and tables and task lists of
// GitHub Flavored Markdown. Lines are read once, and no nesting is deeper than DEEPEST.

import { normalized, readLabel, readTarget, readTitle, unescaped } from "./inlines.js";

const DEEPEST = 32;
const HEADING = /^(#{1,6})(?:[ \t]+|$)/;
const FENCE = /^(`{3,})([^`]*)$|^(~{3,})(.*)$/;
const RULE = /^(?:(?:\*[ \t]*){3,}|(?:_[ \t]*){3,}|(?:-[ \t]*){3,})$/;
const UNDERLINE = /^(?:=+|-+)[ \t]*$/;
const MARK = /^(?:([-+*])|(\d{1,9})([.)]))(?=[ \t]|$)/;
const COLUMNS = /^\|?[ \t]*:?-+:?[ \t]*(?:\|[ \t]*:?-+:?[ \t]*)*\|?$/;
const BLANKS = /[ \t]*\n?[ \t]*/y;
const TASK = /^\[([ xX])\][ \t]+(?=\S)/;

/**
 * Parses a text into blocks: {type, start, ...} with the number of the first line, and
 *
 * - "paragraph" {text}, "heading" {text, level}, "rule"
 * - "code" {text, language}
 * - "quote" {children}
 * - "list" {children, ordered, first, tight}, "item" {children, checked}
 * - "table" {aligns, rows}, whose cells are texts
 *
 * `definitions` maps link labels to {href, title, line}; the parser adds those of the text.
 */
export function parse(text, definitions = new Map()) {
	const parser = new Parser(definitions);
	const lines = text.replaceAll("\0", "\ufffd").split(/\r\n|\n|\r/);
	if (lines.at(-1) === "") lines.pop();
	for (const line of lines) parser.read(line);
	return parser.end();
}

class Parser {
	constructor(definitions) {
		this.definitions = definitions;
		this.root = { type: "root", open: true, children: [], depth: 0 };
		this.tip = this.root;
		this.number = -1;
	}

	end() {
		while (this.tip) this.close(this.tip, this.number);
		return this.root.children;
	}

	read(line) {
		this.line = line;
		this.number++;
		this.at = 0;
		this.column = 0;
		this.inTab = false;
		this.look();
		let container = this.root;
		let allMatched = true;
		while (container.children?.at(-1)?.open) {
			const child = container.children.at(-1);
			const matched = this.continues(child);
			if (matched === "end") return;
			if (!matched) {
				allMatched = false;
				break;
			}
			container = child;
		}
		this.matched = container;
		this.unmatched = allMatched ? null : this.tip;
		let isLeaf = container.type === "code";
		while (!isLeaf) {
			this.look();
			const started = this.start(container);
			if (!started) {
				this.skipBlanks();
				break;
			}
			if (started === "line") return;
			container = started;
			isLeaf = container.type === "code";
		}
		if (this.unmatched && !this.blank && this.tip.type === "paragraph") {
			this.tip.lines.push(this.line.slice(this.at)); // A lazy continuation.
			return;
		}
		this.closeUnmatched();
		if (container.type === "code") container.lines.push(this.rest());
		else if (container.type === "table") container.rows.push(cells(this.line.slice(this.at), container.aligns.length));
		else if (container.type === "paragraph") container.lines.push(this.line.slice(this.at));
		else if (!this.blank) this.add("paragraph", { lines: [this.line.slice(this.at)] });
	}

	/** Finds the next sign that is not blank. */
	look() {
		const { line } = this;
		let { at, column } = this;
		for (; line[at] === " " || line[at] === "\t"; at++) column += line[at] === "\t" ? 4 - (column % 4) : 1;
		this.next = at;
		this.nextColumn = column;
		this.indent = column - this.column;
		this.blank = at === line.length;
	}

	skipBlanks() {
		this.at = this.next;
		this.column = this.nextColumn;
		this.inTab = false;
	}

	/** Moves by a number of columns. A tab may be entered only partly. */
	move(count) {
		while (count > 0 && this.at < this.line.length) {
			if (this.line[this.at] !== "\t") {
				this.inTab = false;
				this.at++;
				this.column++;
				count--;
				continue;
			}
			const width = 4 - (this.column % 4);
			const step = Math.min(width, count);
			this.inTab = width > count;
			this.column += step;
			if (!this.inTab) this.at++;
			count -= step;
		}
	}

	/** The rest of the line. The part of a tab that is left becomes spaces. */
	rest() {
		const rest = this.line.slice(this.at + (this.inTab ? 1 : 0));
		return this.inTab ? " ".repeat(4 - (this.column % 4)) + rest : rest;
	}

	/** Whether an open block contains the line. "end" if the line only closes it. */
	continues(block) {
		this.look();
		const { line, next, indent, blank } = this;
		switch (block.type) {
			case "list":
				return true;
			case "quote":
				if (indent > 3 || line[next] !== ">") return false;
				this.skipBlanks();
				this.move(1);
				if (line[this.at] === " " || line[this.at] === "\t") this.move(1);
				return true;
			case "item":
				if (blank) {
					if (!block.children.length) return false;
					this.skipBlanks();
					return true;
				}
				if (indent < block.width) return false;
				this.move(block.width);
				return true;
			case "code":
				return block.fence ? this.inFence(block) : this.inIndented();
			case "paragraph":
			case "table":
				return !blank;
			default:
				return false;
		}
	}

	inFence(block) {
		const { line, next } = this;
		let end = next;
		while (line[end] === block.fence[0]) end++;
		if (this.indent <= 3 && end - next >= block.fence.length && line.slice(end).trim() === "") {
			this.unmatched = null;
			this.closeDeeper(block);
			this.close(block, this.number);
			return "end";
		}
		this.move(Math.min(block.offset, this.indent));
		return true;
	}

	inIndented() {
		if (this.indent >= 4) this.move(4);
		else if (this.blank) this.skipBlanks();
		else return false;
		return true;
	}

	/** Starts the block that begins here: returns a container, "line" if the line is used up, or null. */
	start(container) {
		const { line, next } = this;
		if (this.indent >= 4) {
			if (this.tip.type === "paragraph" || this.blank || container.type === "table") return null;
			this.move(4);
			this.closeUnmatched();
			return this.add("code", { lines: [], language: "", fence: "" });
		}
		const sign = line[next];
		// Most lines start with a letter: they cannot start a block.
		if (sign === undefined || !/[>#`~=\-*_+\d|:]/.test(sign)) return null;
		const text = line.slice(next);
		if (sign === ">" && container.depth < DEEPEST) {
			this.skipBlanks();
			this.move(1);
			if (/[ \t]/.test(line[this.at] ?? "")) this.move(1);
			this.closeUnmatched();
			return this.add("quote", { children: [] });
		}
		return this.heading(text) || this.fence(text) || this.underline(container, text) || this.table(container, text) || this.rule(text) || this.item(container, text);
	}

	heading(text) {
		const found = HEADING.exec(text);
		if (!found) return null;
		this.closeUnmatched();
		const title = withoutClosing(text.slice(found[0].length));
		this.close(this.add("heading", { level: found[1].length, text: title }), this.number);
		return "line";
	}

	fence(text) {
		const found = FENCE.exec(text);
		if (!found) return null;
		this.closeUnmatched();
		const info = unescaped((found[2] ?? found[4]).trim());
		this.add("code", { lines: [], language: info.split(/\s/, 1)[0], fence: found[1] ?? found[3], offset: this.indent });
		return "line";
	}

	underline(container, text) {
		if (container.type !== "paragraph" || !UNDERLINE.test(text)) return null;
		this.closeUnmatched();
		this.define(container);
		if (!container.lines.length) return null;
		Object.assign(container, { type: "heading", level: text[0] === "=" ? 1 : 2, text: container.lines.join("\n").trim() });
		this.close(container, this.number);
		return "line";
	}

	table(container, text) {
		const row = text.trimEnd();
		if (!container.lines?.length || container.type !== "paragraph" || !/[|:]/.test(row) || !COLUMNS.test(row)) return null;
		const aligns = cells(row).map((one) => (one.endsWith(":") ? (one.startsWith(":") ? "center" : "right") : one.startsWith(":") ? "left" : ""));
		const head = cells(container.lines.at(-1));
		if (head.length !== aligns.length) return null;
		this.closeUnmatched();
		container.lines.pop();
		const table = { aligns, rows: [head] };
		if (container.lines.length) {
			this.close(container, this.number - 2);
			this.add("table", table).start = this.number - 1;
		} else Object.assign(container, { type: "table", ...table });
		return "line";
	}

	rule(text) {
		if (!RULE.test(text)) return null;
		this.closeUnmatched();
		this.close(this.add("rule", {}), this.number);
		return "line";
	}

	item(container, text) {
		const found = container.depth < DEEPEST && MARK.exec(text);
		if (!found) return null;
		const [mark, bullet, number, delimiter] = found;
		const isEmpty = text.slice(mark.length).trim() === "";
		// Only a list that begins with a text, and with 1, interrupts a paragraph.
		if (container.type === "paragraph" && (isEmpty || (number && Number(number) !== 1))) return null;
		const offset = this.indent;
		this.skipBlanks();
		this.move(mark.length);
		const [at, column, inTab] = [this.at, this.column, this.inTab];
		this.look();
		let gap = this.indent;
		if (isEmpty || gap > 4) {
			// Nothing follows, or indented code does.
			[this.at, this.column, this.inTab] = [at, column, inTab];
			gap = 1;
			if (/[ \t]/.test(this.line[this.at] ?? "")) this.move(1);
		} else this.move(gap);
		this.closeUnmatched();
		const kind = bullet ?? delimiter;
		if (this.tip.type !== "list" || this.tip.kind !== kind) {
			this.add("list", { children: [], ordered: !bullet, first: Number(number ?? 1), kind, tight: true });
		}
		return this.add("item", { children: [], width: offset + mark.length + gap, checked: null });
	}

	add(type, more) {
		while (!holds(this.tip, type)) this.close(this.tip, this.number - 1);
		const block = { type, open: true, parent: this.tip, start: this.number, end: this.number, depth: this.tip.depth + 1, ...more };
		this.tip.children.push(block);
		this.tip = block;
		return block;
	}

	closeUnmatched() {
		if (this.unmatched) this.closeDeeper(this.matched);
		this.unmatched = null;
	}

	closeDeeper(block) {
		while (this.tip !== block) this.close(this.tip, this.number - 1);
	}

	close(block, end) {
		block.open = false;
		block.end = end;
		this.tip = block.parent;
		const last = block.children?.at(-1);
		if (block.type === "paragraph") {
			this.define(block);
			block.text = block.lines.join("\n").trimEnd();
			if (!block.lines.length) block.parent.children.pop();
		} else if (block.type === "code") closeCode(block);
		else if (block.type === "item") {
			block.end = last?.end ?? block.start;
			closeItem(block);
		} else if (block.type === "list") {
			block.end = last.end;
			block.tight = isTight(block);
		}
		// The tree must have no cycles for its readers.
		delete block.parent;
		delete block.lines;
	}

	/** Takes the link definitions off the beginning of a paragraph. */
	define(block) {
		if (block.lines[0]?.[0] !== "[") return;
		const text = block.lines.join("\n");
		let at = 0;
		let line = block.start;
		while (text[at] === "[") {
			const found = definition(text, at);
			if (!found) break;
			if (!this.definitions.has(found.label)) this.definitions.set(found.label, { href: found.href, title: found.title, line });
			line += text.slice(at, found.end).split("\n").length - 1;
			at = found.end;
		}
		if (at) block.lines = at < text.length ? text.slice(at).split("\n") : [];
	}
}

function holds(block, type) {
	if (block.type === "list") return type === "item";
	return type !== "item" && Boolean(block.children);
}

/** Reads a link definition that ends with its line. */
function definition(text, start) {
	const label = readLabel(text, start);
	if (!label || text[label[1]] !== ":") return null;
	const blanks = (at) => {
		BLANKS.lastIndex = at;
		return at + BLANKS.exec(text)[0].length;
	};
	const lineEnd = (at) => {
		while (text[at] === " " || text[at] === "\t") at++;
		return at === text.length ? at : text[at] === "\n" ? at + 1 : -1;
	};
	const from = blanks(label[1] + 1);
	const target = from < text.length && readTarget(text, from);
	if (!target || target[1] === from) return null;
	const after = blanks(target[1]);
	const title = after > target[1] && readTitle(text, after);
	const end = title ? lineEnd(title[1]) : -1;
	if (end >= 0) return { label: label[0], href: target[0], title: title[0], end };
	const short = lineEnd(target[1]);
	return short < 0 ? null : { label: label[0], href: target[0], title: "", end: short };
}

function withoutClosing(text) {
	const title = text.trim();
	let end = title.length;
	while (title[end - 1] === "#") end--;
	if (end === title.length) return title;
	return end === 0 || /[ \t]/.test(title[end - 1]) ? title.slice(0, end).trimEnd() : title;
}

function closeCode(block) {
	const { lines } = block;
	if (!block.fence) {
		while (lines.length && lines.at(-1).trim() === "") lines.pop();
		block.end = block.start + lines.length - 1;
	}
	block.text = lines.length ? `${lines.join("\n")}\n` : "";
}

/** Takes the box off a task: "[x] Done". */
function closeItem(item) {
	const [first] = item.children;
	const box = first?.type === "paragraph" && TASK.exec(first.text);
	if (!box) return;
	item.checked = box[1] !== " ";
	first.text = first.text.slice(box[0].length);
}

/** A list is loose if a blank line separates two of its items, or two blocks of an item. */
function isTight(list) {
	const apart = (one, next) => next && next.start > one.end + 1;
	return !list.children.some(
		(item, n) => apart(item, list.children[n + 1]) || item.children.some((one, m) => apart(one, item.children[m + 1])),
	);
}

/** Splits a line of a table. Cells beyond the limit are dropped. */
function cells(line, limit = Infinity) {
	const found = [];
	let text = "";
	const row = line.trim();
	const from = row[0] === "|" ? 1 : 0;
	for (let at = from; at < row.length; at++) {
		if (row[at] === "\\" && row[at + 1] === "|") {
			text += "|";
			at++;
		} else if (row[at] === "|") {
			found.push(text.trim());
			text = "";
		} else text += row[at];
	}
	if (text.trim() !== "" || !row.endsWith("|")) found.push(text.trim());
	return found.slice(0, limit);
}
