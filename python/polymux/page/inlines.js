// The lexer of inline Markdown: CommonMark 0.31.2, with strikethrough and bare URLs of GitHub Flavored
// Markdown. It takes linear time for any text, because models and servers can send anything.

import { entity } from "./entities.js";

/** Links deeper in parentheses than this are text, as in cmark: otherwise "[a](" takes quadratic time. */
const DEEPEST_PARENTHESES = 32;
const LONGEST_LABEL = 999;
const PUNCTUATION = /[!-/:-@[-`{-~]/;
const PLAIN = /[^\n\\`*_~[\]!<&:]+/y;
const ENTITY = /&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]{1,31}));/iy;
const ESCAPED = /\\([!-/:-@[-`{-~])|&(?:#x([0-9a-f]{1,6})|#(\d{1,7})|([a-z][a-z0-9]{1,31}));/gi;
const SPACES = / */y;
const WHITESPACE = /[ \t\n]*/y;
const BRACED_TARGET = /<((?:[^<>\n\\]|\\.)*)>/y;
const TITLE = /"((?:[^"\\]|\\[^])*)"|'((?:[^'\\]|\\[^])*)'|\(((?:[^()\\]|\\[^])*)\)/y;
const LABEL = /\[((?:[^[\]\\]|\\[^])*)\]/y;
const AUTOLINK = /<([a-z][a-z0-9.+-]{1,31}:[^<>\0- ]*)>/iy;
const EMAIL = /<([\w.!#$%&'*+/=?^`{|}~-]+@[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?)*)>/iy;
const TAG = /<(?:[a-z][a-z0-9-]*(?:\s+[a-z_:][\w.:-]*(?:\s*=\s*(?:[^\s"'=<>`]+|'[^']*'|"[^"]*"))?)*\s*\/?|\/[a-z][a-z0-9-]*\s*)>/iy;
const BARE_REST = /[^\s<>[\]"`]*/y;

const [OTHER, BLANK, SIGN] = [0, 1, 2];
/** The kinds of the ASCII characters. */
const KINDS = Uint8Array.from({ length: 128 }, (_, code) => kindOf(String.fromCharCode(code)));

function kindOf(character) {
	if (/\s/.test(character)) return BLANK;
	return /[\p{P}\p{S}]/u.test(character) ? SIGN : OTHER;
}

/** The kind of a code point. Outside the text, it is undefined and counts as blank. */
function kindOfCode(code = 32) {
	return code < 128 ? KINDS[code] : kindOf(String.fromCodePoint(code));
}

const sticky = (pattern, text, at) => {
	pattern.lastIndex = at;
	return pattern.exec(text);
};
const skip = (pattern, text, at) => at + sticky(pattern, text, at)[0].length;

/** Resolves escapes and character references, as in targets, titles and info strings. */
export function unescaped(text) {
	if (!/[\\&]/.test(text)) return text;
	return text.replace(ESCAPED, (whole, sign, hex, decimal, name) => sign ?? entity(hex, decimal, name) ?? whole);
}

/** The key of a link label: without regard to case and whitespace. */
export function normalized(label) {
	return label.trim().replace(/[ \t\r\n]+/g, " ").toLowerCase().toUpperCase();
}

function encoded(target) {
	return target.toWellFormed().split(/(%[0-9a-f]{2})/i).map((one, n) => (n % 2 ? one : encodeURI(one))).join("");
}

/** Reads the target of a link at a position. Returns [target, end], or null. */
export function readTarget(text, at) {
	if (text[at] === "<") {
		const found = sticky(BRACED_TARGET, text, at);
		return found && [encoded(unescaped(found[1])), BRACED_TARGET.lastIndex];
	}
	let depth = 0;
	let end = at;
	for (; end < text.length && text[end] > " " && text[end] !== "\x7f"; end++) {
		const sign = text[end];
		if (sign === "\\" && PUNCTUATION.test(text[end + 1] ?? "")) end++;
		else if (sign === "(") {
			if (++depth > DEEPEST_PARENTHESES) return null;
		} else if (sign === ")" && --depth < 0) break;
	}
	return depth > 0 ? null : [encoded(unescaped(text.slice(at, end))), end];
}

/** Reads the title of a link at a position. Returns [title, end], or null. */
export function readTitle(text, at) {
	const found = sticky(TITLE, text, at);
	return found && [unescaped(found[1] ?? found[2] ?? found[3]), TITLE.lastIndex];
}

/** Reads a label in brackets at a position. Returns [label, end], or null. */
export function readLabel(text, at) {
	const found = text[at] === "[" && sticky(LABEL, text, at);
	return found && found[1].length <= LONGEST_LABEL && found[1].trim() ? [normalized(found[1]), LABEL.lastIndex] : null;
}

/**
 * Splits a text into tokens:
 *
 * - {type: "text", text}, {type: "code", text}, {type: "html", text} (a tag, to be shown as text)
 * - {type: "break", hard}
 * - {type: "open", tag: "em" | "strong" | "s" | "a" | "img", href, title}, and a {type: "close"} for each
 *
 * `definitions` maps normalized labels to {href, title}.
 */
export function inlines(text, definitions = new Map()) {
	return new Lexer(text, definitions).tokens();
}

class Lexer {
	constructor(text, definitions) {
		this.text = text;
		this.definitions = definitions;
		this.at = 0;
		this.found = [];
		/** Parts of the current text. Joining them late keeps the work linear. */
		this.pending = [];
		/** The last delimiter run that can still open or close emphasis. */
		this.top = null;
		this.brackets = [];
		/** Brackets below this index are inside no further link. */
		this.inactive = 0;
		this.ticks = null;
		/** Ends of raw HTML that the rest of the text does not contain. */
		this.absent = new Set();
	}

	tokens() {
		while (this.at < this.text.length) this.step();
		this.flush();
		this.match(null);
		return merged(this.found);
	}

	flush() {
		const { pending } = this;
		if (!pending.length) return;
		this.found.push({ type: "text", text: pending.length === 1 ? pending[0] : pending.join("") });
		this.pending = [];
	}

	push(token) {
		this.flush();
		this.found.push(token);
		return token;
	}

	take(pattern) {
		const found = sticky(pattern, this.text, this.at);
		if (found) this.at = pattern.lastIndex;
		return found;
	}

	step() {
		PLAIN.lastIndex = this.at;
		if (PLAIN.test(this.text)) {
			this.pending.push(this.text.slice(this.at, PLAIN.lastIndex));
			this.at = PLAIN.lastIndex;
			if (this.at === this.text.length) return;
		}
		const sign = this.text[this.at];
		if (sign === "\n") this.newline();
		else if (sign === "\\") this.escape();
		else if (sign === "`") this.code();
		else if (sign === "*" || sign === "_" || sign === "~") this.delimiters(sign);
		else if (sign === "[") this.openBracket(false);
		else if (sign === "!" && this.text[this.at + 1] === "[") this.openBracket(true);
		else if (sign === "]") this.closeBracket();
		else if (!((sign === "<" && this.angle()) || (sign === "&" && this.reference()) || (sign === ":" && this.bareUrl()))) {
			this.pending.push(sign);
			this.at++;
		}
	}

	newline() {
		const last = this.pending.pop() ?? "";
		let end = last.length;
		while (last[end - 1] === " ") end--;
		const hard = last.length - end >= 2;
		this.pending.push(last.slice(0, end));
		this.push({ type: "break", hard });
		this.at = skip(SPACES, this.text, this.at + 1);
	}

	escape() {
		const next = this.text[this.at + 1] ?? "";
		this.at += 2;
		if (next === "\n") {
			this.push({ type: "break", hard: true });
			this.at = skip(SPACES, this.text, this.at);
		} else if (PUNCTUATION.test(next)) this.pending.push(next);
		else {
			this.pending.push("\\");
			this.at--;
		}
	}

	reference() {
		const found = this.take(ENTITY);
		if (!found) return false;
		this.pending.push(entity(found[1], found[2], found[3]) ?? found[0]);
		return true;
	}

	code() {
		// All runs of backticks by length, so that the search for the end of a span needs no further scan.
		if (!this.ticks) {
			this.ticks = new Map();
			for (const one of this.text.matchAll(/`+/g)) {
				const known = this.ticks.get(one[0].length);
				if (known) known.push(one.index);
				else this.ticks.set(one[0].length, [one.index]);
			}
			for (const one of this.ticks.values()) one.reverse();
		}
		const [run] = this.take(/`+/y);
		const ends = this.ticks.get(run.length) ?? [];
		while (ends.length && ends.at(-1) < this.at) ends.pop();
		if (!ends.length) {
			this.pending.push(run);
			return;
		}
		const end = ends.pop();
		const text = this.text.slice(this.at, end).replaceAll("\n", " ");
		const padded = text.startsWith(" ") && text.endsWith(" ") && text.trim() !== "";
		this.push({ type: "code", text: padded ? text.slice(1, -1) : text });
		this.at = end + run.length;
	}

	delimiters(sign) {
		const { text, at } = this;
		let end = at;
		while (text[end] === sign) end++;
		this.at = end;
		const count = end - at;
		// A single "~" often means "about".
		if (sign === "~" && count !== 2) {
			this.pending.push(text.slice(at, end));
			return;
		}
		const isPair = at > 1 && (text.charCodeAt(at - 1) & 0xfc00) === 0xdc00;
		const before = kindOfCode(at > 0 ? text.codePointAt(at - (isPair ? 2 : 1)) : undefined);
		const after = kindOfCode(text.codePointAt(end));
		const left = after !== BLANK && (after !== SIGN || before !== OTHER);
		const right = before !== BLANK && (before !== SIGN || after !== OTHER);
		const inWord = sign === "_" && left && right;
		const run = {
			type: "run", sign, count, length: count, at, opens: null, closes: 0, previous: this.top, next: null,
			canOpen: left && (!inWord || before === SIGN),
			canClose: right && (!inWord || after === SIGN),
		};
		this.push(run);
		if (!run.canOpen && !run.canClose) return;
		if (this.top) this.top.next = run;
		this.top = run;
	}

	openBracket(image) {
		const before = this.brackets.at(-1);
		if (before) before.followed = true;
		this.push({ type: "text", text: image ? "![" : "[" });
		this.at += image ? 2 : 1;
		this.brackets.push({ image, index: this.found.length - 1, at: this.at, below: this.top, followed: false });
	}

	closeBracket() {
		this.at++;
		const number = this.brackets.length - 1;
		const opener = this.brackets.pop();
		const active = opener && (opener.image || number >= this.inactive);
		this.inactive = Math.min(this.inactive, this.brackets.length);
		const target = active && (this.inlineTarget() ?? this.defined(opener));
		if (!target) {
			this.pending.push("]");
			return;
		}
		this.flush();
		this.match(opener.below);
		this.found[opener.index] = { type: "open", tag: opener.image ? "img" : "a", ...target };
		this.push({ type: "close" });
		if (!opener.image) this.inactive = this.brackets.length;
	}

	/** Reads "(target "title")" after a bracket. */
	inlineTarget() {
		const { text } = this;
		if (text[this.at] !== "(") return null;
		const target = readTarget(text, skip(WHITESPACE, text, this.at + 1));
		if (!target) return null;
		let end = skip(WHITESPACE, text, target[1]);
		const title = end > target[1] && readTitle(text, end);
		if (title) end = skip(WHITESPACE, text, title[1]);
		if (text[end] !== ")") return null;
		this.at = end + 1;
		return { href: target[0], title: title ? title[0] : "" };
	}

	/** Reads "[label]" after a bracket, or uses the text of the bracket as label. */
	defined(opener) {
		if (!this.definitions.size) return null;
		const { text } = this;
		const label = readLabel(text, this.at);
		const empty = text.startsWith("[]", this.at);
		const isShort = this.at - opener.at <= LONGEST_LABEL + 1;
		const known = label ? label[0] : opener.followed || !isShort ? null : normalized(text.slice(opener.at, this.at - 1));
		const found = known && this.definitions.get(known);
		if (found) this.at = label ? label[1] : this.at + (empty ? 2 : 0);
		return found;
	}

	/** An autolink, or a raw tag. */
	angle() {
		const link = this.take(AUTOLINK);
		const email = link ? null : this.take(EMAIL);
		const found = link ?? email;
		if (found) {
			this.link(email ? `mailto:${found[1]}` : encoded(found[1]), found[1]);
			return true;
		}
		const raw = this.raw();
		if (!raw) return false;
		this.push({ type: "html", text: raw });
		return true;
	}

	raw() {
		const { text, at } = this;
		if (text[at + 1] !== "!" && text[at + 1] !== "?") return this.take(TAG)?.[0];
		if (/^<!---?>/.test(text.slice(at, at + 6))) return this.until(">", 4);
		if (text.startsWith("<!--", at)) return this.until("-->", 4);
		if (text.startsWith("<?", at)) return this.until("?>", 2);
		if (text.startsWith("<![CDATA[", at)) return this.until("]]>", 9);
		return /[a-z]/i.test(text[at + 2] ?? "") ? this.until(">", 2) : null;
	}

	until(end, length) {
		const found = this.absent.has(end) ? -1 : this.text.indexOf(end, this.at + length);
		if (found < 0) {
			this.absent.add(end);
			return null;
		}
		const raw = this.text.slice(this.at, found + end.length);
		this.at = found + end.length;
		return raw;
	}

	link(href, text) {
		this.push({ type: "open", tag: "a", href, title: "" });
		this.push({ type: "text", text });
		this.push({ type: "close" });
	}

	/** A URL without brackets, at the colon of its scheme. */
	bareUrl() {
		if (!this.text.startsWith("//", this.at + 1)) return false;
		const scheme = /(?:^|[^a-z0-9])(https?)$/i.exec(this.text.slice(Math.max(0, this.at - 6), this.at))?.[1];
		if (!scheme || !this.pending.at(-1)?.endsWith(scheme)) return false;
		const [rest] = sticky(BARE_REST, this.text, this.at);
		let end = rest.length;
		let surplus = (rest.split(")").length - rest.split("(").length) | 0;
		for (; end > 3; end--) {
			const isSurplus = rest[end - 1] === ")" && surplus > 0;
			if (isSurplus) surplus--;
			else if (!/[?!.,:;*_~'|]/.test(rest[end - 1])) break;
		}
		if (end <= 3) return false;
		const url = scheme + rest.slice(0, end);
		this.pending.push(this.pending.pop().slice(0, -scheme.length));
		this.at += end;
		this.link(encoded(url), url);
		return true;
	}

	/** Pairs the delimiter runs above `bottom`. The innermost pair comes first. */
	match(bottom) {
		let closer = this.top;
		while (closer && closer.previous !== bottom) closer = closer.previous;
		// For each kind of closer, the position below which no opener fits.
		const floor = new Int32Array(18).fill(-1);
		while (closer) {
			const { next } = closer;
			if (!closer.canClose) {
				closer = next;
				continue;
			}
			const kind = "*_~".indexOf(closer.sign) * 6 + (closer.canOpen ? 3 : 0) + (closer.length % 3);
			const lowest = floor[kind];
			let opener = closer.previous;
			while (opener !== bottom && opener.at > lowest && !fit(opener, closer)) opener = opener.previous;
			if (opener === bottom || opener.at <= lowest) {
				floor[kind] = closer.previous && closer.previous !== bottom ? closer.previous.at : -1;
				if (!closer.canOpen) this.unlink(closer);
				closer = next;
				continue;
			}
			opener.next = closer;
			closer.previous = opener;
			const size = opener.count >= 2 && closer.count >= 2 ? 2 : 1;
			const tag = closer.sign === "~" ? "s" : size === 2 ? "strong" : "em";
			(opener.opens ??= []).push(tag);
			closer.closes++;
			opener.count -= size;
			closer.count -= size;
			if (!opener.count) this.unlink(opener);
			if (!closer.count) {
				this.unlink(closer);
				closer = next;
			}
		}
		this.top = bottom;
		if (bottom) bottom.next = null;
	}

	unlink(run) {
		if (run.previous) run.previous.next = run.next;
		if (run.next) run.next.previous = run.previous;
		else this.top = run.previous;
	}
}

function fit(opener, closer) {
	if (opener.sign !== closer.sign || !opener.canOpen) return false;
	// Rule 9 and 10 of emphasis: "*foo**bar*" is one pair.
	const both = opener.canClose || closer.canOpen;
	return !both || closer.length % 3 === 0 || (opener.length + closer.length) % 3 !== 0;
}

/** Replaces delimiter runs by tags and the signs that remain, and joins texts. */
function merged(found) {
	const tokens = [];
	const text = (more) => {
		const last = tokens.at(-1);
		if (last?.type === "text") last.text += more;
		else if (more) tokens.push({ type: "text", text: more });
	};
	for (const one of found) {
		if (one.type === "text") text(one.text);
		else if (one.type !== "run") tokens.push(one);
		else {
			for (let n = 0; n < one.closes; n++) tokens.push({ type: "close" });
			text(one.count === 1 ? one.sign : one.sign.repeat(one.count));
			for (const tag of one.opens?.reverse() ?? []) tokens.push({ type: "open", tag });
		}
	}
	return tokens;
}
