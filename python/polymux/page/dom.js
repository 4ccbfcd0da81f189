// Helpers that build DOM elements. Text becomes text nodes. The page never parses HTML, because text
// from models and servers is untrusted.

import { t } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";

const ICONS = {
	play: "M5 4l14 8-14 8z",
	chat: "M4 5h16v11H9l-5 4z",
	jobs: "M4 6h16M4 12h16M4 18h10",
	songs: "M9 18V5l11-2v13M9 18a3 3 0 1 1-6 0 3 3 0 0 1 6 0zm11-2a3 3 0 1 1-6 0 3 3 0 0 1 6 0z",
	gauge: "M12 20a8 8 0 1 1 8-8M12 12l5-4M12 20h8",
	key: "M14 10a4 4 0 1 0-4 4 4 4 0 0 0 4-4zm-1 3l7 7m-3-3l2-2",
	sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v2m0 16v2M2 12h2m16 0h2M5 5l1 1m12 12l1 1M19 5l-1 1M6 18l-1 1",
	moon: "M20 14A8 8 0 0 1 10 4a8 8 0 1 0 10 10z",
	half: "M12 3a9 9 0 1 0 0 18zM12 3a9 9 0 0 1 0 18",
	copy: "M8 8h12v12H8zM16 8V4H4v12h4",
	down: "M12 4v11m-5-5l5 5 5-5M5 20h14",
	mic: "M12 3a3 3 0 0 0-3 3v5a3 3 0 0 0 6 0V6a3 3 0 0 0-3-3zM6 11a6 6 0 0 0 12 0M12 17v4",
	up: "M12 16V5m-5 5l5-5 5 5M5 20h14",
	stop: "M6 6h12v12H6z",
	send: "M4 12l16-8-6 16-3-7z",
	cross: "M6 6l12 12M18 6L6 18",
	check: "M5 12l5 5L20 7",
	plus: "M12 5v14M5 12h14",
	picture: "M4 5h16v14H4zM4 16l5-5 4 4 3-3 4 4M15 9h.01",
	warn: "M12 4l9 16H3zM12 10v4m0 3h.01",
	edit: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
	more: "M5 12h1M12 12h1M19 12h1",
	again: "M20 12a8 8 0 1 1-3-6l3 2m0-5v5h-5",
	left: "M15 5l-7 7 7 7",
	right: "M9 5l7 7-7 7",
	globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18M3 12h18M12 3c4 4 4 14 0 18M12 3c-4 4-4 14 0 18",
	open: "M14 4h6v6m0-6l-9 9M18 14v6H4V6h6",
};

const shown = (children) => children.flat().filter((one) => (one ?? false) !== false);

/** Creates an element from "tag.class", optional attributes (`on*` are event listeners) and children. */
export function make(name, given, ...children) {
	if (given?.constructor !== Object) return make(name, {}, given, ...children);
	const [tag, ...classes] = name.split(".");
	const made = document.createElement(tag);
	if (classes.length) made.className = classes.join(" ");
	for (const [key, value] of Object.entries(given)) {
		if ((value ?? false) === false) continue;
		if (/html|srcdoc/i.test(key)) throw new TypeError(`${key}: use children instead of HTML`);
		if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
		else if (key === "dataset") Object.assign(made.dataset, value);
		else if (key === "value" || (key in made && typeof value !== "string")) made[key] = value;
		else made.setAttribute(key, value === true ? "" : value);
	}
	made.append(...shown(children));
	return made;
}

/** A decorative icon, hidden from screen readers. */
export function icon(name) {
	const drawn = document.createElementNS(SVG, "svg");
	drawn.setAttribute("viewBox", "0 0 24 24");
	drawn.setAttribute("class", "icon");
	drawn.setAttribute("aria-hidden", "true");
	const path = document.createElementNS(SVG, "path");
	path.setAttribute("d", ICONS[name]);
	drawn.append(path);
	return drawn;
}

/** A button with an icon. With `small`, the text appears only as tooltip and for screen readers. */
export function button(words, { name = "", small = false, ...given } = {}) {
	const kind = given.class ?? (small ? "quiet small" : "");
	delete given.class;
	const label = small ? { "aria-label": words, title: words } : {};
	const made = make("button", { type: "button", ...label, ...given }, name && icon(name));
	if (kind) made.className = kind;
	if (!small) made.append(make("span", words));
	return made;
}

/** Replaces all children of an element. */
export function fill(parent, ...children) {
	parent.replaceChildren(...shown(children));
	return parent;
}

/** Announces a text to screen readers. */
export function announce(words) {
	document.getElementById("announcer").textContent = words;
}

/** A button that copies the text that `text()` returns to the clipboard. */
export function copyButton(text, words = t("copy")) {
	const made = button(words, {
		name: "copy",
		class: "quiet",
		async onclick() {
			try {
				await navigator.clipboard.writeText(text());
				notify(t("copied"));
			} catch {
				notify(t("copyFailed"));
			}
		},
	});
	function notify(message) {
		made.lastChild.textContent = message;
		announce(message);
		setTimeout(() => (made.lastChild.textContent = words), 1500);
	}
	return made;
}

export function player(tag, src, label) {
	return make(tag, { src, controls: true, preload: "metadata", "aria-label": label });
}

/** An external link, without referrer and without access to this window. */
export function linkOut(href, ...children) {
	return make("a", { href, target: "_blank", rel: "noopener noreferrer nofollow" }, ...children);
}

/** An element with scrolling content. It can have the focus, so that the keyboard can scroll it. */
export function scrolled(name, label, ...children) {
	return make(name, { tabIndex: 0, role: "region", "aria-label": label }, ...children);
}

/** A table. Cells are children for `make`. With `named`, the first cell of each row is its header. */
export function table(label, columns, rows, named = false) {
	const cell = (one, n) => (named && !n ? make("th", { scope: "row" }, one) : make("td", one));
	const head = make("thead", make("tr", ...columns.map((one) => make("th", { scope: "col" }, one))));
	const body = make("tbody", ...rows.map((cells) => make("tr", ...cells.map(cell))));
	return scrolled("div.wide", label, make("table", head, body));
}

/** Shows an error below a control and focuses the control. An empty text clears the error. */
export function complain(input, place, message) {
	place.textContent = message;
	if (!message) return input.removeAttribute("aria-invalid");
	input.setAttribute("aria-invalid", "true");
	input.focus();
}

/** A placeholder for an empty list or result. */
export function empty(name, title, ...more) {
	return make("div.empty", icon(name), make("p.empty-title", title), ...more);
}

/** A placeholder while content loads. */
export function skeleton(lines = 3) {
	const bars = Array.from({ length: lines }, () => make("div.bar"));
	return make("div.skeleton", { role: "status" }, make("span.unseen", t("loading")), ...bars);
}

const COMMANDS = /"(pip [^"]+)"|'((?:polymux|pip) [^']+)'/g;

/** The commands that a message of the server names in quotes, with buttons to copy them. */
export function commands(text) {
	const found = new Set([...text.matchAll(COMMANDS)].map((one) => one[1] ?? one[2]));
	return [...found].map((one) => make("div.command", make("code", one), copyButton(() => one)));
}

/** An error: the message, the code and the request ID. */
export function failure(error) {
	const notes = [error.code, error.requestId && t("request", { id: error.requestId })].filter(Boolean);
	return make(
		"div.failure",
		{ role: "alert" },
		icon("warn"),
		make("div.stack", make("p", error.message), ...commands(error.message ?? ""), notes.length > 0 && make("p.note", notes.join(" · "))),
	);
}

export function heading(title, words, ...actions) {
	return make(
		"header.heading",
		make("div", make("h1", title), words && make("p.lead", words)),
		actions.length > 0 && make("div.actions", ...actions),
	);
}
