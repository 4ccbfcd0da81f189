// Dark or light: as the system says, or as was chosen here.

import { announce, fill, icon, make } from "./dom.js";

const KEPT = "polymux.theme";
const THEMES = [
	["", "As the system", "half"],
	["light", "Light", "sun"],
	["dark", "Dark", "moon"],
];

export function drawThemeButton(place) {
	let at = Math.max(0, THEMES.findIndex(([name]) => name === (localStorage.getItem(KEPT) ?? "")));
	const draw = () => {
		const [name, title, drawn] = THEMES[at];
		document.documentElement.dataset.theme = name;
		fill(place, icon(drawn), make("span", title));
		place.setAttribute("aria-label", `Colours: ${title}`);
	};
	place.onclick = () => {
		at = (at + 1) % THEMES.length;
		localStorage.setItem(KEPT, THEMES[at][0]);
		draw();
		announce(`Colours: ${THEMES[at][1]}`);
	};
	draw();
}
