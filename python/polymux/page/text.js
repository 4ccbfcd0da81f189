// Formats numbers, times and names for display.

import { language, number, t } from "./texts.js";

const BYTES = ["B", "KB", "MB", "GB", "TB"];

/** Formats a size: 1536 becomes "1.5 KB". */
export function bytes(count) {
	if ((count ?? null) === null) return t("unknown");
	let at = 0;
	while (count >= 1000 && at < BYTES.length - 1) [count, at] = [count / 1000, at + 1];
	return `${number(count, at && count < 100 ? 1 : 0)} ${BYTES[at]}`;
}

/** Formats a duration in seconds: "0.8 s", "3 min 20 s", "2 h 5 min". */
export function seconds(count) {
	if (count < 60) return `${number(count, count < 10 ? 1 : 0)} s`;
	const whole = Math.round(count);
	if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
	const minutes = Math.floor((whole % 3600) / 60);
	return `${Math.floor(whole / 3600)} h${minutes ? ` ${minutes} min` : ""}`;
}

/** Formats a position in a recording, in seconds: 83.5 becomes "1:23". */
export function clock(count) {
	if (typeof count !== "number") return "";
	const whole = Math.floor(count);
	const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
	const two = (number) => String(number).padStart(2, "0");
	return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

/** Formats a date and time for the browser's locale. */
export function moment(text) {
	return text ? new Date(text).toLocaleString(language(), { dateStyle: "medium", timeStyle: "short" }) : "";
}

/** Formats a field name as a label: "num_outputs" becomes "Num outputs". */
export function words(name) {
	const text = name.replaceAll("_", " ");
	return text.charAt(0).toUpperCase() + text.slice(1);
}
