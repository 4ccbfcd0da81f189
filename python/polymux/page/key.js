// Signing in: a dialog that checks an API key, and links with a key.

import { confirmed } from "./dialogs.js";
import { announce, button, complain, fill, icon, make } from "./dom.js";
import { ask, key } from "./server.js";
import { t } from "./texts.js";

const LINK = /^#key=(.*)$/s;

const dialog = document.getElementById("key-dialog");
let changed = () => {};

export function onKey(call) {
	changed = call;
}

export function drawKeyButton(place) {
	const there = key.get() !== "";
	fill(place, icon("key"), make("span", t(there ? "keyButton" : "enterKey")));
	place.setAttribute("aria-label", t(there ? "keyChange" : "enterKey"));
	place.onclick = () => openKeyDialog();
}

/**
 * Signs in with the key of a link (`#key=...`), and removes the key from the URL. Asks first if that
 * replaces another key: a link may come from anyone. Returns whether the URL had a key.
 */
export async function signInByLink() {
	const text = LINK.exec(location.hash)?.[1];
	if (text === undefined) return false;
	history.replaceState(null, "", `${location.pathname}${location.search}#/`);
	const isOther = key.get() !== "" && key.get() !== text;
	if (!/^[\w-]+$/.test(text)) return true;
	if (!isOther || (await confirmed(t("replaceKeyQuestion"), t("continue")))) key.set(text, key.isRemembered());
	return true;
}

/** Opens the dialog. `error` is the server's error for the previous key. */
export function openKeyDialog(error = null) {
	if (dialog.open) return;
	const words = make("p.field-error", { id: "key-error", role: "alert" }, error?.message ?? "");
	const input = make("input", {
		id: "key-input", type: "password", autocomplete: "off", spellcheck: "false", required: true,
		placeholder: "pmx_…", "aria-describedby": "key-hint key-error",
	});
	const show = button(t("show"), {
		class: "quiet",
		onclick() {
			input.type = input.type === "password" ? "text" : "password";
			show.lastChild.textContent = t(input.type === "password" ? "show" : "hide");
		},
	});
	const remember = make("input", { type: "checkbox", checked: key.isRemembered() });
	const form = make(
		"form.stack",
		{ novalidate: true, onsubmit: () => tried(input, words, remember.checked) },
		make("h2", { id: "key-title" }, t("keyTitle")),
		make("p.hint", { id: "key-hint" }, t("keyHint")),
		make("label", { for: "key-input" }, t("apiKey")),
		make("div.row", input, show),
		words,
		make("label.check", remember, make("span", t("remember"), make("span.note", ` ${t("rememberHint")}`))),
		make(
			"div.actions",
			key.get() !== "" && button(t("signOut"), { class: "danger", onclick: () => done("", false, t("signedOut")) }),
			button(t("close"), { class: "quiet", onclick: () => dialog.close() }),
			button(t("continue"), { class: "primary", type: "submit" }),
		),
	);
	fill(dialog, form);
	dialog.showModal();
	input.focus();
}

async function tried(input, words, isRemembered) {
	const [before, wasRemembered] = [key.get(), key.isRemembered()];
	const text = input.value.trim();
	if (/[^!-~]/.test(text)) return complain(input, words, t("keyNotAscii"));
	complain(input, words, "");
	key.set(text, isRemembered);
	try {
		await ask("api/v1/operations");
	} catch (error) {
		// 403: the key is valid, but lacks this scope.
		if (error.status !== 403) {
			key.set(before, wasRemembered);
			complain(input, words, error.message);
			return;
		}
	}
	done(text, isRemembered, t("signedIn"));
}

function done(text, isRemembered, message) {
	key.set(text, isRemembered);
	dialog.close();
	announce(message);
	changed();
}
