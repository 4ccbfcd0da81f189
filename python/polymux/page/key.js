// The sign-in dialog: it checks an API key and stores it for this tab.

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
	place.setAttribute("aria-label", there ? "Key: change or sign out" : "Enter key");
	place.onclick = () => openKeyDialog();
}

/** Opens the dialog. `error` is the server's error for the previous key. */
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
		make("h2", { id: "key-title" }, "API key for this server"),
		make("p.hint", { id: "key-hint" }, "Create a key with “polymux keys add”. On the server’s machine, you can use the first line of ~/.local/state/polymux/local-key. This tab stores the key until you close it."),
		make("label", { for: "key-input" }, "API key"),
		make("div.row", input, show),
		words,
		make(
			"div.actions",
			key.get() !== "" && button("Sign out", { class: "danger", onclick: () => done("", "Signed out") }),
			button("Close", { class: "quiet", onclick: () => dialog.close() }),
			button("Continue", { class: "primary", type: "submit" }),
		),
	);
	fill(dialog, form);
	dialog.showModal();
	input.focus();
}

async function tried(input, words) {
	const before = key.get();
	const text = input.value.trim();
	if (/[^!-~]/.test(text)) return complain(input, words, "Invalid API key: it contains spaces or characters that are not ASCII");
	complain(input, words, "");
	key.set(text);
	try {
		await ask("api/v1/operations");
	} catch (error) {
		// 403: the key is valid, but lacks this scope.
		if (error.status !== 403) {
			key.set(before);
			complain(input, words, error.message);
			return;
		}
	}
	done(key.get(), "Signed in");
}

function done(text, message) {
	key.set(text);
	dialog.close();
	announce(message);
	changed();
}
