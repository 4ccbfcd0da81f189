// A transcript beside its recording: the player marks what is said, and a click goes there. It exports
// subtitles.

import { icon, make, player } from "./dom.js";
import { clock } from "./text.js";
import { t } from "./texts.js";

/** "00:01:02,500" of 62.5 seconds; `sign` parts the milliseconds. */
function stamp(time, sign) {
	const all = Math.max(0, Math.round(time * 1000));
	const two = (number) => String(Math.floor(number)).padStart(2, "0");
	return `${two(all / 3_600_000)}:${two((all / 60_000) % 60)}:${two((all / 1000) % 60)}${sign}${String(all % 1000).padStart(3, "0")}`;
}

/** The chunks as {start, end, text}. An open end is that of the next chunk, or of the recording. */
export function spans(chunks) {
	return chunks.map((one, n) => {
		const start = one.timestamp?.[0] ?? 0;
		return { start, end: one.timestamp?.[1] ?? chunks[n + 1]?.timestamp?.[0] ?? start, text: one.text.trim() };
	});
}

const cues = (list, sign) => list.map(({ start, end, text }, n) => `${n + 1}\n${stamp(start, sign)} --> ${stamp(end, sign)}\n${text}\n`).join("\n");

/** The file formats: the media type, and the text of a transcript. */
export const FORMATS = {
	srt: ["application/x-subrip", (text, list) => cues(list, ",")],
	vtt: ["text/vtt", (text, list) => `WEBVTT\n\n${cues(list, ".")}`],
	txt: ["text/plain", (text) => `${text.trim()}\n`],
	json: ["application/json", (text, list) => `${JSON.stringify({ text, chunks: list }, null, 2)}\n`],
};

function save(format, text, list) {
	const [type, write] = FORMATS[format];
	const href = URL.createObjectURL(new Blob([write(text, list)], { type }));
	make("a", { href, download: `transcript.${format}` }).click();
	setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

/** The timed part of a transcript. `recording` is the file, if the page has it. */
export function transcript(text, chunks, recording = null) {
	const list = spans(chunks);
	const isVideo = recording?.type.startsWith("video/");
	const media = recording && player(isVideo ? "video" : "audio", URL.createObjectURL(recording), recording.name);
	const rows = list.map(({ start, end, text: said }) => {
		const time = make("span.time", `${clock(start)} – ${clock(end)}`);
		const go = () => {
			media.currentTime = start;
			media.play();
		};
		return media ? make("button.said", { type: "button", onclick: go }, time, make("span", said)) : make("p.said", time, make("span", said));
	});
	const lines = make("ol.transcript", { tabIndex: 0, "aria-label": t("timestamps") }, ...rows.map((one) => make("li", one)));
	media?.addEventListener("timeupdate", () => {
		const now = media.currentTime;
		const at = list.findLastIndex(({ start, end }) => now >= start && now < Math.max(end, start + 0.01));
		rows.forEach((one, n) => (n === at ? one.setAttribute("aria-current", "true") : one.removeAttribute("aria-current")));
		if (at < 0) return;
		const { offsetTop, offsetHeight } = rows[at];
		const isSeen = offsetTop >= lines.scrollTop && offsetTop + offsetHeight <= lines.scrollTop + lines.clientHeight;
		if (!isSeen) lines.scrollTop = offsetTop - lines.clientHeight / 3;
	});
	const exports = Object.keys(FORMATS).map((format) => make("button.quiet", { type: "button", "aria-label": t("exportAs", { format: format.toUpperCase() }), onclick: () => save(format, text, list) }, icon("down"), make("span", format.toUpperCase())));
	return make("div.stack", media, lines, make("div.row", ...exports));
}
