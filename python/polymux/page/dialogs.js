// Questions in a dialog.

import { button, make } from "./dom.js";
import { t } from "./texts.js";

/** Asks for a text. Resolves with null if the user cancels. */
export function askFor(title, label, value) {
	const input = make("input", { id: "dialog-input", value, maxlength: "200", required: true });
	return shown(title, [make("label", { for: input.id }, label), input], t("save"), () => input.value.trim() || null, input);
}

/** Asks whether to do something. Resolves with whether the user agreed. */
export async function confirmed(question, action) {
	return (await shown(question, [], action, () => true)) === true;
}

function shown(title, content, action, read, first = null) {
	const { promise, resolve } = Promise.withResolvers();
	let result = null;
	const agree = button(action, { class: first ? "primary" : "danger", type: "submit" });
	const form = make(
		"form.stack",
		{
			onsubmit() {
				result = read();
				dialog.close();
			},
		},
		make("h2", { id: "dialog-title" }, title),
		...content,
		make("div.actions", button(t("cancel"), { class: "quiet", onclick: () => dialog.close() }), agree),
	);
	const dialog = make("dialog", { "aria-labelledby": "dialog-title" }, form);
	dialog.addEventListener("close", () => {
		dialog.remove();
		resolve(result);
	});
	document.body.append(dialog);
	dialog.showModal();
	(first ?? agree).focus();
	first?.select();
	return promise;
}
