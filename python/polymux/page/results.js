// Renders the outputs of all operations: audio, images, video, text, songs and JSON.

import { copyButton, icon, linkOut, make, player, scrolled } from "./dom.js";
import { comparison, galleryImage } from "./gallery.js";
import { handOver } from "./inputs.js";
import { markdown } from "./markdown.js";
import { own } from "./server.js";
import { songCards } from "./songcards.js";
import { bytes, moment, seconds, words } from "./text.js";
import { number, t } from "./texts.js";
import { transcript } from "./transcript.js";

const KINDS = {
	audio: /\.(mp3|wav|flac|ogg|opus|m4a|aac)$/,
	video: /\.(mp4|webm|mkv|mov|m4v)$/,
	image: /\.(png|jpe?g|webp|gif)$/,
};
/** Whether the file at this path is an image, by its name. */
export const isImage = (path) => KINDS.image.test(path);
/** For each kind of result: the text of the action, the operation, the field, and the variant that has it. */
const USES = {
	image: [["useUpscale", "upscale_image", "image"], ["useEdit", "generate_image", "image", "B"], ["useRead", "read_text", "file"]],
	video: [["useTranscribe", "transcribe", "audio"], ["useConvert", "convert_to_mp3", "file"], ["useVideo", "generate_video", "init_video"]],
	audio: [["useTranscribe", "transcribe", "audio"], ["useIdentify", "identify_song", "file"], ["useConvert", "convert_to_mp3", "file"]],
	text: [["useChat", "chat", "messages"], ["useSummarize", "chat", "messages"]],
};
/** The facts that everybody understands, in their order. The others are in the details. */
const FACTS = {
	duration_s: seconds,
	bytes,
	sample_rate_hz: (value) => `${number(value / 1000, 2)} kHz`,
	channels: (value) => ({ 1: t("mono"), 2: t("stereo") })[value] ?? String(value),
	codec: String,
	language: (value) => languageName(value),
	offset_s: seconds,
	elapsed_s: seconds,
	speed: (value) => t("timesRealTime", { speed: number(value, value < 10 ? 1 : 0) }),
	prompt_tokens: (value) => number(value),
	completion_tokens: (value) => number(value),
	seed: String,
};

/** The name of a language by its code: "en" becomes "English". */
function languageName(code) {
	try {
		return new Intl.DisplayNames([document.documentElement.lang], { type: "language" }).of(code);
	} catch {
		return code;
	}
}

function saved(href, name = "") {
	return make("a.button.quiet", { href, download: name }, icon("down"), make("span", t("download")));
}

/** A menu that hands a result over to another operation. `value` resolves with a file or a text. */
function uses(kind, value) {
	const items = USES[kind].map(([name, operation, field, variant]) => {
		const onclick = async () => handOver(operation, field, await value(name), variant);
		return make("button.quiet", { type: "button", onclick }, t(name));
	});
	const menu = make("details.menu", make("summary.button.quiet", icon("right"), make("span", t("useAsInput"))), make("div.card", ...items));
	menu.addEventListener("keydown", (event) => {
		if (event.key !== "Escape" || !menu.open) return;
		menu.open = false;
		menu.firstChild.focus();
	});
	return menu;
}

/** The file behind a link. */
async function fetched(href) {
	const answer = await fetch(href);
	const blob = await answer.blob();
	return new File([blob], decodeURIComponent(new URL(href).pathname.split("/").at(-1)), { type: blob.type });
}

/** A file on the server: a preview if the browser supports its type, and a download link. */
function file(link, href, { label, input, files }) {
	const url = new URL(href);
	const kind = Object.keys(KINDS).find((one) => KINDS[one].test(url.pathname));
	const alt = typeof input?.prompt === "string" ? input.prompt.slice(0, 200) : label;
	const isUpscaled = kind === "image" && files?.image && !files.mask && input?.prompt_strength === undefined;
	const shown = {
		audio: () => player("audio", href, label),
		video: () => player("video", href, label),
		image: () => (isUpscaled ? comparison(files.image, href, alt) : galleryImage(href, alt)),
	}[kind];
	const end = Number(url.searchParams.get("exp")) * 1000;
	const kept = end > 0 && make("span.note", t("expires", { time: moment(end) }));
	const parts = make("div.row", saved(href), copyButton(() => link, t("copyLink")), kind && uses(kind, () => fetched(href)), kept);
	return make("figure.made", { dataset: { kind: kind ?? "file" } }, shown?.() ?? make("p", label), make("figcaption", parts));
}

/** The messages of a chat about a text. */
function asMessages(text, name) {
	return [{ role: "user", content: name === "useSummarize" ? `${t("summarizePrompt")}\n\n${text}` : text }];
}

/** A text with buttons to copy and download it. `asIs` (transcripts, OCR) turns Markdown rendering off. */
function prose(text, asIs) {
	const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
	const shown = asIs ? make("p.as-is", text) : markdown(text);
	const actions = make("div.row", copyButton(() => text), saved(href, "polymux.txt"), uses("text", async (name) => asMessages(text, name)));
	return make("div", make("div.prose", shown), actions);
}

/** Facts with units, the warnings, and all others behind "Details". */
function facts(plain) {
	const isFact = ([name, value]) => Object.hasOwn(FACTS, name) && typeof value === (FACTS[name] === String && name !== "seed" ? "string" : typeof value);
	const known = Object.entries(plain).filter(([, value]) => value !== null && value !== "" && typeof value !== "object");
	const shown = Object.keys(FACTS).flatMap((name) => known.filter((one) => one[0] === name && isFact(one)));
	const rows = (list, label, value) => make("dl.facts", ...list.map(([name, one]) => make("div", make("dt", label(name)), make("dd", value(name, one)))));
	const others = known.filter(([name]) => !shown.some((one) => one[0] === name));
	const warnings = (plain.warnings ?? []).map((one) => make("li", one.message ?? String(one)));
	return [
		shown.length > 0 && rows(shown, (name) => t("facts")[name], (name, one) => FACTS[name](typeof one === "string" && /^[\d.]+$/.test(one) ? Number(one) : one)),
		warnings.length > 0 && make("ul.rules", ...warnings),
		others.length > 0 && make("details.fold", make("summary", t("details")), rows(others, words, (_, one) => String(one))),
	];
}

function parts(value, how) {
	if ((value ?? null) === null) return [];
	if (typeof value === "string") {
		const href = own(value, how.base);
		if (href) return [file(value, href, how)];
		return [/^https?:\/\/\S+$/.test(value) ? make("p", linkOut(value, value)) : prose(value, how.asIs)];
	}
	if (Array.isArray(value)) {
		if (value.some((one) => one?.song_name)) return [songCards(value)];
		const shown = value.flatMap((one, n) => parts(one, { ...how, label: t("numbered", { name: how.label, number: n + 1 }) }));
		return shown.length > 1 ? [make("div.many", ...shown)] : shown;
	}
	if (typeof value !== "object") return [make("p", String(value))];
	if (value.song_name === "") return [make("p", t("noSong"))];
	if (value.song_name !== undefined) return [songCards([value])];
	if (value.choices) return value.choices.flatMap((one) => parts(one.message?.content ?? "", how)).concat(facts(value.usage ?? {}));
	const { text, chunks, language, ...others } = value;
	const known = Object.values(how.files ?? {}).find((one) => /^(audio|video)\//.test(one.type));
	return [
		...(text === undefined ? [] : parts(text, { ...how, asIs: true })),
		...(chunks?.length ? [transcript(text ?? "", chunks, known)] : []),
		...(typeof language === "string" && text !== undefined ? facts({ language }) : []),
		...Object.entries(others).filter(([, one]) => typeof one === "string" || Array.isArray(one)).flatMap(([name, one]) => parts(one, { ...how, label: words(name) })),
	];
}

function whole(value) {
	const text = JSON.stringify(value, null, 2);
	return make("details.fold", make("summary", t("json")), make("div.row", copyButton(() => text)), scrolled("pre", t("json"), text));
}

/**
 * Renders an output. `base` is the prefix of the server's links, `metrics` the header Polymux-Metrics,
 * and `files` the files of the request by field.
 */
export function showOutput(value, { base = null, input = {}, report = null, metrics = null, files = {} } = {}) {
	const shown = parts(value, { base, input, files, label: t("result") });
	if (!shown.length) shown.push(make("p.note", t("emptyResult")));
	const measurements = metrics && Object.fromEntries(metrics.split(",").map((one) => one.trim().split("=")));
	return [...shown, ...(report ? facts(report) : []), ...(measurements ? facts(measurements) : []), whole(value)].filter(Boolean);
}
