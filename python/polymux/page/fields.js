// Form controls for the fields of the contract: input, value, hint and error.

import { inline } from "./markdown.js";
import { button, complain, fill, icon, make, player } from "./dom.js";
import { bytes } from "./text.js";
import { t } from "./texts.js";

const ACCEPTED = { audio: "audio/*,video/*", image: "image/*", video: "video/*" };
/** Names of text fields that get a multi-line input. */
const LONG = /prompt|^text$/;
/** A slider for decimals has about this many steps. */
const SLIDER_STEPS = 100;
let count = 0;

const known = (one) => (one ?? null) !== null;
const defaultOf = (field) => field.default ?? field.upstream_default;

/** Describes the allowed values: the range with its unit, and the step. */
function bounds(field) {
	const [low, high] = [field.minimum, field.maximum];
	const unit = field.unit ?? "";
	const withUnit = (words) => (unit ? `${words} ${unit}` : words);
	const range = {
		"true true": () => (field.exclusive_minimum ? t("aboveUpTo", { low, high }) : field.exclusive_maximum ? t("fromBelow", { low, high }) : t("range", { low, high })),
		"true false": () => t(field.exclusive_minimum ? "above" : "minimumIs", { limit: low }),
		"false true": () => t(field.exclusive_maximum ? "below" : "maximumIs", { limit: high }),
		"false false": () => "",
	}[`${known(low)} ${known(high)}`]();
	const step = field.multiple_of && t("step", { step: field.multiple_of });
	return [range ? withUnit(range) : unit && t("inUnit", { unit }), step].filter(Boolean).join(", ");
}

/** The step of a slider: a whole number, or 1, 2 or 5 times a power of ten. */
function sliderStep(field) {
	if (field.multiple_of) return field.multiple_of;
	if (field.type === "integer") return 1;
	const fine = (field.maximum - field.minimum) / SLIDER_STEPS;
	const power = 10 ** Math.floor(Math.log10(fine));
	const factor = [5, 2, 1].find((one) => one * power <= fine * 1.0001);
	return Number((factor * power).toPrecision(1));
}

/** A number. With both bounds and a default, it also has a slider. */
function numbered(field, more) {
	const [step, inputmode] = field.type === "integer" ? [1, "numeric"] : ["any", "decimal"];
	const min = field.exclusive_minimum ? null : field.minimum;
	const max = field.exclusive_maximum ? null : field.maximum;
	const input = make("input", { type: "number", inputmode, min, max, step: field.multiple_of ?? step, ...more });
	const control = {
		input,
		read: () => (input.value === "" ? undefined : Number(input.value)),
		state: () => input.value || undefined,
		restore: (value) => (input.value = value ?? ""),
	};
	const usual = defaultOf(field);
	if (typeof usual !== "number" || !known(field.minimum) || !known(field.maximum)) return control;
	const fine = sliderStep(field);
	const slider = make("input.slider", { type: "range", min: field.exclusive_minimum ? fine : field.minimum, max: field.maximum, step: fine, "aria-label": t("slider", { name: field.title }) });
	const follow = () => (slider.value = input.value === "" ? usual : input.value);
	slider.addEventListener("input", () => (input.value = Number(slider.value) === usual ? "" : slider.value));
	input.addEventListener("input", follow);
	follow();
	return { ...control, element: make("div.slid", slider, input), restore: (value) => (control.restore(value), follow()) };
}

function chosen(field, more) {
	const none = field.default === null && make("option", { value: "" }, t(field.required ? "choose" : "notSet"));
	const options = field.choices.map((one) => make("option", { value: String(one), selected: one === field.default }, field.labels?.[one] ?? String(one)));
	const input = make("select", more, none, ...options);
	const read = () => {
		const one = field.choices.find((choice) => String(choice) === input.value);
		return one === undefined || one === field.default ? undefined : one;
	};
	const restore = (value) => {
		const one = field.choices.includes(value) ? value : field.default;
		input.value = one === null ? "" : String(one);
	};
	return { input, read, state: read, restore };
}

function checked(field, more) {
	const usual = field.default === true;
	const input = make("input", { type: "checkbox", checked: usual, ...more });
	const read = () => (input.checked === usual ? undefined : input.checked);
	return { input, read, state: read, restore: (value) => (input.checked = value ?? usual), beside: true };
}

/** A control whose value is a text. */
function texted(input, read) {
	return { input, read, state: () => input.value || undefined, restore: (value) => (input.value = typeof value === "string" ? value : "") };
}

function written(field, more) {
	const long = LONG.test(field.name);
	const kind = field.kind === "url" ? "url" : "text";
	const input = long ? make("textarea", { rows: 3, ...more }) : make("input", { type: kind, spellcheck: "false", autocomplete: "off", ...more });
	if (kind === "url") input.placeholder ||= field.schemes?.includes("https") ? "https://" : "";
	return texted(input, () => (input.value === "" ? undefined : input.value));
}

/** A list of texts, one per line. */
function lined(field, more) {
	const input = make("textarea", { rows: 2, spellcheck: "false", ...more });
	const lines = () => input.value.split("\n").filter((one) => one !== "");
	return { ...texted(input, () => (lines().length ? lines() : undefined)), hint: "listPerLine" };
}

function structured(field, more) {
	const input = make("textarea.mono", { rows: 4, spellcheck: "false", ...more });
	const read = () => {
		if (input.value.trim() === "") return undefined;
		try {
			return JSON.parse(input.value);
		} catch (error) {
			throw Object.assign(new Error(t("invalidJson", { name: field.title, reason: error.message })), { param: field.name });
		}
	};
	return { ...texted(input, read), hint: "structured" };
}

/** A list of chat messages, each with a role and a content. */
function messages(field, more) {
	const rows = make("div.stack");
	const roles = field.items.object.fields.find((one) => one.name === "role").choices ?? ["system", "user", "assistant"];
	const changed = () => rows.dispatchEvent(new Event("input", { bubbles: true }));
	const add = (role, text, isFirst) => {
		const options = roles.map((one) => make("option", { value: one, selected: one === role }, t("choices").role[one] ?? one));
		const who = make("select", { "aria-label": t("role") }, ...options);
		const content = make("textarea", { rows: 2, required: true, value: text, ...(isFirst ? more : { "aria-label": t("content") }) });
		const remove = () => {
			row.remove();
			changed();
			rows.lastElementChild.children[1].focus();
		};
		const row = make("div.message-row", who, content, !isFirst && button(t("removeMessage"), { name: "cross", small: true, onclick: remove }));
		rows.append(row);
		return content;
	};
	const input = add("user", "", true);
	const element = make("div.stack", rows, button(t("addMessage"), { name: "plus", class: "quiet", onclick: () => (add("user", "").focus(), changed()) }));
	const read = () => [...rows.children].map((row) => ({ role: row.children[0].value, content: row.children[1].value }));
	const state = () => (rows.children.length === 1 && !input.value && read()[0].role === "user" ? undefined : read());
	const restore = (value) => {
		while (rows.children.length > 1) rows.lastElementChild.remove();
		const [first, ...others] = Array.isArray(value) ? value : [{ role: "user", content: "" }];
		rows.children[0].children[0].value = first.role;
		input.value = first.content;
		for (const { role, content } of others) add(role, content);
	};
	return { input, element, read, state, restore };
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
		const clear = button(t("removeFile"), { name: "cross", small: true, onclick: () => (put(null), input.focus()) });
		fill(shown, preview(file, url), make("span", file.name, make("span.note", ` ${bytes(file.size)}`)), clear);
	};
	const put = (file) => {
		const transfer = new DataTransfer();
		if (file) transfer.items.add(file);
		input.files = transfer.files;
		input.dispatchEvent(new Event("change", { bubbles: true }));
	};
	input.addEventListener("change", draw);
	drop.addEventListener("click", (event) => !event.target.closest("button, audio, video, input") && input.click());
	for (const kind of ["dragenter", "dragover"]) drop.addEventListener(kind, (event) => (event.preventDefault(), drop.classList.add("over")));
	for (const kind of ["dragleave", "drop"]) drop.addEventListener(kind, () => drop.classList.remove("over"));
	drop.addEventListener("drop", (event) => {
		event.preventDefault();
		if (event.dataTransfer.files.length) put(event.dataTransfer.files[0]);
	});
	const read = () => input.files[0];
	return { input, element: drop, read, state: read, restore: (file) => (file ?? null) !== (input.files[0] ?? null) && put(file ?? null) };
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
	if (/array/.test(field.type) && field.items?.type === "string") return lined;
	if (field.choices && !/array|object/.test(field.type)) return chosen;
	if (/array|object/.test(field.type)) return structured;
	if (field.type === "boolean") return checked;
	return field.type === "integer" || field.type === "number" ? numbered : written;
}

/**
 * The control of a field. `read` returns undefined for an empty value: the server then uses the default.
 * `state` and `restore` are for storing what the user entered.
 */
export function control(field) {
	const id = `field-${++count}`;
	const usual = defaultOf(field) ?? {};
	const isShown = typeof usual !== "object" && !field.choices && field.type !== "boolean";
	const more = {
		id,
		name: field.name,
		required: field.required,
		"aria-describedby": `${id}-hint ${id}-error`,
		placeholder: isShown && String(usual),
	};
	const { input, element = input, read, state, restore, beside, hint: extra } = kindOf(field)(field, more);
	const label = make("label", { for: id }, field.title, field.required && make("span.needed", " ", t("required")));
	const limits = bounds(field);
	const hint = make("p.hint", { id: `${id}-hint` }, inline(field.doc ?? ""), extra && ` ${t(extra)}`, limits && make("span", ` ${limits}.`));
	const error = make("p.field-error", { id: `${id}-error` });
	const reset = button(t("resetField", { name: field.title }), { name: "again", small: true, hidden: true, onclick: () => (put(undefined), input.dispatchEvent(new Event("input", { bubbles: true })), input.focus()) });
	const hasReset = !field.required && field.type !== "file";
	const head = make("div.field-head", beside ? make("div.check", input, label) : label, hasReset && reset);
	const whole = make("div.field", { dataset: { field: field.name } }, head, !beside && element, hint, error);
	if (/file|array|object/.test(field.type) || LONG.test(field.name)) whole.classList.add("wide-field");
	const mark = () => (reset.hidden = state() === undefined);
	for (const kind of ["input", "change"]) whole.addEventListener(kind, mark);

	function put(value) {
		restore(value);
		mark();
	}
	return { name: field.name, field, element: whole, input, read, state, restore: put, fail: (message) => complain(input, error, message) };
}
