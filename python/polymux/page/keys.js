// Keys of the server: made, changed, rotated, removed. What a key is, is shown this once.

import { announce, button, copyButton, fill, make } from "./dom.js";
import { ask, key } from "./server.js";

const QUOTAS = {
	requests_per_minute: "Requests a minute",
	concurrent: "Requests at once",
	max_estimate_s: "Longest work, in s",
	expires_in_days: "Ends after days",
};
/** Method and path behind the key's, whether there is a form, and what it means. */
export const DEEDS = {
	Make: ["POST", "", true, "Give it no more than it needs."],
	Change: ["PATCH", "", true, "It counts from its next request on."],
	Rotate: ["POST", "/rotate", false, "It gets a new key and keeps jobs, scopes and quotas. The old one opens nothing from now on."],
	Remove: ["DELETE", "", false, "It opens nothing from now on, and nobody can ask for its jobs any more."],
};

function inputs(scopes, one) {
	const field = (name, words, more) => make("label.field", words, make("input", { name, value: one[name] ?? "", autocomplete: "off", ...more }));
	const boxes = scopes.map((value) => make("label.check", make("input", { type: "checkbox", name: "scopes", value, checked: one.scopes?.includes(value) }), value));
	const numbers = Object.entries(QUOTAS).map(([name, words]) => field(name, words, { type: "number", min: 0, step: "any", placeholder: "no limit" }));
	return [field("name", "Name"), make("fieldset", make("legend", "May use: all, where nothing is ticked"), make("div.grid", ...boxes)), make("div.grid", ...numbers)];
}

/** An empty field lifts a limit; that of days leaves the end as it is. */
function values(form) {
	const scopes = form.getAll("scopes");
	const found = { name: form.get("name"), scopes: scopes.length ? scopes : null };
	for (const name in QUOTAS) found[name] = form.get(name) === "" ? null : Number(form.get(name));
	if (!found.expires_in_days) delete found.expires_in_days;
	return found;
}

/** Asks before a deed is done to a key, and shows what came of it; `changed` is called at the end. */
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
			const told = await ask(`api/v1/administration/keys${one.id ? `/${one.id}` : ""}${path}`, { method, body });
			announce(`${title}: done`);
			if (told?.key) show(told);
			else dialog.close();
		} catch (failed) {
			error.textContent = failed.message;
			submit.disabled = false;
		}
	}
	function show(told) {
		// The page goes on under its own.
		if (one.own) key.set(told.key);
		const input = make("input.mono", { "aria-label": "The key", readonly: true, value: told.key });
		fill(form, make("h2", `The key of ${told.name}`), make("p.hint", "Copy it now: nobody is shown it again."), make("div.row", input, copyButton(() => told.key)), make("div.actions", close("Done", "primary")));
		input.focus();
		input.select();
	}
	document.body.append(dialog);
	dialog.showModal();
}
