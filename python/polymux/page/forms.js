// Forms for the variants of operations. The main inputs come first, then settings, then the collapsed
// extension fields.

import { fill, icon, make } from "./dom.js";
import { control } from "./fields.js";
import { t } from "./texts.js";

const FIRST = /prompt|^image$|^mask$|^file$|^audio$|^url$|^messages$/;

const NAMED = /(?:^|: )(\w+)(?=[=:[])/g;

/** The names of the texts about rules between two fields. */
const RULES = { exactly_one: "ruleExactlyOne", at_most_one: "ruleAtMostOne", needs: "ruleNeeds", ascending: "ruleAscending" };

function isFirst(field, operation, rules) {
	if (field.extension) return false;
	const grouped = rules.some((one) => one.rule === "exactly_one" && one.fields.includes(field.name));
	return field.required || field.name === operation.first || grouped || FIRST.test(field.name);
}

function folded(title, controls) {
	const many = make("span.note", ` ${controls.length}`);
	return controls.length > 0 && make("details.fold", make("summary", title, many), make("div.grid", ...controls.map((one) => one.element)));
}

/**
 * The form of a variant. `body()` throws the error of the first invalid control. `fail(error)` shows an
 * error at the field that it names, and returns false if the form does not have this field.
 */
export function formOf(operation, variant) {
	const rules = variant.rules ?? [];
	const fields = variant.fields.filter((one) => !one.deprecated);
	const known = new Map(fields.map((one) => [one.name, control(one)]));
	const controls = (test) => fields.filter(test).map((one) => known.get(one.name));
	const first = controls((one) => isFirst(one, operation, rules));
	const settings = controls((one) => !one.extension && !isFirst(one, operation, rules));
	const more = controls((one) => one.extension);
	const extensions = new Set(fields.filter((one) => one.extension).map((one) => one.name));
	const titles = new Map(variant.fields.map((one) => [one.name, `“${one.title}”`]));
	const ruleTexts = rules.filter((one) => one.fields.some((name) => !extensions.has(name))).filter((one) => RULES[one.rule]).map((one) => t(RULES[one.rule], { first: titles.get(one.fields[0]), second: titles.get(one.fields[1]) }));
	const element = make(
		"div.stack",
		ruleTexts.length > 0 && make("ul.rules", ...ruleTexts.map((one) => make("li", one))),
		make("div.grid", ...first.map((one) => one.element)),
		settings.length > 0 && settings.length <= 6 && make("div.grid", ...settings.map((one) => one.element)),
		settings.length > 6 && folded(t("settings"), settings),
		folded(t("moreOptions"), more),
	);
	return {
		element,
		body: () => bodyOf(variant, [...known.values()]),
		fail(error) {
			for (const one of known.values()) one.fail("");
			// Some errors name the field only in the message: "download_video: resolution=...".
			const named = [...(error?.message.matchAll(NAMED) ?? [])].map((one) => one[1]);
			const name = error && [error.param?.split(/[.[]/)[0], ...named].find((one) => known.has(one));
			const found = name && known.get(name);
			if (!found) return false;
			found.element.closest("details")?.setAttribute("open", "");
			found.fail(error.message);
			return true;
		},
	};
}

function bodyOf(variant, controls) {
	const given = controls.map((one) => [one.name, one.read()]).filter(([, value]) => value !== undefined);
	if (variant.encoding === "json") return Object.fromEntries(given);
	const form = new FormData();
	for (const [name, value] of given) form.append(name, value instanceof File ? value : String(value));
	return form;
}

/** Radio buttons for the variants of an operation, one for each model. */
export function variantChoice(operation, onChoice) {
	const models = operation.variants;
	if (models.length === 1) {
		return models[0].model && make("p.note", t("model"), " ", make("code", models[0].model));
	}
	const options = models.map((one, n) => {
		const input = make("input", { type: "radio", name: "variant", id: `variant-${n}`, checked: n === 0, onchange: () => onChoice(one) });
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
