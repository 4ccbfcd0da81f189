// Renders the outputs of all operations: audio, images, video, text, songs and JSON.

import { copyButton, icon, linkOut, make, player, scrolled, table } from "./dom.js";
import { markdown } from "./markdown.js";
import { own } from "./server.js";
import { songCards } from "./songcards.js";
import { clock, moment, words } from "./text.js";
import { t } from "./texts.js";

const KINDS = {
	audio: /\.(mp3|wav|flac|ogg|opus|m4a|aac)$/,
	video: /\.(mp4|webm|mkv|mov|m4v)$/,
	image: /\.(png|jpe?g|webp|gif)$/,
};

function saved(href, name = "") {
	return make("a.button.quiet", { href, download: name }, icon("down"), make("span", t("download")));
}

/** A file on the server: a preview if the browser supports its type, and a download link. */
function file(link, href, { label, input }) {
	const url = new URL(href);
	const kind = Object.keys(KINDS).find((one) => KINDS[one].test(url.pathname));
	const alt = typeof input?.prompt === "string" ? input.prompt.slice(0, 200) : label;
	const shown = {
		audio: () => player("audio", href, label),
		video: () => player("video", href, label),
		image: () => linkOut(href, make("img", { src: href, alt, loading: "lazy" })),
	}[kind];
	const end = Number(url.searchParams.get("exp")) * 1000;
	const kept = end > 0 && make("span.note", t("expires", { time: moment(end) }));
	const parts = make("div.row", saved(href), copyButton(() => link, t("copyLink")), kept);
	return make("figure.made", { dataset: { kind: kind ?? "file" } }, shown?.() ?? make("p", label), make("figcaption", parts));
}

/** A text with buttons to copy and download it. `asIs` (transcripts, OCR) turns Markdown rendering off. */
function prose(text, asIs) {
	const href = URL.createObjectURL(new Blob([text], { type: "text/plain" }));
	const shown = asIs ? make("p.as-is", text) : markdown(text);
	return make("div", make("div.prose", shown), make("div.row", copyButton(() => text), saved(href, "polymux.txt")));
}

function chunks(list) {
	const rows = list.map((one) => [`${clock(one.timestamp?.[0])} – ${clock(one.timestamp?.[1])}`, one.text]);
	return make("details.fold", make("summary", t("timestamps")), table(t("timestamps"), [t("time"), t("text")], rows));
}

function facts(plain) {
	const known = Object.entries(plain).filter(([, value]) => value !== null && typeof value !== "object");
	return known.length > 0 && make("dl.facts", ...known.map(([name, value]) => make("div", make("dt", words(name)), make("dd", String(value)))));
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
	if (value.song_name !== undefined) return [songCards([value])];
	if (value.choices) return value.choices.flatMap((one) => parts(one.message?.content ?? "", how)).concat(facts(value.usage ?? {}) || []);
	const { text, chunks: timed, ...others } = value;
	return [
		...(text === undefined ? [] : parts(text, { ...how, asIs: true })),
		...(timed?.length ? [chunks(timed)] : []),
		...Object.entries(others).filter(([, one]) => typeof one === "string" || Array.isArray(one)).flatMap(([name, one]) => parts(one, { ...how, label: words(name) })),
	];
}

function whole(value) {
	const text = JSON.stringify(value, null, 2);
	return make("details.fold", make("summary", t("json")), make("div.row", copyButton(() => text)), scrolled("pre", t("json"), text));
}

/** Renders an output. `base` is the prefix of the server's links, `metrics` the header Polymux-Metrics. */
export function showOutput(value, { base = null, input = {}, report = null, metrics = null } = {}) {
	const shown = parts(value, { base, input, label: t("result") });
	if (!shown.length) shown.push(make("p.note", t("emptyResult")));
	const measurements = metrics && Object.fromEntries(metrics.split(",").map((one) => one.trim().split("=")));
	return [...shown, report && facts(report), measurements && facts(measurements), whole(value)].filter(Boolean);
}
