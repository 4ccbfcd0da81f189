// Forms for the variants of operations. The main inputs come first, then settings, then the collapsed
// extension fields.

import { fill, icon, make } from "./dom.js";
import { control } from "./fields.js";
import { t } from "./texts.js";

const FIRST = /prompt|^image$|^mask$|^file$|^audio$|^url$|^messages$/;
const NAMED = /(?:^|: )(\w+)(?=[=:[])/g;
/** The names of the texts about rules between two fields. */
const RULES = { exactly_one: "ruleExactlyOne", at_most_one: "ruleAtMostOne", needs: "ruleNeeds", ascending: "ruleAscending" };
/** Presets of sizes: width by height. Each has about as many pixels as the default. */
const RATIOS = [[1, 1], [4, 3], [3, 4], [16, 9], [9, 16]];

function isFirst(field, operation, rules) {
	if (field.extension) return false;
	const grouped = rules.some((one) => one.rule === "exactly_one" && one.fields.includes(field.name));
	return field.required || field.name === operation.first || grouped || FIRST.test(field.name);
}

function folded(title, controls) {
	const many = make("span.note", ` ${controls.length}`);
	return controls.length > 0 && make("details.fold", make("summary", title, many), make("div.grid", ...controls.map((one) => one.element)));
}

/** Sizes within the bounds of both fields. */
function presets(width, height) {
	const step = width.multiple_of ?? 1;
	const pixels = width.default * height.default;
	const found = RATIOS.map(([across, down]) => {
		const wide = Math.sqrt((pixels * across) / down);
		const shrunk = Math.min(1, width.maximum / wide, (height.maximum * across) / (wide * down));
		const rounded = (length) => Math.round((length * shrunk) / step) * step;
		return { ratio: `${across}:${down}`, size: [rounded(wide), rounded((wide * down) / across)] };
	});
	const fits = ([one, other]) => one >= width.minimum && other >= height.minimum;
	return found.filter(({ size }) => fits(size));
}

/** A choice of sizes that fills in the width and the height. */
function sizeChoice(width, height) {
	const sizes = presets(width.field, height.field);
	const label = ([one, other]) => `${one} × ${other}`;
	const options = sizes.map(({ ratio, size }) => make("option", { value: size.join(" ") }, `${ratio} · ${label(size)}`));
	const select = make("select", { id: `${width.input.id}-size` }, make("option", { value: "" }, t("customSize")), ...options);
	const read = (one) => String(one.read() ?? one.field.default);
	const follow = () => {
		const now = `${read(width)} ${read(height)}`;
		select.value = sizes.some(({ size }) => size.join(" ") === now) ? now : "";
	};
	select.addEventListener("change", () => {
		if (!select.value) return;
		const size = select.value.split(" ");
		for (const [n, one] of [width, height].entries()) {
			one.restore(Number(size[n]) === one.field.default ? undefined : size[n]);
			one.input.dispatchEvent(new Event("input", { bubbles: true }));
		}
	});
	for (const one of [width, height]) one.element.addEventListener("input", follow);
	return { element: make("div.field", make("label", { for: select.id }, t("size")), select), follow };
}

/** Two fields of which exactly one is needed, a file and a URL: a choice shows one of them. */
function sourceChoice(controls, inputs) {
	const labels = { file: t("file"), url: t("url") };
	const file = controls.find((one) => one.field.type === "file");
	const ordered = [file, ...controls.filter((one) => one !== file)];
	const id = file.input.id;
	const options = ordered.map((one) => {
		const input = make("input", { type: "radio", name: `${id}-source`, id: `${id}-${one.name}`, onchange: () => show(one, true) });
		return { one, input, element: make("span.tab", input, make("label", { for: input.id }, one === file ? labels.file : labels.url)) };
	});
	let current = null;
	function show(chosen, isByUser = false) {
		current = chosen;
		for (const { one, input } of options) {
			input.checked = one === chosen;
			one.element.hidden = one !== chosen;
			one.input.required = one === chosen;
			// A hidden field must not stop the form.
			one.input.disabled = one !== chosen;
		}
		if (isByUser) inputs.keep({ source: chosen.name });
	}
	show(ordered.find((one) => one.name === inputs.kept.source) ?? ordered[0]);
	const element = make("fieldset.source", make("legend", t("source")), make("div.tabs", ...options.map((one) => one.element)), ...ordered.map((one) => one.element));
	return { element, isUnused: (one) => ordered.includes(one) && one !== current, show, ordered };
}

/**
 * The form of a variant. `body()` throws the error of the first invalid control. `fail(error)` shows an
 * error at the field that it names, and returns false if the form does not have this field. `inputs`
 * keeps what the user enters.
 */
export function formOf(operation, variant, inputs) {
	const rules = variant.rules ?? [];
	const fields = variant.fields.filter((one) => !one.deprecated);
	const known = new Map(fields.map((one) => [one.name, control(one)]));
	const controls = (test) => fields.filter(test).map((one) => known.get(one.name));
	const first = controls((one) => isFirst(one, operation, rules));
	const settings = controls((one) => !one.extension && !isFirst(one, operation, rules));
	const more = controls((one) => one.extension);
	const extensions = new Set(fields.filter((one) => one.extension).map((one) => one.name));
	const titles = new Map(variant.fields.map((one) => [one.name, `“${one.title}”`]));
	for (const one of known.values()) {
		const kept = inputs.get(one.name);
		if (kept !== undefined) one.restore(kept);
		const keep = () => inputs.set(one.name, one.state());
		for (const kind of ["input", "change"]) one.element.addEventListener(kind, keep);
	}
	const pair = rules.find((one) => one.rule === "exactly_one" && one.fields.some((name) => known.get(name)?.field.type === "file"));
	const source = pair && sourceChoice(pair.fields.map((name) => known.get(name)), inputs);
	const ruled = rules.filter((one) => one !== pair && RULES[one.rule] && one.fields.some((name) => !extensions.has(name)));
	const ruleTexts = ruled.map((one) => t(RULES[one.rule], { first: titles.get(one.fields[0]), second: titles.get(one.fields[1]) }));
	const shownFirst = first.filter((one) => !source?.ordered.includes(one)).map((one) => one.element);
	const [width, height] = ["width", "height"].map((name) => known.get(name));
	const size = width?.field.default && height?.field.default ? sizeChoice(width, height) : null;
	size?.follow();
	const element = make(
		"div.stack",
		ruleTexts.length > 0 && make("ul.rules", ...ruleTexts.map((one) => make("li", one))),
		make("div.stack", source?.element, ...shownFirst),
		size?.element,
		settings.length > 0 && settings.length <= 6 && make("div.grid", ...settings.map((one) => one.element)),
		settings.length > 6 && folded(t("settings"), settings),
		folded(t("moreOptions"), more),
	);
	const reveal = (one) => {
		if (source?.isUnused(one)) source.show(one);
		one.element.closest("details")?.setAttribute("open", "");
	};
	// The browser cannot show what is wrong with a field in a closed fold.
	element.addEventListener("invalid", (event) => event.target.closest("details")?.setAttribute("open", ""), true);
	const used = () => [...known.values()].filter((one) => !source?.isUnused(one));
	return {
		element,
		controls: known,
		/** The values of the fields that are set. */
		values: () => Object.fromEntries(used().map((one) => [one.name, one.read()]).filter(([, value]) => value !== undefined)),
		body() {
			return bodyOf(variant, this.values());
		},
		fail(error) {
			for (const one of known.values()) one.fail("");
			// Some errors name the field only in the message: "download_video: resolution=...".
			const named = [...(error?.message.matchAll(NAMED) ?? [])].map((one) => one[1]);
			const name = error && [error.param?.split(/[.[]/)[0], ...named].find((one) => known.has(one));
			const found = name && known.get(name);
			if (!found) return false;
			reveal(found);
			found.fail(error.message);
			return true;
		},
	};
}

function bodyOf(variant, values) {
	if (variant.encoding === "json") return values;
	const form = new FormData();
	for (const [name, value] of Object.entries(values)) form.append(name, value instanceof File ? value : String(value));
	return form;
}

/** Radio buttons for the variants of an operation, one for each model. */
export function variantChoice(operation, chosen, onChoice) {
	const models = operation.variants;
	if (models.length === 1) {
		return models[0].model && make("p.note", t("model"), " ", make("code", models[0].model));
	}
	const options = models.map((one, n) => {
		const input = make("input", { type: "radio", name: "variant", id: `variant-${n}`, checked: one === chosen, onchange: () => onChoice(one) });
		const words = make("label", { for: `variant-${n}` }, make("strong", one.model), make("span.note", one.summary ?? ""));
		return make("div.choice", input, words);
	});
	return make("fieldset.choices", make("legend", t("model")), ...options);
}

/** A progress bar for an upload. `tell(sent, total)` updates it; both are numbers of bytes. */
export function uploadBar() {
	const bar = make("progress", { max: 1, value: 0, "aria-label": t("upload") });
	const words = make("span.note", t("upload"));
	const element = make("div.uploading", icon("up"), bar, words);
	const tell = (done, total) => {
		bar.value = total ? done / total : 0;
		fill(words, done < total ? t("uploading", { percent: Math.floor((100 * done) / total) }) : t("uploadDone"));
	};
	return { element, tell };
}
