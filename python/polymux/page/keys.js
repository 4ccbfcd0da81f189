// Dialogs to create, change, rotate and revoke API keys. The server sends a key only when it creates it.

import { announce, button, copyButton, fill, make } from "./dom.js";
import { ask, key } from "./server.js";

const QUOTAS = {
	requests_per_minute: "Requests per minute",
	concurrent: "Concurrent requests",
	max_estimate_s: "Maximum job duration (s)",
	expires_in_days: "Expires after (days)",
};
/** For each action: HTTP method, path suffix, whether it has a form, and its hint. */
export const DEEDS = {
	Create: ["POST", "", true, "Select only the scopes that the key needs."],
	Change: ["PATCH", "", true, "Changes apply from the next request with this key."],
	Rotate: ["POST", "/rotate", false, "Creates a new key with the same jobs, scopes and quotas. The old key stops working immediately."],
	Revoke: ["DELETE", "", false, "This key stops working immediately, and its jobs become inaccessible."],
};

function inputs(scopes, one) {
	const field = (name, words, more) => make("label.field", words, make("input", { name, value: one[name] ?? "", autocomplete: "off", ...more }));
	const every = new Set([...scopes, ...(one.scopes ?? [])]); // A key file can have scopes of an older version.
	const boxes = [...every].map((value) => make("label.check", make("input", { type: "checkbox", name: "scopes", value, checked: one.scopes?.includes(value) }), value));
	const numbers = Object.entries(QUOTAS).map(([name, words]) => field(name, words, { type: "number", min: 0, step: "any", placeholder: "no limit" }));
	return [field("name", "Name"), make("fieldset", make("legend", "Scopes (if you select none: all, including administration)"), make("div.grid", ...boxes)), make("div.grid", ...numbers)];
}

/** The request body. An empty quota means no limit; empty days keep the current expiry. */
function values(form) {
	const scopes = form.getAll("scopes");
	const found = { name: form.get("name"), scopes: scopes.length ? scopes : null };
	for (const name in QUOTAS) found[name] = form.get(name) === "" ? null : Number(form.get(name));
	if (!found.expires_in_days) delete found.expires_in_days;
	return found;
}

/** Opens the dialog of an action on a key and shows the result. Calls `changed` when it closes. */
export function openDeed(deed, { scopes }, changed, one = {}) {
	const [method, path, hasForm, words] = DEEDS[deed];
	const title = `${deed} ${one.name ?? "key"}`;
	const error = make("p.field-error", { role: "alert" });
	const close = (words, kind) => button(words, { class: kind, onclick: () => dialog.close() });
	const submit = button(deed, { class: hasForm ? "primary" : "danger", type: "submit" });
	const form = make("form.stack", { novalidate: true, onsubmit }, make("h2", title), make("p.hint", words), hasForm && inputs(scopes, one), error, make("div.actions", close("Close", "quiet"), submit));
	const dialog = make("dialog", { "aria-label": title, onclose }, form);

	function onclose() {
		dialog.remove();
		changed();
	}
	async function onsubmit() {
		submit.disabled = true;
		try {
			const body = hasForm ? values(new FormData(form)) : undefined;
			const result = await ask(`api/v1/administration/keys${one.id ? `/${one.id}` : ""}${path}`, { method, body });
			announce(`${title}: done`);
			if (result?.key) show(result);
			else dialog.close();
		} catch (failed) {
			error.textContent = failed.message;
			submit.disabled = false;
		}
	}
	function show(result) {
		// The key of this page was rotated: continue with the new key.
		if (one.own) key.set(result.key);
		const input = make("input.mono", { "aria-label": "API key", readonly: true, value: result.key });
		fill(form, make("h2", `API key “${result.name}”`), make("p.hint", "Copy the key now. It will not be shown again."), make("div.row", input, copyButton(() => result.key)), make("div.actions", close("Done", "primary")));
		input.focus();
		input.select();
	}
	document.body.append(dialog);
	dialog.showModal();
}
