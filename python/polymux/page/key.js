// The key: asked for when the server wants one, tried, and kept for this tab.

import { announce, button, complain, fill, icon, make } from "./dom.js";
import { ask, key } from "./server.js";

const dialog = document.getElementById("key-dialog");
let changed = () => {};

export function onKey(call) {
	changed = call;
}

export function drawKeyButton(place) {
	const there = key.get() !== "";
	fill(place, icon("key"), make("span", there ? "Key" : "Enter key"));
	place.setAttribute("aria-label", there ? "Key: one is set; change it" : "Enter a key");
	place.onclick = () => openKeyDialog();
}

/** Opens the dialog; `error` is what the server said. */
export function openKeyDialog(error = null) {
	if (dialog.open) return;
	const words = make("p.field-error", { id: "key-error", role: "alert" }, error?.message ?? "");
	const input = make("input", {
		id: "key-input", type: "password", autocomplete: "off", spellcheck: "false", required: true,
		placeholder: "pmx_…", "aria-describedby": "key-hint key-error",
	});
	const show = button("Show", {
		class: "quiet",
		onclick() {
			input.type = input.type === "password" ? "text" : "password";
			show.lastChild.textContent = input.type === "password" ? "Show" : "Hide";
		},
	});
	const form = make(
		"form.stack",
		{ novalidate: true, onsubmit: () => tried(input, words) },
		make("h2", { id: "key-title" }, "Your key for this server"),
		make("p.hint", { id: "key-hint" }, "One that “polymux keys add” has printed. On this machine the first start keeps one in the first line of the file local-key, in polymux’s folder for state. It stays in this tab, until the tab is closed."),
		make("label", { for: "key-input" }, "Key"),
		make("div.row", input, show),
		words,
		make(
			"div.actions",
			key.get() !== "" && button("Forget the key", { class: "danger", onclick: () => done("", "The key is forgotten") }),
			button("Close", { class: "quiet", onclick: () => dialog.close() }),
			button("Use this key", { class: "primary", type: "submit" }),
		),
	);
	fill(dialog, form);
	dialog.showModal();
	input.focus();
}

async function tried(input, words) {
	const before = key.get();
	const text = input.value.trim();
	if (/[^!-~]/.test(text)) return complain(input, words, "This is no key: keys have no blanks, and no letters but a to z.");
	complain(input, words, "");
	key.set(text);
	try {
		await ask("api/v1/operations");
	} catch (error) {
		// A key that may do other things is a key.
		if (error.status !== 403) {
			key.set(before);
			complain(input, words, error.message);
			return;
		}
	}
	done(key.get(), "The key is set");
}

function done(text, told) {
	key.set(text);
	dialog.close();
	announce(told);
	changed();
}
