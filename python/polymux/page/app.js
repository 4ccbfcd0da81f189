// Entry point: navigation, the current view, the API key and the theme.

import { announce, button, empty, failure, fill, icon, make, skeleton } from "./dom.js";
import { drawKeyButton, onKey, openKeyDialog, signInByLink } from "./key.js";
import { drawLanguageButton } from "./language.js";
import { ask, key, onReach, onRemembered, onUnauthorized, unreachable } from "./server.js";
import { drawThemeButton } from "./theme.js";
import { isAnyRunning, onChange } from "./conversations.js";
import { drawCount, resumeJobs } from "./jobs.js";
import { showPlayground } from "./playground.js";
import { onLanguage, t, translated } from "./texts.js";

/** The views, with the names of their titles. The first view needs only the code of the playground. `load` fetches the code of another. */
const PLACES = {
	playground: { name: "playground", icon: "play", load: async () => showPlayground },
	chat: { name: "chat", icon: "chat", load: async () => (await import("./chat.js")).showChat },
	jobs: { name: "jobs", icon: "jobs", load: loadJobs },
	songs: { name: "songs", icon: "songs", load: async () => (await import("./songs.js")).showSongs },
	admin: { name: "server", icon: "gauge", load: async () => (await import("./admin.js")).showAdministration, hidden: true },
};
async function loadJobs(id) {
	return id ? (await import("./jobpage.js")).showJob : (await import("./joblist.js")).showJobs;
}

const content = document.getElementById("content");
const keyButton = document.getElementById("key-button");

/** State that all views share: the server's operations, loaded with the first view. */
const shared = { operations: null };
let leave = () => {};
let turn = 0;
const HEALTH_AFTER_MS = 5000;
/** The name of the current view. */
let current = "";

function drawPlaces() {
	const items = Object.entries(PLACES).filter(([, one]) => !one.hidden).map(([name, one]) =>
		make("li", make("a", { href: `#/${name}`, "aria-current": name === current && "page" }, icon(one.icon), make("span", t(one.name)))),
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
	document.title = `${t(place.name)} · polymux`;
	if (key.get() === "") {
		fill(content, locked());
		return;
	}
	try {
		if (!shared.operations) {
			fill(content, skeleton(6));
			shared.operations = translated(await ask("api/v1/operations"));
		}
		const show = await place.load(...rest).catch((error) => {
			throw error instanceof TypeError ? unreachable() : error;
		});
		if (mine !== turn) return;
		content.replaceChildren();
		document.title = `${nameOf(place, rest)} · polymux`;
		leave = show(content, shared, ...rest) ?? leave;
		if (focus) {
			content.focus({ preventScroll: true });
			scrollTo(0, 0);
		}
		announce(nameOf(place, rest));
	} catch (error) {
		const next = error.status === 401 ? enterKey() : button(t("tryAgain"), { onclick: () => open() });
		if (mine === turn) fill(content, make("h1", t(place.name)), failure(error), next);
	}
}

/** The name of a view, or of the operation that it shows. */
function nameOf(place, [name]) {
	const operation = place === PLACES.playground && shared.operations.find((one) => one.name === name);
	return operation ? operation.title : t(place.name);
}

function enterKey() {
	return button(t("enterApiKey"), { name: "key", class: "primary", onclick: () => openKeyDialog() });
}

function locked() {
	return make("div", make("h1.unseen", "polymux"), empty("key", t("signIn"), make("p", t("keyRequired")), enterKey()));
}

/** The version of the server; empty if it is unreachable. Undefined at first. */
let version;
let healthTimer = 0;
let isChecking = false;

/** Shows whether the server is reachable, and asks again until it is. */
async function drawHealth() {
	clearTimeout(healthTimer);
	const place = document.getElementById("health");
	isChecking = true;
	try {
		version = (await ask("api/v1/readiness")).version;
		fill(place, make("span.dot.good"), `polymux ${version}`);
	} catch (error) {
		version = "";
		fill(place, make("span.dot.bad"), t(error.status === 503 ? "serverStopping" : "serverUnreachable"));
		healthTimer = setTimeout(drawHealth, HEALTH_AFTER_MS);
	}
	isChecking = false;
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
	drawHealth();
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
onRemembered(keyChanged);
onReach((isReachable) => !isChecking && version !== undefined && isReachable !== (version !== "") && drawHealth());
// The views handle their forms: the browser must not submit them.
addEventListener("submit", (event) => event.preventDefault());
// The skip link changes the hash to #content, which is not a view.
addEventListener("hashchange", async () => {
	if (location.hash === "#content") return;
	if (await signInByLink()) keyChanged();
	else open();
});
// A file dropped beside a field would replace the page.
for (const kind of ["dragover", "drop"]) addEventListener(kind, (event) => event.preventDefault());
for (const kind of ["offline", "online"]) addEventListener(kind, () => drawHealth());
onChange(({ isText }) => !isText && drawChatting());
onLanguage(languageChanged);
drawFrame();
drawLanguageButton(document.getElementById("language-button"));
drawThemeButton(document.getElementById("theme-button"));
await signInByLink();
drawKeyButton(keyButton);
drawHealth();
const isDrawn = open({ focus: false });
resumeJobs();
offerAdministration();
await isDrawn;
// The views then also open without a network.
(window.requestIdleCallback ?? setTimeout)(() => Object.values(PLACES).forEach((one) => one.load().catch(() => {})));
