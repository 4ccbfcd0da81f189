// Entry point: navigation, the current view, the API key and the theme.

import { announce, button, empty, failure, fill, icon, make, skeleton } from "./dom.js";
import { drawKeyButton, onKey, openKeyDialog } from "./key.js";
import { drawLanguageButton } from "./language.js";
import { ask, key, onUnauthorized } from "./server.js";
import { drawThemeButton } from "./theme.js";
import { showAdministration } from "./admin.js";
import { showChat } from "./chat.js";
import { isAnyRunning, onChange } from "./conversations.js";
import { drawCount, showJobs, resumeJobs } from "./jobs.js";
import { showPlayground } from "./playground.js";
import { showSongs } from "./songs.js";
import { onLanguage, t, translated } from "./texts.js";

const PLACES = {
	playground: { title: "Playground", icon: "play", show: showPlayground },
	chat: { title: "Chat", icon: "chat", show: showChat },
	jobs: { title: "Jobs", icon: "jobs", show: showJobs },
	songs: { title: "Songs", icon: "songs", show: showSongs },
	admin: { title: "Server", icon: "gauge", show: showAdministration, hidden: true },
};
const content = document.getElementById("content");
const keyButton = document.getElementById("key-button");

/** State that all views share: the server's operations, loaded with the first view. */
const shared = { operations: null };
let leave = () => {};
let turn = 0;
/** The name of the current view. */
let current = "";

function drawPlaces() {
	const items = Object.entries(PLACES).filter(([, one]) => !one.hidden).map(([name, one]) =>
		make("li", make("a", { href: `#/${name}`, "aria-current": name === current && "page" }, icon(one.icon), make("span", one.title))),
	);
	fill(document.getElementById("places"), items);
	drawCount();
	drawChatting();
}

/** Marks Chat while a response streams, also from another view. */
function drawChatting() {
	const link = document.querySelector('#places a[href="#/chat"]');
	link.querySelector(".dot")?.remove();
	if (isAnyRunning()) link.append(make("span.dot.busy", { title: t("generating") }));
}

/** Shows the view that the URL names. The previous view first ends its timers and requests. */
async function open({ focus = true } = {}) {
	const [, name, ...rest] = location.hash.split("/");
	const place = Object.hasOwn(PLACES, name) ? PLACES[name] : PLACES.playground;
	const mine = ++turn;
	leave();
	leave = () => {};
	current = Object.keys(PLACES).find((one) => PLACES[one] === place);
	drawPlaces();
	document.title = `${place.title} · polymux`;
	if (key.get() === "") {
		fill(content, locked());
		return;
	}
	try {
		if (!shared.operations) {
			fill(content, skeleton(6));
			shared.operations = translated(await ask("api/v1/operations"));
		}
		if (mine !== turn) return;
		content.replaceChildren();
		leave = place.show(content, shared, ...rest) ?? leave;
		if (focus) {
			content.focus({ preventScroll: true });
			scrollTo(0, 0);
		}
		announce(place.title);
	} catch (error) {
		const next = error.status === 401 ? enterKey() : button("Try again", { onclick: () => open() });
		if (mine === turn) fill(content, make("h1", place.title), failure(error), next);
	}
}

function enterKey() {
	return button("Enter API key", { name: "key", class: "primary", onclick: () => openKeyDialog() });
}

function locked() {
	return make("div", make("h1.unseen", "polymux"), empty("key", "Sign in with an API key", make("p", "This server requires an API key."), enterKey()));
}

async function drawHealth() {
	const place = document.getElementById("health");
	try {
		const readiness = await ask("api/v1/readiness");
		fill(place, make("span.dot.good"), `polymux ${readiness.version}`);
	} catch (error) {
		fill(place, make("span.dot.bad"), error.status === 503 ? "stopping" : "unreachable");
	}
}

/** Offers the Server view only if the key may use the administration API. */
async function offerAdministration() {
	let may = false;
	if (key.get() !== "") may = await ask("api/v1/administration").then(() => true, () => false);
	if (PLACES.admin.hidden === may) {
		PLACES.admin.hidden = !may;
		drawPlaces();
	}
}

/** The texts around the views. */
function drawFrame() {
	document.querySelector(".skip").textContent = t("skip");
	document.querySelector("nav").setAttribute("aria-label", t("navigation"));
}

/** Draws everything in another language. */
function languageChanged() {
	shared.operations = null;
	drawFrame();
	drawKeyButton(keyButton);
	drawThemeButton(document.getElementById("theme-button"));
	open({ focus: false });
}

function keyChanged() {
	shared.operations = null;
	drawKeyButton(keyButton);
	resumeJobs();
	open();
	offerAdministration();
}

onUnauthorized((error) => key.get() !== "" && openKeyDialog(error));
onKey(keyChanged);
// The views handle their forms: the browser must not submit them.
addEventListener("submit", (event) => event.preventDefault());
// The skip link changes the hash to #content, which is not a view.
addEventListener("hashchange", () => location.hash !== "#content" && open());
// A file dropped beside a field would replace the page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
for (const kind of ["offline", "online"]) addEventListener(kind, () => drawHealth());
onChange(({ isText }) => !isText && drawChatting());
onLanguage(languageChanged);
drawFrame();
drawLanguageButton(document.getElementById("language-button"));
drawThemeButton(document.getElementById("theme-button"));
drawKeyButton(keyButton);
drawHealth();
open({ focus: false });
resumeJobs();
offerAdministration();
