// Looks up the texts of the page in the catalog of its language. Only the English catalog is always loaded.

import { ENGLISH } from "./texts-en.js";

const KEPT = "polymux.language";
/** The languages by their own names. */
export const LANGUAGES = { en: "English", de: "Deutsch" };
const LOADED = { de: () => import("./texts-de.js") };

const listeners = new Set();
/** The language, its catalog, and the catalog of the operations, which is empty for English. */
let current = { language: "en", texts: ENGLISH, operations: {} };

/** The text with this name. `values` are its parts that vary. Call this when you draw, not when a module loads. */
export function t(name, values) {
	const text = current.texts[name] ?? ENGLISH[name];
	if (text === undefined) throw new Error(`unknown text: ${name}`);
	return typeof text === "function" ? text(values) : text;
}

/** The code of the language, such as "en". */
export function language() {
	return current.language;
}

/** A number as the language writes it, with at most this number of decimals. */
export function number(value, decimals = 0) {
	return value.toLocaleString(current.language, { maximumFractionDigits: decimals });
}

/** Calls `call()` after each change of the language. */
export function onLanguage(call) {
	listeners.add(call);
}

/** Changes the language of the page. The browser remembers it. */
export async function setLanguage(name) {
	localStorage.setItem(KEPT, name);
	await load(name);
	for (const call of listeners) call();
}

/** The language that the user chose, or the first of the browser that the page has. */
function preferred() {
	const wanted = [localStorage.getItem(KEPT) ?? "", ...navigator.languages];
	return wanted.map((one) => one.split("-")[0]).find((one) => Object.hasOwn(LANGUAGES, one)) ?? "en";
}

async function load(name) {
	try {
		const { texts, operations } = await (LOADED[name]?.() ?? { texts: ENGLISH, operations: {} });
		current = { language: name, texts, operations };
	} catch {
		// The server is unreachable. The page stays in its language.
	}
	document.documentElement.lang = current.language;
}

/** Translates the titles, descriptions and choices of operations, as the server describes them. */
export function translated(operations) {
	return operations.map((operation) => {
		const known = current.operations[operation.name] ?? {};
		const variants = operation.variants.map((variant) => ({
			...variant,
			summary: known.variants?.[variant.id] ?? variant.summary,
			fields: variant.fields.map((field) => translatedField(field, known.fields?.[`${variant.id ?? ""}.${field.name}`] ?? known.fields?.[field.name])),
		}));
		return { ...operation, title: known.title ?? operation.title, summary: known.summary ?? operation.summary, variants };
	});
}

function translatedField(field, [title, doc] = []) {
	const labels = current.texts.choices[field.name] ?? ENGLISH.choices[field.name] ?? {};
	return { ...field, labels, title: title ?? field.title, doc: doc ?? field.doc };
}

// Modules that import this one wait for the catalog.
await load(preferred());
