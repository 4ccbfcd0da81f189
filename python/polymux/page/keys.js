// Dialogs to create, change, rotate and revoke API keys. The server sends a key only when it creates it.

import { announce, button, complain, copyButton, fill, make } from "./dom.js";
import { ask, key } from "./server.js";
import { moment } from "./text.js";
import { t } from "./texts.js";

const QUOTAS = {
	requests_per_minute: "requestsPerMinute",
	concurrent: "concurrentRequests",
	max_estimate_s: "maximumJobTime",
};
/** Choices for the lifetime of a key in days. */
const LIFETIMES = [1, 7, 30, 90, 365];
const DEFAULT_LIFETIME = 90;
/** For each action: the names of its texts, HTTP method, path suffix, and whether it has a form. */
export const DEEDS = {
	create: { name: "createKey", hint: "createKeyHint", method: "POST", path: "", hasForm: true },
	change: { name: "changeKey", hint: "changeKeyHint", method: "PATCH", path: "", hasForm: true },
	rotate: { name: "rotateKey", hint: "rotateKeyHint", method: "POST", path: "/rotate", hasForm: false },
	revoke: { name: "revokeKey", hint: "revokeKeyHint", method: "DELETE", path: "", hasForm: false },
};

function inputs(scopes, one, isNew) {
	const field = (name, words, more) => make("label.field", words, make("input", { name, value: one[name] ?? "", autocomplete: "off", ...more }));
	const every = new Set([...scopes, ...(one.scopes ?? [])]); // A key file can have scopes of an older version.
	const boxes = [...every].map((value) => make("label.check", make("input", { type: "checkbox", name: "scopes", value, checked: one.scopes?.includes(value) }), value));
	const all = make("input", { type: "checkbox", name: "all", checked: !isNew && one.scopes === null, onchange: draw });
	const some = make("div.grid", ...boxes);
	function draw() {
		for (const box of some.querySelectorAll("input")) box.disabled = all.checked;
	}
	draw();
	const numbers = Object.entries(QUOTAS).map(([name, words]) => field(name, t(words), { type: "number", min: 0, step: "any", placeholder: t("noLimit") }));
	const error = make("p.field-error", { id: "scopes-error", role: "alert" });
	return [
		field("name", t("name"), { required: true }),
		make("fieldset.stack", { "aria-describedby": "scopes-error" }, make("legend", t("scopesRequired")), make("label.check", all, t("everyScope")), some, error),
		make("div.grid", ...numbers, expiry(one, isNew)),
	];
}

function expiry(one, isNew) {
	const days = LIFETIMES.map((value) => make("option", { value, selected: isNew && value === DEFAULT_LIFETIME }, t("days", { count: value })));
	const kept = one.expires_at ? moment(one.expires_at) : t("never");
	const options = [!isNew && make("option", { value: "keep" }, t("keepExpiry", { when: kept })), ...days, make("option", { value: "" }, t("never"))];
	return make("label.field", t("expiresAfter"), make("select", { name: "expires_in_days" }, ...options.filter(Boolean)));
}

/** The request body. An empty quota means no limit. Null if no scope is selected. */
function values(form) {
	const scopes = form.has("all") ? null : form.getAll("scopes");
	if (scopes?.length === 0) return null;
	const found = { name: form.get("name"), scopes };
	for (const name in QUOTAS) found[name] = form.get(name) === "" ? null : Number(form.get(name));
	const days = form.get("expires_in_days");
	if (days !== "keep") found.expires_in_days = days ? Number(days) : null;
	return found;
}

/** Opens the dialog of an action on a key and shows the result. Calls `changed` when it closes. */
export function openDeed(deed, { scopes }, changed, one = {}) {
	const { name, hint, method, path, hasForm } = DEEDS[deed];
	const title = one.name ? t("keyAction", { action: t(name), name: one.name }) : t("createAKey");
	const error = make("p.field-error", { role: "alert" });
	const close = (words, kind) => button(words, { class: kind, onclick: () => dialog.close() });
	const submit = button(t(name), { class: hasForm ? "primary" : "danger", type: "submit" });
	const form = make("form.stack", { novalidate: true, onsubmit }, make("h2", title), make("p.hint", t(hint)), hasForm && inputs(scopes, one, deed === "create"), error, make("div.actions", close(t("close"), "quiet"), submit));
	const dialog = make("dialog", { "aria-label": title, onclose }, form);

	function onclose() {
		dialog.remove();
		changed();
	}
	async function onsubmit() {
		const body = hasForm ? values(new FormData(form)) : undefined;
		if (hasForm) complain(form.querySelector("[name=all]"), form.querySelector("#scopes-error"), body ? "" : t("noScope"));
		if (body === null) return;
		submit.disabled = true;
		try {
			const result = await ask(`api/v1/administration/keys${one.id ? `/${one.id}` : ""}${path}`, { method, body });
			announce(t("keyActionDone", { title }));
			if (result?.key) show(result);
			else dialog.close();
		} catch (failed) {
			error.textContent = failed.message;
			submit.disabled = false;
		}
	}
	function show(result) {
		// The key of this page was rotated: continue with the new key.
		if (one.own) key.set(result.key, key.isRemembered());
		const input = make("input.mono", { "aria-label": t("apiKey"), readonly: true, value: result.key });
		fill(form, make("h2", t("newKey", { name: result.name })), make("p.hint", t("newKeyHint")), make("div.row", input, copyButton(() => result.key)), make("div.actions", close(t("done"), "primary")));
		input.focus();
		input.select();
	}
	document.body.append(dialog);
	dialog.showModal();
}
