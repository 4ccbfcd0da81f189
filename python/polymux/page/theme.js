// The color theme: dark, light, or the system's setting.

import { announce, fill, icon, make } from "./dom.js";
import { t } from "./texts.js";

const KEPT = "polymux.theme";
const THEMES = [
	["", "themeSystem", "half"],
	["light", "themeLight", "sun"],
	["dark", "themeDark", "moon"],
];

export function drawThemeButton(place) {
	let at = Math.max(0, THEMES.findIndex(([name]) => name === (localStorage.getItem(KEPT) ?? "")));
	const draw = () => {
		const [name, title, drawn] = THEMES[at];
		document.documentElement.dataset.theme = name;
		fill(place, icon(drawn), make("span", t(title)));
		place.setAttribute("aria-label", t("theme", { name: t(title) }));
	};
	place.onclick = () => {
		at = (at + 1) % THEMES.length;
		localStorage.setItem(KEPT, THEMES[at][0]);
		draw();
		announce(t("theme", { name: t(THEMES[at][1]) }));
	};
	draw();
}
