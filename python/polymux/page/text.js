// Numbers, times and names as people read them.

const BYTES = ["bytes", "KB", "MB", "GB", "TB"];

/** 1536 is "1.5 KB". */
export function bytes(count) {
	if ((count ?? null) === null) return "unknown";
	let at = 0;
	while (count >= 1000 && at < BYTES.length - 1) [count, at] = [count / 1000, at + 1];
	return `${at && count < 100 ? count.toFixed(1) : Math.round(count)} ${BYTES[at]}`;
}

/** Seconds in short: "0.8 s", "3 min 20 s", "2 h 5 min". */
export function seconds(count) {
	if (count < 60) return `${count < 10 ? count.toFixed(1) : Math.round(count)} s`;
	const whole = Math.round(count);
	if (whole < 3600) return `${Math.floor(whole / 60)} min ${whole % 60} s`;
	const minutes = Math.floor((whole % 3600) / 60);
	return `${Math.floor(whole / 3600)} h${minutes ? ` ${minutes} min` : ""}`;
}

/** A place in a recording: 83.5 is "1:23". */
export function clock(count) {
	if (typeof count !== "number") return "";
	const whole = Math.floor(count);
	const [hours, minutes] = [Math.floor(whole / 3600), Math.floor((whole % 3600) / 60)];
	const two = (number) => String(number).padStart(2, "0");
	return `${hours ? `${hours}:${two(minutes)}` : minutes}:${two(whole % 60)}`;
}

/** A moment, as this browser writes dates. */
export function moment(text) {
	return text ? new Date(text).toLocaleString(undefined, { dateStyle: "medium", timeStyle: "short" }) : "";
}

/** A field's or a fact's name in words: "num_outputs" is "Num outputs". */
export function words(name) {
	const text = name.replaceAll("_", " ");
	return text.charAt(0).toUpperCase() + text.slice(1);
}
