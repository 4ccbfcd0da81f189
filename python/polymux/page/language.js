// The button that changes the language of the page.

import { announce, fill, icon, make } from "./dom.js";
import { LANGUAGES, language, onLanguage, setLanguage, t } from "./texts.js";

export function drawLanguageButton(place) {
	const draw = () => {
		const name = LANGUAGES[language()];
		fill(place, icon("globe"), make("span", name));
		place.setAttribute("aria-label", t("languageNamed", { name }));
	};
	place.onclick = async () => {
		const names = Object.keys(LANGUAGES);
		await setLanguage(names[(names.indexOf(language()) + 1) % names.length]);
		announce(t("languageNamed", { name: LANGUAGES[language()] }));
	};
	onLanguage(draw);
	draw();
}
