// Form controls for the fields of the contract: input, value, hint and error.

import { inline } from "./markdown.js";
import { button, complain, fill, icon, make, player } from "./dom.js";
import { bytes } from "./text.js";
import { t } from "./texts.js";

const ACCEPTED = { audio: "audio/*,video/*", image: "image/*", video: "video/*" };
/** Names of text fields that get a multi-line input. */
const LONG = /prompt|^text$/;
let count = 0;

/** Describes the allowed values: the range with its unit, and the step. */
function bounds(field) {
	const known = (one) => (one ?? null) !== null;
	const [low, high] = [field.minimum, field.maximum];
	const unit = field.unit ?? "";
	const withUnit = (words) => (unit ? `${words} ${unit}` : words);
	const range = {
		"true true": () => (field.exclusive_minimum ? t("aboveAndAtMost", { low, high }) : field.exclusive_maximum ? t("atLeastAndBelow", { low, high }) : t("range", { low, high })),
		"true false": () => t(field.exclusive_minimum ? "above" : "atLeast", { limit: low }),
		"false true": () => t(field.exclusive_maximum ? "below" : "atMost", { limit: high }),
		"false false": () => "",
	}[`${known(low)} ${known(high)}`]();
	const step = field.multiple_of && t("step", { step: field.multiple_of });
	return [range ? withUnit(range) : unit && t("inUnit", { unit }), step].filter(Boolean).join(", ");
}

function numbered(field, more) {
	const [step, inputmode] = field.type === "integer" ? [1, "numeric"] : ["any", "decimal"];
	const min = field.exclusive_minimum ? null : field.minimum;
	const max = field.exclusive_maximum ? null : field.maximum;
	const input = make("input", { type: "number", inputmode, min, max, step: field.multiple_of ?? step, ...more });
	return { input, read: () => (input.value === "" ? undefined : Number(input.value)) };
}

function chosen(field, more) {
	const none = field.default === null && make("option", { value: "" }, t(field.required ? "choose" : "notSet"));
	const options = field.choices.map((one) => make("option", { value: String(one), selected: one === field.default }, field.labels?.[one] ?? String(one)));
	const input = make("select", more, none, ...options);
	const read = () => {
		const one = field.choices.find((choice) => String(choice) === input.value);
		return one === undefined || one === field.default ? undefined : one;
	};
	return { input, read };
}

function checked(field, more) {
	const input = make("input", { type: "checkbox", checked: field.default === true, ...more });
	return { input, read: () => (input.checked === (field.default === true) ? undefined : input.checked), beside: true };
}

function written(field, more) {
	const long = LONG.test(field.name);
	const kind = field.kind === "url" ? "url" : "text";
	const input = long ? make("textarea", { rows: 3, ...more }) : make("input", { type: kind, spellcheck: "false", autocomplete: "off", ...more });
	if (kind === "url") input.placeholder ||= field.schemes?.includes("https") ? "https://" : "";
	return { input, read: () => (input.value === "" ? undefined : input.value) };
}

function structured(field, more) {
	const input = make("textarea.mono", { rows: 4, spellcheck: "false", ...more });
	const read = () => {
		if (input.value.trim() === "") return undefined;
		try {
			return JSON.parse(input.value);
		} catch (error) {
			throw Object.assign(new Error(t("invalidJson", { name: field.name, reason: error.message })), { param: field.name });
		}
	};
	return { input, read };
}

/** A list of chat messages, each with a role and a content. */
function messages(field, more) {
	const rows = make("div.stack");
	const roles = field.items.object.fields.find((one) => one.name === "role").choices ?? ["system", "user", "assistant"];
	const add = (role, first) => {
		const who = make("select", { "aria-label": t("role") }, ...roles.map((one) => make("option", { value: one, selected: one === role }, one)));
		const content = make("textarea", { rows: 2, required: true, ...(first ? more : { "aria-label": t("content") }) });
		const row = make("div.message-row", who, content, button(t("removeMessage"), { name: "cross", small: true, onclick: () => row.remove() }));
		rows.append(row);
		return content;
	};
	const input = add("user", true);
	const element = make("div.stack", rows, button(t("addMessage"), { name: "plus", class: "quiet", onclick: () => add("user").focus() }));
	const read = () => [...rows.children].map((row) => ({ role: row.children[0].value, content: row.children[1].value }));
	return { input, element, read };
}

/** A file input with drag and drop and a preview. */
function filed(field, more) {
	const input = make("input.unseen", { type: "file", accept: ACCEPTED[field.media], ...more });
	const shown = make("div.picked");
	const prompt = make("span", make("strong", t("chooseFile")), " ", t("dropFile"));
	const drop = make("div.drop", icon("up"), prompt, shown, input);
	let url = null;
	const draw = () => {
		if (url) URL.revokeObjectURL(url);
		url = null;
		const [file] = input.files;
		drop.classList.toggle("filled", Boolean(file));
		if (!file) return fill(shown);
		url = URL.createObjectURL(file);
		const clear = button(t("removeFile"), { name: "cross", small: true, onclick: () => ((input.value = ""), draw(), input.focus()) });
		fill(shown, preview(file, url), make("span", file.name, make("span.note", ` ${bytes(file.size)}`)), clear);
	};
	input.addEventListener("change", draw);
	drop.addEventListener("click", (event) => !event.target.closest("button, audio, video, input") && input.click());
	for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => (event.preventDefault(), drop.classList.add("over")));
	for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
	drop.addEventListener("drop", (event) => {
		event.preventDefault();
		if (!event.dataTransfer.files.length) return;
		input.files = event.dataTransfer.files;
		draw();
	});
	return { input, element: drop, read: () => input.files[0] };
}

function preview(file, url) {
	const kind = file.type.split("/")[0];
	if (kind === "image") return make("img.thumb", { src: url, alt: "" });
	const shown = { audio: "audio", video: "video.thumb" }[kind];
	return shown ? player(shown, url, t("playFile", { name: file.name })) : icon("check");
}

function kindOf(field) {
	if (field.type === "file") return filed;
	if (field.name === "messages") return messages;
	if (/array|object/.test(field.type)) return structured;
	if (field.choices) return chosen;
	if (field.type === "boolean") return checked;
	return field.type === "integer" || field.type === "number" ? numbered : written;
}

/** The control of a field. `read` returns undefined for an empty value: the server then uses the default. */
export function control(field) {
	const id = `field-${++count}`;
	const known = field.default ?? field.upstream_default ?? {};
	const isShown = typeof known !== "object" && !field.choices && field.type !== "boolean";
	const more = {
		id,
		name: field.name,
		required: field.required,
		"aria-describedby": `${id}-hint ${id}-error`,
		placeholder: isShown && String(known),
	};
	const { input, element = input, read, beside } = kindOf(field)(field, more);
	const label = make("label", { for: id }, field.title, field.required && make("span.needed", " ", t("required")));
	const limits = bounds(field);
	const hint = make("p.hint", { id: `${id}-hint` }, inline(field.doc ?? ""), limits && make("span", ` ${limits}.`));
	const error = make("p.field-error", { id: `${id}-error` });
	const parts = beside ? [make("div.check", input, label)] : [label, element];
	const fail = (message) => complain(input, error, message);
	const whole = make("div.field", { dataset: { field: field.name } }, ...parts, hint, error);
	if (/file|array|object/.test(field.type) || LONG.test(field.name)) whole.classList.add("wide-field");
	return { name: field.name, element: whole, read, fail };
}
