// Small charts of values over time. They are images for screen readers, with the values as text.

import { make } from "./dom.js";
import { t } from "./texts.js";

const SVG = "http://www.w3.org/2000/svg";
const [WIDTH, HEIGHT] = [240, 56];

/** A chart with the last of `values` as a number. `shown(value)` formats a value. `note` says more about it. */
export function chart(title, values, shown, note) {
	const highest = Math.max(...values, 0);
	const last = shown(values.at(-1) ?? 0);
	const drawn = document.createElementNS(SVG, "svg");
	drawn.setAttribute("viewBox", `0 0 ${WIDTH} ${HEIGHT}`);
	drawn.setAttribute("preserveAspectRatio", "none");
	drawn.setAttribute("class", "chart");
	drawn.setAttribute("role", "img");
	drawn.setAttribute("aria-label", t("chart", { title, last, highest: shown(highest) }));
	const line = document.createElementNS(SVG, "polyline");
	const step = WIDTH / Math.max(1, values.length - 1);
	const height = (value) => HEIGHT - 2 - (highest ? (value / highest) * (HEIGHT - 4) : 0);
	line.setAttribute("points", values.map((value, n) => `${(n * step).toFixed(1)},${height(value).toFixed(1)}`).join(" "));
	drawn.append(line);
	return make("div.card.tile", make("p.note", title), make("p.value", last), note && make("p.note", note), drawn);
}
